import { Type } from "typebox";
import {
  type ApiKey,
  apiKeyParser,
  type ApiKeyStore,
  type GivenKey,
  type IssueResult,
  type KeyScope,
  type KeyState,
} from "../../access/api-key.js";
import type { Millis } from "../../base/clock.js";
import type { ApiKeyId, RequestId } from "../../base/ids.js";
import { parserOf, readonlyList } from "../../base/parser.js";
import type { EndedKeys } from "../../pool/ports/ended-keys.js";
import type { Page, Paging } from "../../spec/paging.js";
import { accessIdempotencyKey, accessKey, type AccessPart } from "../redis/keys.js";
import { KeyLookUps } from "./key-look-ups.js";
import type { ScriptStore } from "../redis/redis.js";
import type { ScriptArgs } from "../redis/script-call.js";
import type { ScriptName, ScriptReply } from "../redis/replies.js";

interface ApiKeyLimits {
  readonly maxKeys: number;
  readonly maxDeletedKeys: number;
  /** How long a repeat under an idempotency key is answered the same. */
  readonly idempotencyMs: Millis;
  /** How many of one key; null: as many as come. */
  readonly requestsPerMinute: number | null;
}

const idsParser = parserOf("a list of API keys", readonlyList(Type.String()));

/** So few that whoever else comes waits for no more than a millisecond of it. */
const readAtOnce = 100;

/**
 * A key with a long policy has 40 KB: what is parsed in one turn of the event loop takes a millisecond or
 * two.
 */
const parsedAtOnce = 128 * 1024;
async function parseInTurns(texts: readonly (string | null)[]): Promise<readonly ApiKey[]> {
  const keys: ApiKey[] = [];
  let parsed = 0;
  for (const text of texts) {
    if (text === null) continue;
    if (parsed >= parsedAtOnce) {
      await new Promise((resolve) => void setImmediate(resolve));
      parsed = 0;
    }
    keys.push(apiKeyParser.json(text));
    parsed += text.length;
  }
  return keys;
}

interface MemberRange {
  readonly min: string;
  readonly max: string;
}
/**
 * Which members of `keyOrder` are of one scope and state: `!` comes right after the space in the order of
 * bytes.
 */
const rangeOf = (scope: KeyScope, state: KeyState): MemberRange => ({
  min: `[${scope ?? "*"} ${state} `,
  max: `(${scope ?? "*"} ${state}!`,
});

/** API keys of all projects, in one slot: by digest for who comes, by id for who manages them. */
export class RedisApiKeyStore implements ApiKeyStore, EndedKeys {
  readonly #lookUps: KeyLookUps;

  constructor(
    private readonly store: ScriptStore,
    private readonly limits: ApiKeyLimits,
  ) {
    this.#lookUps = new KeyLookUps(store, limits.requestsPerMinute);
  }

  admit(...asked: Parameters<ApiKeyStore["admit"]>): ReturnType<ApiKeyStore["admit"]> {
    return this.#lookUps.admit(...asked);
  }

  recall(digest: string): ApiKey | undefined {
    return this.#lookUps.recall(digest);
  }

  async create(...[key, how]: Parameters<ApiKeyStore["create"]>): Promise<IssueResult> {
    const args = { record: JSON.stringify(key), most: this.limits.maxKeys, ...this.#repeatArgs(how) };
    const { kind, payload } = await this.#run("create-key", args, how.idempotencyKey?.key);
    if (kind === "created") return { kind: "issued", key: apiKeyParser.json(payload) };
    if (kind === "many") return { kind, most: this.limits.maxKeys };
    return kind === "same" ? this.#sameKey(payload) : { kind };
  }

  async rotate(...[old, key, how]: Parameters<ApiKeyStore["rotate"]>): ReturnType<ApiKeyStore["rotate"]> {
    const args = { ...old, record: JSON.stringify(key), most: this.limits.maxKeys, ...this.#repeatArgs(how) };
    const { kind, payload } = await this.#run("rotate-key", args, how.idempotencyKey?.key);
    if (kind === "rotated") return { kind: "issued", key: apiKeyParser.json(payload) };
    if (kind === "many") return { kind, most: this.limits.maxKeys };
    return kind === "same" ? this.#sameKey(payload) : { kind };
  }

  async given({ idempotencyKey }: Parameters<ApiKeyStore["given"]>[0]): Promise<GivenKey | undefined> {
    if (!idempotencyKey) return undefined;
    const { kind, payload } = await this.#run("given-key", { body: idempotencyKey.body }, idempotencyKey.key);
    if (kind === "none") return undefined;
    return kind === "same" ? this.#sameKey(payload) : { kind };
  }

  async rename(id: ApiKeyId, name: string): Promise<ApiKey | undefined> {
    const { kind, payload } = await this.#run("rename-key", { id, name });
    return kind === "missing" ? undefined : apiKeyParser.json(payload);
  }

  async remove(id: ApiKeyId, request: RequestId): Promise<"deleted" | "missing"> {
    return (await this.#run("delete-key", { id, request, most: this.limits.maxDeletedKeys })).kind;
  }

  async find(id: ApiKeyId): Promise<ApiKey | undefined> {
    const [key] = await this.#read([id]);
    return key;
  }

  async endedAmong(ids: readonly string[]): Promise<readonly string[]> {
    const { payload } = await this.#run("ended-keys", { ids: JSON.stringify(ids) });
    return idsParser.json(payload);
  }

  async ended(): ReturnType<EndedKeys["ended"]> {
    const at = await this.store.now();
    const ids = await this.store.ask((redis) => redis.zrangebyscore(accessKey("keyEnds"), "-inf", at));
    return { ids: new Set(ids), at };
  }

  async forget(until: Millis): Promise<void> {
    await this.store.ask((redis) => redis.zremrangebyscore(accessKey("keyEnds"), "-inf", until));
  }

  async lastUsed(id: ApiKeyId): Promise<Millis | undefined> {
    const at = await this.store.ask((redis) => redis.hget(accessKey("keyUses"), id));
    return at === null ? undefined : Number(at);
  }

  async page({ limit, offset }: Paging, scope: KeyScope): Promise<Page<ApiKey>> {
    const range = rangeOf(scope, "living");
    // One more than is shown tells whether there are more.
    const members = await this.#members(range, limit + 1, offset);
    const items = await this.#readMembers(members.slice(0, limit));
    return { items, hasMore: members.length > limit, nextOffset: offset + Math.min(members.length, limit) };
  }

  async *each(scope: KeyScope, state: KeyState): AsyncGenerator<readonly ApiKey[]> {
    let range = rangeOf(scope, state);
    for (;;) {
      const members = await this.#members(range, readAtOnce);
      const last = members.at(-1);
      if (last === undefined) return;
      yield await this.#readMembers(members);
      // Goes on from the last that was read, so that whatever comes or goes meanwhile moves nothing.
      range = { ...range, max: `(${last}` };
    }
  }

  async #members({ min, max }: MemberRange, most: number, offset = 0): Promise<readonly string[]> {
    return await this.store.ask((redis) =>
      redis.zrevrangebylex(accessKey("keyOrder"), max, min, "LIMIT", offset, most),
    );
  }

  #readMembers(members: readonly string[]): Promise<readonly ApiKey[]> {
    return this.#read(members.map((member) => member.slice(member.lastIndexOf(" ") + 1)));
  }

  async #read(ids: readonly string[]): Promise<readonly ApiKey[]> {
    if (ids.length === 0) return [];
    const texts = await this.store.ask((redis) => redis.hmget(accessKey("apiKeys"), ...ids));
    return await parseInTurns(texts);
  }

  #run<const Name extends ScriptName>(
    script: Name,
    args: ScriptArgs,
    about = "none",
  ): Promise<ScriptReply<Name>> {
    const keyOf = (key: string): string =>
      key === "idempotency" ? accessIdempotencyKey(about) : accessKey(key as AccessPart);
    return this.store.run(script, keyOf, args);
  }

  #repeatArgs({ salt, idempotencyKey, maker = "" }: Parameters<ApiKeyStore["create"]>[1]): ScriptArgs {
    return { salt, maker, body: idempotencyKey?.body ?? "", keepMs: this.limits.idempotencyMs };
  }

  #sameKey(payload: string): GivenKey {
    const at = payload.indexOf(" ");
    return { kind: "same", salt: payload.slice(0, at), key: apiKeyParser.json(payload.slice(at + 1)) };
  }
}
