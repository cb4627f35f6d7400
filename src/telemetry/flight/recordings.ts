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

/** Writes out what browsers have recorded, where they end by a fault. */
export class Recordings {
  constructor(private readonly ports: RecordingPorts) {}

  /** What has been recorded by now is kept. Never rejects; without Redis it is lost. */
  async over(flight: FlightRecorder, { why, ...end }: RecordedEnd): Promise<void> {
    const reason = faults.find((fault) => fault === why);
    if (reason === undefined) return;
    flight.state(reason);
    const { lease } = end;
    const stored: StoredRecording = { ...(lease && { lease }), recording: flight.recording(reason, end) };
    await this.ports
      .keepRecording(flight.browser, JSON.stringify(stored))
      .catch((error: unknown) =>
        this.ports.log.warn({ browser: flight.browser, error: textOf(error) }, "flight recording lost"),
      );
  }
}

const faults: readonly RecordingReason[] = recordingReasons.filter((reason) => reason !== "requested");
