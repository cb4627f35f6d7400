import { readWhole } from "../base/read-whole.js";
import { Readable } from "node:stream";
import { LRUCache } from "lru-cache";
import PQueue from "p-queue";
import type { Archives, Staging } from "../archive/archives.js";
import type { Clock, Millis } from "../base/clock.js";
import { TimeLimitReached, within } from "../base/deadline.js";
import { RemudaError } from "../base/errors.js";
import type { Digest } from "../base/ids.js";
import type { Entry } from "./entry.js";
import type { NgramFilter } from "./ngram-filter.js";
import { packRows, type Segment, SegmentRows } from "./segment.js";

interface SegmentFilesParts {
  readonly archives: Pick<Archives, "put" | "open">;
  readonly staging: Pick<Staging, "take">;
  readonly clock: Clock;
}

/** Pages of a list read the same segment again and again: this is two or three of the largest. */
const rowsBytes = 64 * 2 ** 20;
const gramsBytes = 16 * 2 ** 20;
const mostBytes = 2 ** 30;
/** What an entry may have at most once it is packed: its texts are cut (docs/audit.md#entries). */
const entryBytes = 4096;
const longestGramsBytes = 2 ** 20;
/** So many segments are unpacked at once, of some 20 MiB each, however many callers search. */
const readsAtOnce = 2;
/** Whoever waits for a segment is told no later that it cannot be had now: a client waits for a minute. */
const waitMs: Millis = 30_000;

/** What was read of archives; the last of it is kept in memory. */
interface KeptValues<Value extends object> {
  readonly cache: LRUCache<Digest, Value>;
  readonly reading: Map<Digest, Promise<Value>>;
}
const keptWithin = <Value extends object>(
  maxSize: number,
  bytesOf: (value: Value) => number,
): KeptValues<Value> => ({
  cache: new LRUCache({ maxSize, sizeCalculation: (value) => bytesOf(value) + 1 }),
  reading: new Map(),
});

/** Segments in the archives. */
export class SegmentFiles {
  readonly #rows = keptWithin<SegmentRows>(rowsBytes, ({ sizeBytes }) => sizeBytes);
  readonly #grams = keptWithin<NgramFilter>(gramsBytes, ({ length }) => length);
  readonly #reads = new PQueue({ concurrency: readsAtOnce });

  constructor(private readonly parts: SegmentFilesParts) {}

  /** Resolves once both archives are durable. */
  async put(entries: readonly Entry[]): Promise<Pick<Segment, "rows" | "grams">> {
    const { rows, grams } = await packRows(entries);
    return { rows: await this.#put(rows), grams: await this.#put(grams) };
  }

  /** Throws `store_unavailable` where the archives do not answer in time. */
  rows({ rows, count }: Pick<Segment, "rows" | "count">): Promise<SegmentRows> {
    return this.#once(this.#rows, rows, async () =>
      SegmentRows.of(await this.#read(rows, count * entryBytes)),
    );
  }

  grams({ grams }: Pick<Segment, "grams">): Promise<NgramFilter> {
    return this.#once(this.#grams, grams, () => this.#read(grams, longestGramsBytes));
  }

  /**
   * One read for all who wait for it. It holds its turn until it has ended, however long nobody waits any
   * more: a disk that does not answer keeps one of the few threads that a process has for files.
   */
  async #once<Value extends object>(
    { cache, reading }: KeptValues<Value>,
    digest: Digest,
    read: () => Promise<Value>,
  ): Promise<Value> {
    const known = cache.get(digest);
    if (known) return known;
    const begin = async (): Promise<Value> => {
      const value = await read();
      cache.set(digest, value);
      return value;
    };
    const begun = reading.get(digest) ?? this.#reads.add(begin).finally(() => reading.delete(digest));
    reading.set(digest, begun);
    return await this.#inTime(begun);
  }

  async #inTime<Value>(reading: Promise<Value>): Promise<Value> {
    const limit = { what: "reading a segment of the audit log", limitMs: waitMs };
    try {
      return await within(this.parts.clock, limit, reading);
    } catch (error) {
      throw error instanceof TimeLimitReached ? unavailable("did not answer in time") : error;
    }
  }

  async #read(digest: Digest, longestBytes: number): Promise<Buffer> {
    const whole = await readWhole(await this.parts.archives.open(digest), longestBytes);
    if (!whole) throw unavailable("answered with more than was put there");
    return whole;
  }

  async #put(bytes: Buffer): Promise<Digest> {
    const staged = await this.parts.staging.take(Readable.from([bytes]), { maxBytes: mostBytes });
    try {
      await this.parts.archives.put(staged.digest, staged.path);
      return staged.digest;
    } finally {
      await staged.discard();
    }
  }
}

const unavailable = (what: string): RemudaError =>
  new RemudaError("store_unavailable", { message: `The store of archives ${what}` });
