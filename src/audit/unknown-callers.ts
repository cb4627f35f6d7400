import type { Clock, Millis } from "../base/clock.js";
import { errors } from "../base/errors.js";
import { subscriberOf } from "../base/net/client-address.js";
import type { NewEntry } from "./entry.js";
import type { AuditRecorder } from "./writer.js";

interface UnknownCallersParts {
  readonly recorder: AuditRecorder;
  readonly clock: Clock;
  readonly meter: { folded(count: number): void };
  /** Entries in a minute that requests of one address, and of all together, may leave by themselves. */
  readonly mostOfEach: number;
  readonly mostOfAll: number;
}

/** Requests that differ in nothing that their one entry says. */
interface Folded {
  readonly first: NewEntry;
  count: number;
  lastAt: Millis;
}

const minuteMs: Millis = 60_000;
/** Beyond so many addresses of a kind in a minute the others have one entry together. */
const mostAddresses = 100;

/** Who is bounded: whoever was not let in, and apart from them whoever has asked too often. */
type Bounded = "unknown" | "limited";

/**
 * Holds to a bound what anybody can put into the log who was not let in, or who is told 429. What comes
 * beyond that in a minute is counted in one entry for each address, user and status, which is recorded when
 * the minute is over.
 */
export class UnknownCallers implements AuditRecorder {
  #ofEach = new Map<string, number>();
  #ofAll = { unknown: 0, limited: 0 };
  #folded = new Map<string, Folded>();
  #cancel: (() => void) | undefined;

  constructor(private readonly parts: UnknownCallersParts) {}

  record(entry: NewEntry): void {
    const bounded = boundedAs(entry);
    if (bounded === undefined || this.#hasRoom(bounded, entry)) this.parts.recorder.record(entry);
    else this.#fold(entry);
  }

  recordNow(entry: NewEntry): Promise<void> {
    return this.parts.recorder.recordNow(entry);
  }

  begin(intent: string, entry: NewEntry): Promise<void> {
    return this.parts.recorder.begin(intent, entry);
  }

  /** Records what was counted; the next request begins a minute of its own. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const folded = this.#folded;
    this.#ofEach = new Map();
    this.#ofAll = { unknown: 0, limited: 0 };
    this.#folded = new Map();
    for (const one of folded.values()) this.parts.recorder.record(entryOf(one));
  }

  #hasRoom(bounded: Bounded, { clientIp }: NewEntry): boolean {
    const { clock, mostOfEach, mostOfAll } = this.parts;
    this.#cancel ??= clock.after(minuteMs, () => this.flush());
    const address = `${bounded} ${subscriberOf(clientIp)}`;
    const ofIt = this.#ofEach.get(address) ?? 0;
    if (ofIt >= mostOfEach || this.#ofAll[bounded] >= mostOfAll) return false;
    this.#ofEach.set(address, ofIt + 1);
    this.#ofAll[bounded] += 1;
    return true;
  }

  #fold(entry: NewEntry): void {
    this.parts.meter.folded(1);
    const [own, others] = [keyOf(entry, subscriberOf(entry.clientIp)), keyOf(entry, "")];
    const isOfItsOwn = this.#folded.has(own) || this.#folded.size < mostAddresses;
    const key = isOfItsOwn ? own : others;
    const clientIp = isOfItsOwn ? entry.clientIp : "";
    const folded = this.#folded.get(key) ?? { first: { ...entry, clientIp }, count: 0, lastAt: 0 };
    folded.count += 1;
    folded.lastAt = entry.receivedAt + entry.durationMs;
    this.#folded.set(key, folded);
  }
}

const tooMany = errors.too_many_requests.status;
const notLetIn = errors.unauthorized.status;

/**
 * It is known whose an expired key was, though it is not let in. A browser's own URLs bring the token of its
 * lease, and forms that of their link, which was not good where they are refused.
 */
function boundedAs({ authStrategy, status, intent }: NewEntry): Bounded | undefined {
  // Each takes the place of its own intent, which would become an entry otherwise.
  if (intent !== undefined) return undefined;
  const isByToken = authStrategy === "lease" || authStrategy === "form";
  if (authStrategy === "none" || status === notLetIn || (isByToken && status >= 400)) return "unknown";
  return status === tooMany ? "limited" : undefined;
}

const keyOf = ({ authStrategy, status, userId }: NewEntry, address: string): string =>
  JSON.stringify([authStrategy, status, userId, address]);

const entryOf = ({ first, count, lastAt }: Folded): NewEntry => ({
  ...first,
  path: count === 1 ? first.path : `(${count} requests)`,
  route: count === 1 ? first.route : "",
  durationMs: Math.max(first.durationMs, lastAt - first.receivedAt),
});
