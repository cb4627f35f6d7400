import { LRUCache } from "lru-cache";
import { type ApiKey, apiKeyParser, type ApiKeyStore } from "../../access/api-key.js";
import type { Millis } from "../../base/clock.js";
import type { ProjectId } from "../../base/ids.js";
import { accessKey, type AccessPart, callerRateKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import { SharedKeys } from "../redis/script-call.js";
import { toldRate } from "./caller-store.js";

type LookUpResult = Awaited<ReturnType<ApiKeyStore["admit"]>>;

/** What Redis says of all requests that came with one key in one turn. */
type JudgedLookUp =
  | Extract<LookUpResult, { kind: "unknown" }>
  | { readonly kind: "expired"; readonly key: ApiKey }
  | { readonly kind: "judged"; readonly key: ApiKey; readonly words: readonly string[] };

interface Turn {
  /** The project that each request names, in their order. */
  readonly projects: string[];
  readonly found: Promise<JudgedLookUp>;
}

/** What is known here of a key that came before; it decides nothing. */
interface Remembered {
  readonly text: string;
  /** How that text parses: each look-up reads it anew, and nearly always it is the same. */
  readonly key: ApiKey;
  /** When its use was noted. */
  notedAt: Millis;
}

/** The use of a key is noted this often at most, so that nearly no request writes. */
const noteMs: Millis = 60_000;
const noProject = "-";

const sharedKeys = new SharedKeys((key) => (key === "callerRate" ? undefined : accessKey(key as AccessPart)));

/**
 * Looks keys up for the requests that come with them, each time anew. Requests that came with one key in the
 * same turn of the event loop share a look-up, which is made at the end of the turn: after all of them came.
 */
export class KeyLookUps {
  readonly #turns = new Map<string, Turn>();
  readonly #remembered = new LRUCache<string, Remembered>({ max: 1000 });

  constructor(
    private readonly store: ScriptStore,
    /** How many of one key; null: as many as come. */
    private readonly requestsPerMinute: number | null,
  ) {}

  async admit(digest: string, project?: ProjectId, isUncounted = false): Promise<LookUpResult> {
    // Requests that are not counted are rare: each has a look-up of its own.
    if (isUncounted) return this.#resultAt(await this.#lookUp(digest, [project ?? noProject], null), 0);
    const turn = this.#turns.get(digest) ?? this.#openTurn(digest);
    const place = turn.projects.push(project ?? noProject) - 1;
    return this.#resultAt(await turn.found, place);
  }

  recall(digest: string): ApiKey | undefined {
    const known = this.store.hasOneSlot ? this.#remembered.get(digest) : undefined;
    return known && this.store.clock.monotonic() - known.notedAt < noteMs ? known.key : undefined;
  }

  #openTurn(digest: string): Turn {
    const projects: string[] = [];
    const found = new Promise<JudgedLookUp>((resolve) => {
      this.store.atTurnEnd(() => {
        this.#turns.delete(digest);
        resolve(this.#lookUp(digest, projects, this.requestsPerMinute));
      });
    });
    const turn = { projects, found };
    this.#turns.set(digest, turn);
    return turn;
  }

  async #lookUp(
    digest: string,
    projects: readonly string[],
    perMinute: number | null,
  ): Promise<JudgedLookUp> {
    const known = this.#remembered.get(digest);
    const at = this.store.clock.monotonic();
    const isNoteDue = known === undefined || at - known.notedAt >= noteMs;
    const { kind, payload } = await this.store.call("admit", {
      keys: { shared: sharedKeys, keyOf: () => callerRateKey(digest) },
      args: {
        digest,
        noteMs: isNoteDue ? noteMs : "",
        projects: projects.join(" "),
        perMinute: perMinute ?? "",
      },
    });
    if (kind === "unknown" || kind === "expired") this.#remembered.delete(digest);
    if (kind === "unknown") return { kind };
    if (kind === "expired") return { kind, key: apiKeyParser.json(payload) };
    const end = payload.indexOf("\n");
    const words = payload.slice(0, end).split(" ");
    const remembered = this.#remember(digest, payload.slice(end + 1));
    if (kind === "noted") remembered.notedAt = at;
    return { kind: "judged", key: remembered.key, words };
  }

  #remember(digest: string, text: string): Remembered {
    const known = this.#remembered.get(digest);
    if (known?.text === text) return known;
    const made = { text, key: apiKeyParser.json(text), notedAt: known?.notedAt ?? -Infinity };
    this.#remembered.set(digest, made);
    return made;
  }

  #resultAt(found: JudgedLookUp, place: number): LookUpResult {
    if (found.kind !== "judged") return found;
    const { key, words } = found;
    const [word = "", told = ""] = (words[place] ?? "").split(":");
    const kind = (["admitted", "limited", "elsewhere"] as const).find((one) => one === word);
    if (kind === undefined) throw new Error(`script admit judged ${JSON.stringify(words[place])}`);
    return { kind, key, ...toldRate(this.requestsPerMinute, { isTaken: kind !== "limited", told }) };
  }
}
