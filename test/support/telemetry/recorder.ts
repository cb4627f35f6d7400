import { systemClock } from "../../../src/base/clock.js";
import type { Log } from "../../../src/base/log.js";
import type { SlotPorts } from "../../../src/node/slots.js";
import { BrowserTelemetry } from "../../../src/telemetry/browser-telemetry.js";
import type { RecorderLimits } from "../../../src/telemetry/lease-recorder.js";
import type { EventStore } from "../../../src/telemetry/ports.js";
import { Recorder } from "../../../src/telemetry/recorder.js";

const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
export const recorderLimits: RecorderLimits = {
  eventBytes: 64 * 1024,
  screenshotBytes: 1024 * 1024,
  queueBytes: 1024 * 1024,
  daemonBytes: 4 * 1024 * 1024,
  lossCountBytes: 64 * 1024,
};

/** What is lost, by reason. */
export class LossCounts {
  readonly lostBy: Record<string, number> = {};
  recordedCount = 0;
  recorded(count: number): void {
    this.recordedCount += count;
  }
  lost(reason: string, count: number): void {
    this.lostBy[reason] = (this.lostBy[reason] ?? 0) + count;
  }
}

export const makeRecorder = (
  store: Pick<EventStore, "append">,
  parts: Partial<ConstructorParameters<typeof Recorder>[0]> = {},
): Recorder =>
  new Recorder({
    store,
    clock: systemClock,
    log: silent,
    meter: new LossCounts(),
    limits: recorderLimits,
    ...parts,
  });

/** The telemetry of browsers of a node whose events go into `recorder`. */
export const telemetryInto =
  (recorder: Recorder): SlotPorts["makeTelemetry"] =>
  ({ browser, template }) =>
    new BrowserTelemetry({ browser, launched: template.telemetry, recorder });

const nowhere: Pick<EventStore, "append"> = { append: async () => ({ last: 0, lost: 0 }) };
export const unstoredTelemetry: SlotPorts["makeTelemetry"] = telemetryInto(makeRecorder(nowhere));
