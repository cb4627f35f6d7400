import { within } from "../../base/deadline.js";
import type { Millis } from "../../base/clock.js";
import type { OtlpDestinationId } from "../../base/ids.js";
import type { ExportStream } from "../ports.js";
import { DestinationQueue, type QueueParts } from "./destination-queue.js";
import type { ExportedSession } from "./exported.js";

interface Used {
  readonly queue: DestinationQueue;
  users: number;
}

/** What waits when a daemon stops is sent within this, and lost afterwards. */
const closeLimitMs: Millis = 5000;
/** A destination may have so much whatever waits for others, whose collectors may be dead. */
const ownShareBytes = 64 * 1024;

/** Exports events to the destinations that are in use, which all leases of a daemon share. */
export class Exporters {
  readonly #used = new Map<OtlpDestinationId, Used>();

  #heldBytes = 0;

  constructor(private readonly parts: QueueParts) {}

  /** What waits to be sent. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** How many destinations something is sent to, or still waits for. */
  get size(): number {
    return this.#used.size;
  }

  open(destination: OtlpDestinationId, of: Promise<ExportedSession>): ExportStream {
    const used = this.#use(destination);
    used.users += 1;
    let isOpen = true;
    return {
      add: (text) => used.queue.add({ text, of }),
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        used.users -= 1;
        if (used.users === 0) void this.#end(used);
      },
    };
  }

  /** Sends what waits, within a limit. */
  async close(): Promise<void> {
    const all = [...this.#used.values()].map(({ queue }) => queue);
    const drained = Promise.all(all.map((queue) => queue.drain()));
    const limit = { what: "the last telemetry", limitMs: closeLimitMs };
    await within(this.parts.clock, limit, drained).catch(() => {});
    for (const queue of all) queue.close();
    this.#used.clear();
  }

  #use(id: OtlpDestinationId): Used {
    const known = this.#used.get(id);
    if (known) return known;
    const used = { queue: this.#openQueue(id), users: 0 };
    this.#used.set(id, used);
    return used;
  }

  #openQueue(id: OtlpDestinationId): DestinationQueue {
    return new DestinationQueue(id, { ...this.parts, hold: (bytes, own) => this.#hold(bytes, own) });
  }

  #hold(bytes: number, own: number): boolean {
    const isAboveAll = this.#heldBytes + bytes > this.parts.limits.totalQueueBytes;
    if (bytes > 0 && isAboveAll && own + bytes > ownShareBytes) return false;
    this.#heldBytes += bytes;
    return true;
  }

  /** Once nothing waits any more, unless somebody has come to use it meanwhile. */
  async #end(used: Used): Promise<void> {
    await used.queue.drain();
    if (used.users > 0 || this.#used.get(used.queue.id) !== used) return;
    this.#used.delete(used.queue.id);
    used.queue.close();
  }
}
