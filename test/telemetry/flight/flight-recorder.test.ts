import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { newLeaseId } from "../../../src/base/ids.js";
import type { BrowserId } from "../../../src/base/ids.js";
import { flightRecordingParser } from "../../../src/spec/flight-recording.js";
import { FlightRecorder } from "../../../src/telemetry/flight/flight-recorder.js";
import { protocolMethods } from "../../../src/telemetry/flight/protocol-methods.js";

const browser = "poolpoolpoolbrowser00001" as BrowserId;
const limit = 2 ** 30;
const mostBytes = 32 * 1024;
const make = (): FlightRecorder =>
  new FlightRecorder(browser, { clock: systemClock, memoryLimitBytes: limit });
const statesOf = (flight: FlightRecorder): string[] =>
  flight.recording("requested").states.map(({ state }) => state);

test("it tells the last commands of the present holder, how many there were, and what became of the browser", () => {
  const flight = make();
  const lease = newLeaseId();
  for (const state of ["launch_spawn", "launched"]) flight.state(state);
  flight.begins(lease);
  for (const method of ["Page.enable", "Page.navigate"]) flight.sent(method);
  flight.request("a.example", "denied");
  flight.request("a.example", "denied");
  flight.request("b.example", "failed");
  flight.consoleError("a.example");
  flight.memory({ bytes: 5, peakBytes: 7, outOfMemoryKills: 0 });
  const told = flight.recording("requested", { lease });
  expect(flightRecordingParser.value(told)).toMatchObject({
    session_id: browser,
    reason: "requested",
    states: [{ state: "launch_spawn" }, { state: "launched" }, { state: "leased" }],
    commands: { count: 2, last: [{ method: "Page.enable" }, { method: "Page.navigate" }] },
    failed_requests: [
      { host: "a.example", reason: "denied", count: 2 },
      { host: "b.example", reason: "failed", count: 1 },
    ],
    console_errors: [{ host: "a.example", count: 1 }],
    memory: { limit_bytes: limit, peak_bytes: 7, out_of_memory_kills: 0, samples: [{ bytes: 5 }] },
  });
});

test("the next holder is told nothing of the former one, and nobody of a lease that is over", () => {
  const flight = make();
  const [former, next] = [newLeaseId(), newLeaseId()];
  flight.begins(former);
  flight.sent("Page.enable");
  flight.request("secret.example", "denied");
  flight.consoleError("secret.example");
  flight.memory({ bytes: 1 });
  const nothing = {
    commands: { count: 0, last: [] },
    failed_requests: [],
    console_errors: [],
    memory: { samples: [] },
  };
  expect(flight.recording("crashed", { lease: next })).toMatchObject(nothing);
  expect(flight.recording("crashed")).toMatchObject(nothing);
  flight.ends(former);
  expect(flight.recording("crashed", { lease: former })).toMatchObject(nothing);
  flight.begins(next);
  expect(flight.recording("crashed", { lease: next })).toMatchObject(nothing);
  expect(statesOf(flight)).toEqual(["leased", "released", "leased"]);
});

test("it is bounded, whatever comes and however often", () => {
  const flight = make();
  const lease = newLeaseId();
  flight.begins(lease);
  const longest = [...protocolMethods].toSorted((one, other) => other.length - one.length)[0] ?? "";
  for (let at = 0; at < 100_000; at += 1) {
    flight.sent(at % 2 === 0 ? longest : `Page.${"x".repeat(at % 1000)}`);
    flight.request(`${at}${"h".repeat(300)}`, "private");
    flight.consoleError(`${at}${"h".repeat(300)}`);
    flight.state(`launch_extensions_${at}`);
    flight.memory({ bytes: at, peakBytes: at, outOfMemoryKills: at });
  }
  const text = JSON.stringify(flight.recording("launch_failed", { lease, error: "e".repeat(100_000) }));
  expect(Buffer.byteLength(text)).toBeLessThan(mostBytes);
  const { commands } = flight.recording("requested", { lease });
  expect(commands.count).toBe(100_000);
  expect(commands.last.map(({ method }) => method)).toEqual(
    Array.from({ length: 64 }, (_, at) => (at % 2 === 0 ? longest : "other")),
  );
});

test("a method that is none of the protocol's is no text of the client's", () => {
  const flight = make();
  const lease = newLeaseId();
  flight.begins(lease);
  for (const method of ["Page.myPassword", "hunter2", "Page.enable "]) flight.sent(method);
  expect(flight.recording("requested", { lease }).commands.last.map(({ method }) => method)).toEqual([
    "other",
    "other",
    "other",
  ]);
});

test("it knows the protocol's commands that the gate judges, all and no others", () => {
  const judged = readFileSync(join(import.meta.dirname, "../../gateway/gates/judged-commands.txt"), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(" ")[0] ?? "");
  expect([...protocolMethods].toSorted()).toEqual(judged.toSorted());
});

test("pressure is told once for each time that it comes, and each end for want of memory", () => {
  const flight = make();
  for (const share of [0.5, 0.95, 0.97, 0.5, 0.95]) flight.memory({ bytes: share * limit });
  flight.memory({ bytes: 1, outOfMemoryKills: 1 });
  flight.exited({ code: null, signal: "SIGKILL", memory: { bytes: 0, outOfMemoryKills: 2 } });
  expect(statesOf(flight)).toEqual([
    "memory_pressure",
    "memory_pressure",
    "out_of_memory",
    "out_of_memory",
    "exited",
  ]);
  expect(flight.recording("crashed")).toMatchObject({
    exit: { signal: "SIGKILL" },
    memory: { out_of_memory_kills: 2 },
  });
});
