import type { BrowserId, LeaseId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import { type RecordingReason, recordingReasons, type StoredRecording } from "../../spec/flight-recording.js";
import type { FlightRecorder } from "./flight-recorder.js";

export interface RecordingPorts {
  /** Keeps the JSON of a `StoredRecording` for a while. */
  keepRecording(browser: BrowserId, text: string): Promise<void>;
  readonly log: Log;
}

interface RecordedEnd {
  readonly why: string;
  readonly lease?: LeaseId | undefined;
  /** Only of a launch: a browser that ran may have written what its pages say. */
  readonly error?: string;
}

/** Recordings that wait for Redis here; each has at most 32 KiB. */
const mostWaiting = 64;

/**
 * Writes out what browsers have recorded, where they end by a fault; what Redis does not take waits for it.
 */
export class Recordings {
  readonly #waiting = new Map<BrowserId, string>();

  constructor(private readonly ports: RecordingPorts) {}

  /** What has been recorded by now is kept, or waits for `retry`. Never rejects. */
  async over(flight: FlightRecorder, { why, ...end }: RecordedEnd): Promise<void> {
    const reason = faults.find((fault) => fault === why);
    if (reason === undefined) return;
    flight.state(reason);
    const { lease } = end;
    const stored: StoredRecording = { ...(lease && { lease }), recording: flight.recording(reason, end) };
    const text = JSON.stringify(stored);
    if (!(await this.#isKept(flight.browser, text))) this.#wait(flight.browser, text);
  }

  /** Keeps what waits, the oldest first, as far as Redis takes it. Never rejects. */
  async retry(): Promise<void> {
    for (const [browser, text] of this.#waiting) {
      if (!(await this.#isKept(browser, text))) return;
      // A retry beside this one may have kept it first.
      this.#waiting.delete(browser);
    }
  }

  async #isKept(browser: BrowserId, text: string): Promise<boolean> {
    try {
      await this.ports.keepRecording(browser, text);
      return true;
    } catch (error) {
      this.ports.log.warn({ browser, error: textOf(error) }, "flight recording could not be kept yet");
      return false;
    }
  }

  #wait(browser: BrowserId, text: string): void {
    const [oldest] = this.#waiting.keys();
    if (this.#waiting.size >= mostWaiting && oldest !== undefined) {
      this.#waiting.delete(oldest);
      this.ports.log.warn({ browser: oldest }, "flight recording lost: too many wait for Redis");
    }
    this.#waiting.set(browser, text);
  }
}

const faults: readonly RecordingReason[] = recordingReasons.filter((reason) => reason !== "requested");
