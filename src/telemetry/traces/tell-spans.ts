import type { CapturingLease } from "../../spec/caller.js";
import type { Recorder } from "../recorder.js";
import { captureSettings } from "../settings.js";
import type { Span } from "./span.js";

/** Exports spans of a lease, where it exports anything. Never throws and never waits. */
export type TellSpans = (lease: CapturingLease, spans: readonly Span[]) => void;

export const makeTellSpans =
  (recorder: Pick<Recorder, "open">): TellSpans =>
  ({ browser, lease, telemetry }, spans) => {
    const settings = captureSettings(telemetry);
    if (!settings?.destination) return;
    const sink = recorder.open({ browser, lease }, settings);
    for (const span of spans) sink.span(span);
    void sink.close();
  };
