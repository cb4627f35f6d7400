import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Clock, Millis } from "../../base/clock.js";
import type { DestinationId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import type { Position } from "../entry.js";
import { entriesAfter, type OnwardParts } from "../read-onward.js";
import { type Buckets, ExportFault, type OpenBucket } from "./buckets.js";
import type { Destination, DestinationStore } from "./destination.js";
import {
  Chunk,
  type ChunkBounds,
  deliverableThrough,
  folderOf,
  isDue,
  longestRetryMs,
  type Windows,
} from "./windows.js";

const pack = promisify(gzip);

interface ExportMeter {
  delivered(entries: number): void;
  failed(stage: string): void;
  /** Entries were forgotten before they were delivered. */
  gap(): void;
}

export interface DeliveryPorts {
  readonly destinations: Pick<DestinationStore, "find" | "now" | "move" | "fail">;
  readonly entries: OnwardParts;
  readonly buckets: Buckets;
  /** Names the deployment whose log it is; stands in the names of objects. */
  readonly organization: string;
  readonly windows: Windows;
  readonly bounds: ChunkBounds;
  readonly clock: Clock;
  readonly meter: ExportMeter;
  readonly log: Log;
  /** 0 to 1. */
  random(): number;
}

/** One run ends well within a session of the destination's role. */
const runMs: Millis = 5 * 60_000;
const entriesAtOnce = 500;

/**
 * Delivers what is due to one destination. Objects come first and the cursor after them: whoever is killed
 * between has its objects put again, the same bytes under the same names. Any number may do so at once.
 */
export const makeDelivery =
  (ports: DeliveryPorts) =>
  async (id: DestinationId, stopping: AbortSignal): Promise<void> => {
    const destination = await ports.destinations.find(id);
    const now = await ports.destinations.now();
    if (!destination || !isDue(destination, now, ports.windows)) return;
    try {
      await new Run(ports, destination, stopping).deliver(deliverableThrough(now, ports.windows));
    } catch (error) {
      if (!stopping.aborted) await noteFailure(ports, destination, error);
    }
  };

/** The deliveries to one destination that follow one another. */
class Run {
  #bucket: OpenBucket | undefined;
  #cursor: Position;

  constructor(
    private readonly ports: DeliveryPorts,
    private readonly destination: Destination,
    private readonly stopping: AbortSignal,
  ) {
    if (destination.cursor === undefined)
      throw new Error("a destination without a cursor is not delivered to");
    this.#cursor = destination.cursor;
  }

  async deliver(newest: Position): Promise<void> {
    const { clock } = this.ports;
    const until = clock.monotonic() + runMs;
    try {
      let isMore = true;
      while (isMore && !this.stopping.aborted && clock.monotonic() < until)
        isMore = await this.#deliverNext(newest);
    } finally {
      this.#bucket?.close();
    }
  }

  /** Whether there may be more to do. */
  async #deliverNext(newest: Position): Promise<boolean> {
    const chunk = await this.#chunk(newest);
    // Retention takes entries at any time. After the chunk, which may begin beyond what it has taken.
    const { forgotten } = await this.ports.entries.store.manifest();
    if (forgotten !== undefined && forgotten > this.#cursor) return await this.#skip(forgotten);
    const { last } = chunk;
    if (last === undefined) {
      if (this.#cursor < newest) await this.#move(newest, "nothing");
      return false;
    }
    for (const object of chunk.objects()) if (!(await this.#put(object))) return false;
    const isMoved = await this.#move(last, "delivered");
    if (isMoved) this.ports.meter.delivered(chunk.count);
    return isMoved;
  }

  async #chunk(newest: Position): Promise<Chunk> {
    const { entries, windows, bounds } = this.ports;
    const chunk = new Chunk(windows, bounds);
    for (;;) {
      const more = await entriesAfter(entries, chunk.last ?? this.#cursor, entriesAtOnce);
      const isTaken = more.every((entry) => entry.position <= newest && chunk.add(entry));
      if (more.length === 0 || !isTaken) return chunk;
    }
  }

  /** False where it is not to be delivered to any more, or is another one now. */
  async #put({ name, text }: { readonly name: string; readonly text: string }): Promise<boolean> {
    const { buckets, destinations, organization } = this.ports;
    const { destination, stopping } = this;
    const folder = folderOf(destination);
    const now = await destinations.find(destination.id);
    if (now?.revision !== destination.revision) return false;
    this.#bucket ??= await buckets.open(destination, { start: `${folder}/`, stopping });
    await this.#bucket.put(`${folder}/org_id=${organization}/${name}`, await pack(text));
    return true;
  }

  /** False where it is not to be delivered to any more, or is another one now. */
  async #skip(forgotten: Position): Promise<boolean> {
    const { meter, log } = this.ports;
    const { id } = this.destination;
    if (!(await this.#move(forgotten, { lost: tooLate }))) return false;
    meter.gap();
    log.warn(
      { destination: id, through: forgotten },
      "audit entries were forgotten before they were exported",
    );
    return true;
  }

  async #move(to: Position, how: Parameters<DestinationStore["move"]>[2]): Promise<boolean> {
    const at = { ...this.destination, cursor: this.#cursor };
    const isMoved = (await this.ports.destinations.move(at, to, how)) === "moved";
    if (isMoved) this.#cursor = to;
    return isMoved;
  }
}

const tooLate =
  "Entries were older than the log is kept before they could be delivered; they are lost to this destination";
const unreadable = "The audit log could not be read";

async function noteFailure(ports: DeliveryPorts, destination: Destination, error: unknown): Promise<void> {
  const { destinations, meter, log, random } = ports;
  const { id, revision, failures } = destination;
  const [stage, why] =
    error instanceof ExportFault ? [error.stage, error.message] : (["read_log", unreadable] as const);
  log.warn({ destination: id, stage, error: textOf(error) }, "audit export failed");
  meter.failed(stage);
  const current = (await destinations.find(id))?.failures ?? failures;
  await destinations.fail({ id, revision }, { why, delayMs: retryDelayMs(current, random()) });
}

const firstRetryMs: Millis = 60_000;

/**
 * Doubles with each failure; between half of it and the whole, so that what failed together is not tried
 * together.
 */
export const retryDelayMs = (failures: number, random: number): Millis =>
  Math.round(Math.min(firstRetryMs * 2 ** failures, longestRetryMs) * (0.5 + random / 2));
