import { type Clock, type Millis, pause } from "../base/clock.js";
import type { Done, Refusal } from "../base/errors.js";
import { RemudaError } from "../base/errors.js";
import type { Caller } from "../spec/caller.js";
import type { EventFilter, EventPage, EventQuery, EventStore, StoredEvent, StreamRef } from "./ports.js";

/** From where a stream is read: after an event, from the oldest that is left, or from now on. */
export type StreamStart = { readonly after: number } | "oldest" | "now";

/** What a caller may read of a session's events. `ref` is its id or name. */
export interface EventOperations {
  history(ref: string, query: EventQuery, caller: Caller): Promise<Done<EventPage> | Refusal>;
  /**
   * Events as they are stored; an empty list now and then, while there are none. It ends with the session.
   */
  stream(
    ref: string,
    ask: { readonly start: StreamStart; readonly filter: EventFilter },
    caller: Caller,
  ): Promise<Done<AsyncGenerator<readonly StoredEvent[], void>> | Refusal>;
}

/**
 * Where few events match, so many parts of the stream are read for one page, which may then be short. Each
 * part is a question of its own, so that Redis answers others in between. Together they are a whole stream of
 * the default size, since the official client takes an empty page for the last.
 */
const mostLooks = 100;

/** One page; it may be empty, and yet there be more. */
export async function readHistory(
  store: Pick<EventStore, "read">,
  stream: StreamRef,
  query: EventQuery,
): Promise<EventPage> {
  const events: StoredEvent[] = [];
  let page: EventPage | undefined;
  for (let looks = 0; looks < mostLooks; looks += 1) {
    page = await store.read(stream, {
      ...query,
      limit: query.limit - events.length,
      ...(page && { cursor: page.next }),
    });
    events.push(...page.events);
    if (!page.hasMore || events.length >= query.limit) break;
  }
  return { events, next: page?.next ?? 0, hasMore: page?.hasMore ?? false };
}

interface FollowParts {
  readonly store: Pick<EventStore, "read" | "last">;
  readonly clock: Clock;
  /** Whether the stream's lease still holds its browser. */
  isHeld(): Promise<boolean>;
  /** Aborts when the reader has gone, or the daemon stops. */
  readonly until: AbortSignal;
}

/** New events are looked for so often. */
const pollMs: Millis = 250;
/** Whether the lease is over is looked up so often. */
const heldMs: Millis = 1000;
/** Its last events may be stored so long after its end. */
const lingerMs: Millis = 2000;
/** After so long without an event, a sign is given that the stream lives. */
const keepAliveMs: Millis = 15_000;
const mostAtOnce = 100;

/**
 * Follows a stream from where it is asked to, to the end of its lease. It reads on when what it gave was
 * taken, so a slow reader costs nobody anything; what has gone before it came leaves a gap in `seq`.
 */
export async function* followStream(
  parts: FollowParts,
  stream: StreamRef,
  { start, filter }: { readonly start: StreamStart; readonly filter: EventFilter },
): AsyncGenerator<readonly StoredEvent[], void> {
  const { store, clock, until } = parts;
  let cursor = await firstCursor(store, stream, start);
  const end = new EndWatch(parts);
  // Headers leave with the first bytes, so that a client knows at once that it is heard.
  yield [];
  let quietAt = clock.monotonic();
  let wasEmpty = false;
  while (!until.aborted) {
    const isLast = await end.isReached();
    const query = { filter, order: "asc", limit: mostAtOnce, cursor } as const;
    const page = await readOn({ store, stream, wasEmpty }, query);
    wasEmpty = page?.events.length === 0;
    if (page) cursor = Math.max(cursor, page.next);
    const isQuiet = clock.monotonic() - quietAt >= keepAliveMs;
    if (isQuiet || (page && page.events.length > 0)) {
      yield page?.events ?? [];
      quietAt = clock.monotonic();
    }
    if (page?.hasMore) continue;
    // Where the store was away, the last events are still to come.
    if (page && isLast) return;
    await pause(clock, pollMs, until);
  }
}

async function firstCursor(
  store: Pick<EventStore, "last">,
  stream: StreamRef,
  start: StreamStart,
): Promise<number> {
  if (start === "oldest") return 0;
  if (start === "now") return await store.last(stream);
  // An event that the store has lost, or one of another lease: what comes now is no less meant.
  const last = await store.last(stream).catch(() => start.after);
  return Math.min(start.after, last);
}

interface ReadParts {
  readonly store: Pick<EventStore, "read" | "last">;
  readonly stream: StreamRef;
  /** There was nothing when it was read last. */
  readonly wasEmpty: boolean;
}

/** Undefined where the store is away: the reader waits for it. */
async function readOn(
  { store, stream, wasEmpty }: ReadParts,
  query: EventQuery & { readonly cursor: number },
): Promise<EventPage | undefined> {
  try {
    // Most streams are silent most of the time: to ask for the last number costs Redis a third of a reading.
    const isEmpty = wasEmpty && (await store.last(stream)) <= query.cursor;
    return isEmpty ? { events: [], next: query.cursor, hasMore: false } : await store.read(stream, query);
  } catch (error) {
    if (error instanceof RemudaError && error.code === "store_unavailable") return undefined;
    throw error;
  }
}

/** Knows when a lease is over and its last events have come. */
class EndWatch {
  #lookedAt: Millis;
  #overAt: Millis | undefined;

  constructor(private readonly parts: Pick<FollowParts, "clock" | "isHeld">) {
    this.#lookedAt = parts.clock.monotonic();
  }

  async isReached(): Promise<boolean> {
    const { clock, isHeld } = this.parts;
    const now = clock.monotonic();
    if (this.#overAt !== undefined) return now - this.#overAt >= lingerMs;
    if (now - this.#lookedAt < heldMs) return false;
    this.#lookedAt = now;
    // Where it cannot be asked nothing has ended, as far as is known.
    if (!(await isHeld().catch(() => true))) this.#overAt = now;
    return false;
  }
}
