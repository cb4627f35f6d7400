import { parseTrace } from "../base/trace-context.js";
import type { CapturingLease } from "../spec/caller.js";
import type { SeenEvent } from "./event.js";
import type { Recorder } from "./recorder.js";
import { captureSettings } from "./settings.js";

/** Adds one event to those of a lease, where its category is captured. Never throws and never waits. */
export type TellHolder = (lease: CapturingLease, event: SeenEvent) => void;

export const makeTellHolder =
  (recorder: Recorder): TellHolder =>
  ({ browser, lease, telemetry, trace }, event) => {
    const settings = captureSettings(telemetry);
    if (!settings?.categories.has(event.category)) return;
    const sink = recorder.open({ browser, lease }, settings, { trace: parseTrace(trace) });
    sink.emit(event);
    void sink.close();
  };
