import { within } from "../../base/deadline.js";
import type { Millis } from "../../base/clock.js";
import type { OtlpDestinationId } from "../../base/ids.js";
import type { ExportStream } from "../ports.js";
import { DestinationQueue, type QueueParts } from "./destination-queue.js";
import { type ExportedSession, type Signal, spanText } from "./exported.js";

interface Used {
  readonly queue: DestinationQueue;
  users: number;
}

/** What waits when a daemon stops is sent within this, and lost afterwards. */
const closeLimitMs: Millis = 5000;
/** A destination may have so much whatever waits for others, whose collectors may be dead. */
const ownShareBytes = 64 * 1024;

/** Exports events and spans to the destinations that are in use, which all leases of a daemon share. */
export class Exporters {
  readonly #used = new Map<string, Used>();

  #heldBytes = 0;

  constructor(private readonly parts: QueueParts) {}

  /** What waits to be sent. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** How many destinations something is sent to, or still waits for; one with traces counts twice. */
  get size(): number {
    return this.#used.size;
  }

  open(destination: OtlpDestinationId, of: Promise<ExportedSession>): ExportStream {
    const logs = this.#enter(destination, "logs");
    let traces: Used | undefined;
    let isOpen = true;
    return {
      add: (text, at) => logs.queue.add({ text, of, ...at }),
      addSpan: (span) => {
        if (!isOpen) return false;
        traces ??= this.#enter(destination, "traces");
        return traces.queue.add({ text: spanText(span), of });
      },
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#release(logs);
        if (traces) this.#release(traces);
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

  #enter(id: OtlpDestinationId, signal: Signal): Used {
    const key = keyOf({ id, signal });
    const used = this.#used.get(key) ?? { queue: this.#openQueue(id, signal), users: 0 };
    this.#used.set(key, used);
    used.users += 1;
    return used;
  }

  #release(used: Used): void {
    used.users -= 1;
    if (used.users === 0) void this.#end(used);
  }

  #openQueue(id: OtlpDestinationId, signal: Signal): DestinationQueue {
    const hold = (bytes: number, own: number): boolean => this.#hold(bytes, own);
    return new DestinationQueue(id, signal, { ...this.parts, hold });
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
    const key = keyOf(used.queue);
    if (used.users > 0 || this.#used.get(key) !== used) return;
    this.#used.delete(key);
    used.queue.close();
  }
}

const keyOf = ({ id, signal }: Pick<DestinationQueue, "id" | "signal">): string => `${signal} ${id}`;
