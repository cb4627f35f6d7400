import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { LRUCache } from "lru-cache";
import PQueue from "p-queue";
import type { Archives, Staging } from "../archive/archives.js";
import type { Digest } from "../base/ids.js";
import type { Entry } from "./entry.js";
import type { Grams } from "./grams.js";
import { packRows, type Segment, SegmentRows } from "./segment.js";

interface SegmentFilesParts {
  readonly archives: Pick<Archives, "put" | "open">;
  readonly staging: Pick<Staging, "take">;
}

/** Pages of a list read the same segment again and again: this is two or three of the largest. */
const rowsBytes = 64 * 2 ** 20;
const gramsBytes = 16 * 2 ** 20;
const mostBytes = 2 ** 30;
/** So many segments are unpacked at once, of some 20 MiB each, however many callers search. */
const readsAtOnce = 2;

/** Segments in the archives, the last ones read kept in memory. */
export class SegmentFiles {
  readonly #rows = new LRUCache<Digest, SegmentRows>({
    maxSize: rowsBytes,
    sizeCalculation: ({ sizeBytes }) => sizeBytes + 1,
  });
  readonly #grams = new LRUCache<Digest, Grams>({
    maxSize: gramsBytes,
    sizeCalculation: ({ length }) => length + 1,
  });

  readonly #reading = new Map<Digest, Promise<SegmentRows>>();
  readonly #reads = new PQueue({ concurrency: readsAtOnce });

  constructor(private readonly parts: SegmentFilesParts) {}

  /** Resolves once both archives are durable. */
  async put(entries: readonly Entry[]): Promise<Pick<Segment, "rows" | "grams">> {
    const { rows, grams } = await packRows(entries);
    return { rows: await this.#put(rows), grams: await this.#put(grams) };
  }

  async rows({ rows: digest }: Pick<Segment, "rows">): Promise<SegmentRows> {
    const kept = this.#rows.get(digest);
    if (kept) return kept;
    const reading = this.#reading.get(digest) ?? this.#unpack(digest);
    this.#reading.set(digest, reading);
    return reading;
  }

  #unpack(digest: Digest): Promise<SegmentRows> {
    return this.#reads
      .add(async () => {
        const rows = await SegmentRows.of(await this.#read(digest));
        this.#rows.set(digest, rows);
        return rows;
      })
      .finally(() => this.#reading.delete(digest));
  }

  async grams({ grams: digest }: Pick<Segment, "grams">): Promise<Grams> {
    const kept = this.#grams.get(digest);
    if (kept) return kept;
    const grams = await this.#read(digest);
    this.#grams.set(digest, grams);
    return grams;
  }

  async #read(digest: Digest): Promise<Buffer> {
    return await buffer(await this.parts.archives.open(digest));
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
