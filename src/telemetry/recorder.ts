import type { LeaseId } from "../base/ids.js";
import type { TraceContext } from "../base/trace-context.js";
import { LeaseRecorder, type RecorderParts, type RecorderShared } from "./lease-recorder.js";
import type { StreamRef } from "./ports.js";
import type { CaptureSettings } from "./settings.js";
import { noLosses, type StoreLosses } from "./store-losses.js";

interface OpenedRecorder {
  readonly trace?: TraceContext | undefined;
  readonly losses?: StoreLosses;
}

/** Takes events off the path of whoever sees them and stores them in batches; one for each daemon. */
export class Recorder {
  readonly #open = new Map<LeaseRecorder, StoreLosses>();
  /** Leases whose last recorder still stores what it had. */
  readonly #endings = new Map<LeaseId, Promise<void>>();
  #heldBytes = 0;
  readonly #shared: RecorderShared;

  constructor(parts: RecorderParts) {
    this.#shared = {
      ...parts,
      hold: (bytes, isBeyond) => this.#hold(bytes, isBeyond),
      closing: (lease, ending) => void this.#endings.set(lease, ending),
      closed: (recorder, ending) => this.#closed(recorder, ending),
    };
  }

  /** What waits to be stored. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  open(
    stream: StreamRef,
    settings: CaptureSettings,
    { trace, losses = this.#lossesOf(stream.lease) }: OpenedRecorder = {},
  ): LeaseRecorder {
    // Where a PATCH switches off and on again, what was before is stored before what comes.
    const before = this.#endings.get(stream.lease);
    const recorder = new LeaseRecorder(stream, settings, { ...this.#shared, before, losses });
    recorder.trace = trace;
    this.#open.set(recorder, losses);
    return recorder;
  }

  /** Whoever tells of a single event goes on from the numbers of those who tell of the same lease here. */
  #lossesOf(lease: LeaseId): StoreLosses {
    for (const [{ stream }, losses] of this.#open) if (stream.lease === lease) return losses;
    return noLosses();
  }

  /** Stores what waits, within a limit. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((recorder) => recorder.close()));
  }

  #closed(recorder: LeaseRecorder, ending: Promise<void> | undefined): void {
    this.#open.delete(recorder);
    const { lease } = recorder.stream;
    if (this.#endings.get(lease) === ending) this.#endings.delete(lease);
  }

  #hold(bytes: number, isBeyond = false): boolean {
    const isAbove = this.#heldBytes + bytes > this.#shared.limits.daemonBytes;
    if (bytes > 0 && isAbove && !isBeyond) return false;
    this.#heldBytes += bytes;
    return true;
  }
}
