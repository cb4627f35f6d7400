import { systemClock } from "../../../src/base/clock.js";
import type { BrowserId } from "../../../src/base/ids.js";
import { FlightRecorder } from "../../../src/telemetry/flight/flight-recorder.js";
import { median } from "./figures.js";
import { times } from "./runs.js";

const calls = 1_000_000;
const pieces = 7;
const methods = ["Runtime.evaluate", "Input.dispatchMouseEvent", "DOM.getDocument", "Page.navigate"];

/** Processor time that a flight recorder takes of each command, in µs: with it, less the same without it. */
export function flightCost(): number {
  const flight = new FlightRecorder("benchbenchbenchbench0001" as BrowserId, {
    clock: systemClock,
    memoryLimitBytes: 2 ** 30,
  });
  const recorders = { on: flight, off: { sent() {} } };
  const found = times(pieces + 1).map((piece) => {
    const names = piece % 2 === 0 ? (["off", "on"] as const) : (["on", "off"] as const);
    const costs = Object.fromEntries(names.map((name) => [name, costOfCalls(recorders[name])]));
    return (costs["on"] ?? 0) - (costs["off"] ?? 0);
  });
  // The first piece warms both up.
  return Math.max(0, median(found.slice(1)));
}

function costOfCalls(recorder: Pick<FlightRecorder, "sent">): number {
  const before = process.cpuUsage();
  for (let call = 0; call < calls; call += 1) recorder.sent(methods[call % methods.length] ?? "");
  const { user, system } = process.cpuUsage(before);
  return (user + system) / calls;
}
