import { LRUCache } from "lru-cache";
import type { Millis } from "../../base/clock.js";
import {
  type BrowserId,
  findBrowserId,
  findLeaseId,
  type LeaseId,
  type Partition,
  partitionOf,
  type ProjectId,
  projectNamedByPartition,
} from "../../base/ids.js";
import type {
  AppendResult,
  EventBatch,
  EventPage,
  EventQuery,
  EventStore,
  StreamRef,
} from "../../telemetry/ports.js";
import type { StoredStream } from "../../telemetry/sweep-events.js";
import {
  type StreamPart,
  streamKey,
  streamWriterKey,
  type TelemetryPart,
  telemetryKey,
} from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";

export interface StreamLimits {
  /** How much one lease's events may have: beyond it the oldest go. */
  readonly maxBytes: number;
  /** None that was stored longer ago is read. */
  readonly maxAgeMs: Millis;
  /** So long after the last event, nothing is left of a lease's: not its numbers either. */
  readonly keepMs: Millis;
}

/** Where events are not to be stored, live readers still have so long to take them. */
const passingMs: Millis = 60_000;
/** What one reading looks at at most, under a millisecond: Redis does nothing else meanwhile. */
const pageBytes = 256 * 1024;
const mostLooked = 2000;

/** One stream of Redis for each lease, beside its browser's partition. */
export class RedisEventStore implements EventStore {
  /** Streams that are on the list already. */
  readonly #noted = new LRUCache<LeaseId, true>({ max: 10_000 });

  constructor(
    private readonly store: ScriptStore,
    private readonly at: { readonly unnamed: ProjectId; readonly limits: StreamLimits },
  ) {}

  async append(batch: EventBatch): Promise<AppendResult> {
    const { stream, writer, number, after, silentMs, countedLost, events, isStored } = batch;
    const { maxBytes, maxAgeMs, keepMs } = this.at.limits;
    // A sweep may have taken it for one that is over.
    if (silentMs >= keepMs) this.#noted.delete(stream.lease);
    await this.#note(stream);
    const lines = events.map(({ type, category, text }) => `${type} ${category} ${text}`);
    const keyOf = this.#keysOf(stream);
    const writerKey = this.#writerKeyOf(stream, writer);
    const keyIn = (key: string): string => (key === "streamWriter" ? writerKey : keyOf(key));
    const { kind, payload } = await this.store.run("append-events", keyIn, {
      number,
      after,
      silentMs: Math.round(silentMs),
      countedLost: countedLost ?? "",
      events: lines.join("\n"),
      maxBytes,
      maxAgeMs: isStored ? maxAgeMs : passingMs,
      keepMs: isStored ? Math.min(keepMs, maxAgeMs) : passingMs,
      numbersMs: keepMs,
    });
    if (kind === "miscounted") return { last: after, lost: Number(payload), isMiscounted: true };
    const [last = 0, lost = 0] = payload.split(" ").map(Number);
    if (lost > 0) await this.#noteAgain(stream);
    return { last, lost };
  }

  async read(stream: StreamRef, query: EventQuery): Promise<EventPage> {
    const { filter, order, cursor, since, sinceAgoMs, until, limit } = query;
    const { payload } = await this.store.run("read-events", this.#keysOf(stream), {
      cursor: cursor ?? "",
      order,
      since: since ?? "",
      sinceAgo: sinceAgoMs ?? "",
      before: until ?? "",
      types: filter.types.join(" "),
      categories: filter.categories.join(" "),
      limit,
      maxBytes: pageBytes,
      maxLooked: mostLooked,
      maxAgeMs: this.at.limits.maxAgeMs,
    });
    const [head = "", ...lines] = payload.split("\n");
    const [next, more] = head.split(" ");
    return {
      next: Number(next),
      hasMore: more === "more",
      events: lines.filter((line) => line !== "").map(eventIn),
    };
  }

  async last(stream: StreamRef): Promise<number> {
    const key = this.#keysOf(stream)("streamState");
    return Number((await this.store.ask((redis) => redis.hget(key, "seq"))) ?? 0);
  }

  async has({ browser, lease }: StreamRef): Promise<boolean> {
    const member = `${browser} ${lease}`;
    const key = telemetryKey("telemetryStreams");
    return (await this.store.ask((redis) => redis.zscore(key, member))) !== null;
  }

  async findLatest(browser: BrowserId): Promise<LeaseId | undefined> {
    const lease = await this.store.ask((redis) => redis.hget(telemetryKey("telemetryLatest"), browser));
    return findLeaseId(lease ?? "");
  }

  /** Streams that have stored events, in the order in which they began. */
  async streams(from: number, most: number): Promise<readonly StoredStream[]> {
    const key = telemetryKey("telemetryStreams");
    const listed = await this.store.ask((redis) =>
      redis.zrange(key, `${from}`, `${from + most - 1}`, "WITHSCORES"),
    );
    const streams: StoredStream[] = [];
    for (let place = 0; place < listed.length; place += 2) {
      const [browser = "", lease = ""] = (listed[place] ?? "").split(" ");
      const stream = { browser: findBrowserId(browser), lease: findLeaseId(lease) };
      if (!stream.browser || !stream.lease) continue;
      const ref = { browser: stream.browser, lease: stream.lease };
      streams.push({ ...ref, beganAt: Number(listed[place + 1]), bytes: undefined });
    }
    return await Promise.all(
      streams.map(async (stream) => ({ ...stream, bytes: await this.#bytesOf(stream) })),
    );
  }

  now(): Promise<Millis> {
    return this.store.now();
  }

  async clear(stream: StreamRef): Promise<void> {
    await this.store.run("clear-stream", this.#keysOf(stream), {});
  }

  /** Nothing is left of it afterwards. */
  async drop(stream: StreamRef): Promise<void> {
    const keyOf = this.#keysOf(stream);
    const keys = [keyOf("streamEvents"), keyOf("streamState")];
    await this.store.ask((redis) => redis.unlink(...keys));
    this.#noted.delete(stream.lease);
    await this.store.run("forget-stream", keyOfTelemetry, { browser: stream.browser, lease: stream.lease });
  }

  /** Before the first event: what is on no list is swept by nobody. */
  async #note(stream: StreamRef): Promise<void> {
    if (this.#noted.has(stream.lease)) return;
    await this.store.run("note-stream", keyOfTelemetry, { browser: stream.browser, lease: stream.lease });
    this.#noted.set(stream.lease, true);
  }

  /** A Redis that has lost events may have lost the list, too. */
  async #noteAgain(stream: StreamRef): Promise<void> {
    this.#noted.delete(stream.lease);
    await this.#note(stream);
  }

  async #bytesOf(stream: StreamRef): Promise<number | undefined> {
    const keyOf = this.#keysOf(stream);
    const [bytes, isThere] = await Promise.all([
      this.store.ask((redis) => redis.hget(keyOf("streamState"), "bytes")),
      this.store.ask((redis) => redis.exists(keyOf("streamEvents"))),
    ]);
    if (bytes === null) return undefined;
    // The numbers of a stream outlive its events.
    return isThere === 1 ? Number(bytes) : 0;
  }

  #writerKeyOf({ browser }: StreamRef, writer: string): string {
    const partition = partitionOf(browser);
    return streamWriterKey(this.#projectOf(partition), partition, writer);
  }

  #projectOf(partition: Partition): ProjectId {
    return projectNamedByPartition(partition) ?? this.at.unnamed;
  }

  #keysOf({ browser, lease }: StreamRef): (key: string) => string {
    const partition = partitionOf(browser);
    const project = this.#projectOf(partition);
    return (part) => streamKey(project, partition, { part: part as StreamPart, lease });
  }
}

const keyOfTelemetry = (key: string): string => telemetryKey(key as TelemetryPart);

function eventIn(line: string): EventPage["events"][number] {
  const space = line.indexOf(" ");
  return { seq: Number(line.slice(0, space)), text: line.slice(space + 1) };
}
