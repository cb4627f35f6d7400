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

/** Exports events to the destinations that are in use, which all leases of a daemon share. */
export class Exporters {
  readonly #used = new Map<OtlpDestinationId, Used>();

  constructor(private readonly parts: QueueParts) {}

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
    const used = { queue: new DestinationQueue(id, this.parts), users: 0 };
    this.#used.set(id, used);
    return used;
  }

  /** Once nothing waits any more, unless somebody has come to use it meanwhile. */
  async #end(used: Used): Promise<void> {
    await used.queue.drain();
    if (used.users > 0 || this.#used.get(used.queue.id) !== used) return;
    this.#used.delete(used.queue.id);
    used.queue.close();
  }
}
