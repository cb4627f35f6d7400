import { type Millis, timestampOf } from "../../base/clock.js";
import { groupBy } from "../../base/group-by.js";
import { type Entry, instantOf, lineOf, type Position, positionBefore } from "../entry.js";
import { keyIn } from "./buckets.js";
import type { Destination } from "./destination.js";

/**
 * How the log is cut for delivery: into windows of equal length, by when entries came into it, each of which
 * is within one hour.
 */
export interface Windows {
  readonly windowMs: Millis;
  /** A window is delivered so long after its end. */
  readonly holdMs: Millis;
}

const startOf = (at: Millis, { windowMs }: Pick<Windows, "windowMs">): Millis =>
  Math.floor(at / windowMs) * windowMs;

/** The last position of the windows that may be delivered now. */
export const deliverableThrough = (now: Millis, windows: Windows): Position =>
  positionBefore(startOf(now - windows.holdMs, windows));

/** Nothing that has failed waits longer. */
export const longestRetryMs: Millis = 3_600_000;

/**
 * Whether there may be something to deliver to it now. What is to wait longer was noted before the clock was
 * set back.
 */
export const isDue = (
  { status, cursor, nextAttemptAt = 0 }: Destination,
  now: Millis,
  windows: Windows,
): boolean =>
  status === "active" &&
  cursor !== undefined &&
  (nextAttemptAt <= now || nextAttemptAt > now + longestRetryMs) &&
  cursor < deliverableThrough(now, windows);

interface LogRow {
  readonly position: Position;
  readonly receivedAt: Millis;
  readonly line: string;
}

export interface ChunkBounds {
  readonly entries: number;
  /** Counts the lines as text; one that is longer alone makes a chunk of its own. */
  readonly bytes: number;
}

/** Entries of one window that follow one another, as many as are held in memory at once. */
export class Chunk {
  readonly #rows: LogRow[] = [];
  #bytes = 0;

  constructor(
    private readonly windows: Windows,
    private readonly bounds: ChunkBounds,
  ) {}

  /** Up to where entries are in it. */
  get last(): Position | undefined {
    return this.#rows.at(-1)?.position;
  }
  get count(): number {
    return this.#rows.length;
  }

  /** False where the entry belongs to another chunk. */
  add(entry: Entry): boolean {
    const line = lineOf(entry);
    const bytes = Buffer.byteLength(line);
    const first = this.#rows[0];
    if (first && (this.#isFull(bytes) || this.#windowOf(first.position) !== this.#windowOf(entry.position)))
      return false;
    this.#rows.push({ position: entry.position, receivedAt: entry.at, line });
    this.#bytes += bytes;
    return true;
  }

  /**
   * Its objects, one for each hour in which its requests were received: name and text. A name is made of the
   * first and the last entry of its object, and so the same name always means the same entries, whatever the
   * bounds of chunks were.
   */
  objects(): readonly { readonly name: string; readonly text: string }[] {
    const hours = groupBy(this.#rows, ({ receivedAt }) => startOf(receivedAt, { windowMs: hourMs }));
    return [...hours].map(([hour, rows]) => ({
      name: this.#nameOf(hour, rows),
      text: rows.map(({ line }) => line).join(""),
    }));
  }

  #nameOf(hour: Millis, rows: readonly LogRow[]): string {
    const [first, last] = [rows[0]?.position, rows.at(-1)?.position];
    const window = basicOf(first === undefined ? hour : this.#windowOf(first));
    return `${hourFolder(hour)}/${window}-${first}_${last}.jsonl.gz`;
  }

  #isFull(more: number): boolean {
    return this.#rows.length >= this.bounds.entries || this.#bytes + more > this.bounds.bytes;
  }

  #windowOf(position: Position): Millis {
    return startOf(instantOf(position), this.windows);
  }
}

const hourMs: Millis = 3_600_000;

function hourFolder(hour: Millis): string {
  const text = timestampOf(hour);
  return `date=${text.slice(0, "2026-01-31".length)}/hour=${text.slice("2026-01-31T".length, "2026-01-31T00".length)}`;
}

/** `20260131T120500Z`, as ISO 8601 has it without separators. */
const basicOf = (at: Millis): string => timestampOf(at).replaceAll(/[-:]|\.\d+/g, "");

/** The prefix of the keys of all objects of a destination. */
export const folderOf = (destination: Destination): string =>
  keyIn(destination, `destination_id=${destination.id}`);
