import type { Clock, Millis } from "../base/clock.js";
import { type ProjectId, projectOf } from "../base/ids.js";
import type { StreamRef } from "./ports.js";

/** The stream of a lease as a sweep finds it. */
export interface StoredStream extends StreamRef {
  readonly beganAt: Millis;
  /** Undefined where nothing is kept of it any more. */
  readonly bytes: number | undefined;
}

interface SweptStore {
  /** Lists streams in the order in which they began. */
  streams(from: number, most: number): Promise<readonly StoredStream[]>;
  /** Takes its events; those that come are kept again. */
  clear(stream: StreamRef): Promise<void>;
  /** Leaves nothing of it. */
  drop(stream: StreamRef): Promise<void>;
  now(): Promise<Millis>;
}

interface SweepParts {
  readonly maxBytes: number;
  readonly clock: Pick<Clock, "monotonic">;
}

const atOnce = 500;
/** A stream is listed before its first events are stored, which may wait for a store that is away. */
const comingMs: Millis = 3_600_000;
/** A sweep looks at every lease of a month: it rests so many times as long as it took. */
const restFactor = 20;

/**
 * Forgets streams whose time is up, and takes the events of those that began first where all have too many.
 */
export function makeSweepEvents(events: SweptStore, { maxBytes, clock }: SweepParts): () => Promise<void> {
  let restsUntil = -Infinity;
  return async () => {
    const beganAt = clock.monotonic();
    if (beganAt < restsUntil) return;
    const tooMany = (await dropOver(events)) - maxBytes;
    if (tooMany > 0) await clearOldest(events, tooMany);
    const now = clock.monotonic();
    restsUntil = now + restFactor * (now - beganAt);
  };
}

/** Gives the bytes of those that are left. */
async function dropOver(events: SweptStore): Promise<number> {
  const now = await events.now();
  let bytes = 0;
  await dropWhere(events, (stream) => {
    bytes += stream.bytes ?? 0;
    return stream.bytes === undefined && now - stream.beganAt > comingMs;
  });
  return bytes;
}

async function clearOldest(events: SweptStore, tooMany: number): Promise<void> {
  let left = tooMany;
  for (let from = 0; left > 0; from += atOnce) {
    const some = await events.streams(from, atOnce);
    left -= await clearFirst(events, some, left);
    if (some.length < atOnce) return;
  }
}

/** Gives how many bytes went. */
async function clearFirst(
  events: SweptStore,
  some: readonly StoredStream[],
  tooMany: number,
): Promise<number> {
  let gone = 0;
  for (const stream of some.filter(({ bytes = 0 }) => bytes > 0)) {
    if (gone >= tooMany) return gone;
    await events.clear(stream);
    gone += stream.bytes ?? 0;
  }
  return gone;
}

/** Leaves nothing of what happened in the browsers of a project. */
export async function eraseEvents(events: SweptStore, project: ProjectId): Promise<void> {
  await dropWhere(events, ({ browser }) => projectOf(browser) === project);
}

/** Looks at all of them, a page at a time, since there may be hundreds of thousands. */
async function dropWhere(events: SweptStore, isOver: (stream: StoredStream) => boolean): Promise<void> {
  let from = 0;
  for (;;) {
    const some = await events.streams(from, atOnce);
    const over = some.filter(isOver);
    for (const stream of over) await events.drop(stream);
    // Those behind the dropped ones have moved up.
    from += some.length - over.length;
    if (some.length < atOnce) return;
  }
}
