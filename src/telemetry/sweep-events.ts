import type { Millis } from "../base/clock.js";
import { type ProjectId, projectOf } from "../base/ids.js";
import type { StreamRef } from "./ports.js";

/** The stream of a lease as a sweep finds it. */
export interface StoredStream extends StreamRef {
  readonly beganAt: Millis;
  /** Undefined where nothing is kept of it any more. */
  readonly bytes: number | undefined;
}

interface SweptStore {
  /** In the order in which they began. */
  streams(from: number, most: number): Promise<readonly StoredStream[]>;
  /** Takes its events; those that come are kept again. */
  clear(stream: StreamRef): Promise<void>;
  /** Leaves nothing of it. */
  drop(stream: StreamRef): Promise<void>;
  now(): Promise<Millis>;
}

const atOnce = 500;
/** A stream is listed before its first events are stored, which may wait for a store that is away. */
const comingMs: Millis = 3_600_000;

/** Forgets streams whose time is up, and takes the events of those that began first where all have too many. */
export const makeSweepEvents =
  (events: SweptStore, limits: { readonly maxBytes: number }) => async (): Promise<void> => {
    const all = await listed(events);
    const now = await events.now();
    for (const stream of all)
      if (stream.bytes === undefined && now - stream.beganAt > comingMs) await events.drop(stream);
    let bytes = all.reduce((sum, stream) => sum + (stream.bytes ?? 0), 0);
    for (const stream of all) {
      if (bytes <= limits.maxBytes) return;
      if (!stream.bytes) continue;
      await events.clear(stream);
      bytes -= stream.bytes;
    }
  };

/** Leaves nothing of what happened in the browsers of a project. */
export async function eraseEvents(events: SweptStore, project: ProjectId): Promise<void> {
  for (const stream of await listed(events))
    if (projectOf(stream.browser) === project) await events.drop(stream);
}

/** All of them first, since the list becomes shorter as they go. */
async function listed(events: Pick<SweptStore, "streams">): Promise<readonly StoredStream[]> {
  const all: StoredStream[] = [];
  for (;;) {
    const some = await events.streams(all.length, atOnce);
    all.push(...some);
    if (some.length < atOnce) return all;
  }
}
