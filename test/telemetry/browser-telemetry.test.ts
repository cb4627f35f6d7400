import { expect, test } from "vitest";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import type { Telemetry } from "../../src/spec/bodies.js";
import { BrowserTelemetry, type Capture } from "../../src/telemetry/browser-telemetry.js";
import type { EventBatch } from "../../src/telemetry/ports.js";
import { makeRecorder } from "../support/telemetry/recorder.js";

const on = { enabled: true };
const text = (telemetry: Telemetry): string => JSON.stringify(telemetry);

function open(launched?: Telemetry) {
  const batches: EventBatch[] = [];
  const monitor: string[] = [];
  const recorder = makeRecorder({ append: async (batch) => ({ last: batches.push(batch), lost: 0 }) });
  const telemetry = new BrowserTelemetry({
    browser: newBrowserId(onDemandPartition),
    launched,
    recorder,
    startMonitor: ({ settings }) => {
      monitor.push(`start ${[...settings.categories].toSorted().join(" ")}`);
      return {
        started: Promise.resolve(),
        apply: async (categories) => void monitor.push(`apply ${[...categories].toSorted().join(" ")}`),
        stop: async () => void monitor.push("stop"),
      };
    },
  });
  const seen: (string | undefined)[] = [];
  const isOn = (capture: Capture | undefined) =>
    capture && [...capture.settings.categories].toSorted().join(" ");
  telemetry.watch((capture) => seen.push(isOn(capture)));
  return { telemetry, batches, monitor, recorder, seen };
}
const usual = "captcha connection control monitor system";
const emit = (telemetry: BrowserTelemetry, type: string): void =>
  void telemetry.capture?.sink.emit({ type, category: "control", source: { kind: "kernel_api" }, data: {} });

test("a lease captures what its browser was launched with, and what it changes of that, until it is over", async () => {
  const { telemetry, batches, recorder, seen } = open({ enabled: true });
  const [first, second] = [newLeaseId(), newLeaseId()];
  expect(telemetry.capture).toBeUndefined();
  telemetry.told(first, { revision: 0, telemetry: text({ browser: { platform: on } }) });
  emit(telemetry, "of_the_first");
  await telemetry.over(first);
  expect(telemetry.capture).toBeUndefined();
  telemetry.told(second, { revision: 0 });
  emit(telemetry, "of_the_second");
  await telemetry.over(second);
  await recorder.close();
  expect(seen).toEqual([
    undefined,
    `${usual.replace("system", "platform system")}`,
    undefined,
    usual,
    undefined,
  ]);
  expect(batches.map(({ stream, events }) => [stream.lease, events.map(({ type }) => type)])).toEqual([
    [first, ["of_the_first"]],
    [second, ["of_the_second"]],
  ]);
});

test("a change counts once, and an older word does not undo it", () => {
  const { telemetry, seen } = open();
  const lease = newLeaseId();
  telemetry.told(lease, { revision: 0 });
  telemetry.told(lease, { revision: 7, telemetry: text({ enabled: true }) });
  telemetry.told(lease, { revision: 7, telemetry: text({ enabled: true }) });
  telemetry.told(lease, { revision: 0 });
  expect(seen.filter(Boolean)).toEqual([usual]);
  telemetry.told(lease, { revision: 8, telemetry: text({ enabled: false }) });
  expect([seen.at(-1), telemetry.capture]).toEqual([undefined, undefined]);
});

test("the end of a lease that is not the present one changes nothing", async () => {
  const { telemetry } = open({ enabled: true });
  const [former, present] = [newLeaseId(), newLeaseId()];
  telemetry.told(former, { revision: 0 });
  telemetry.told(present, { revision: 0 });
  await telemetry.over(former);
  expect(telemetry.capture?.lease).toBe(present);
});

test("pages are watched only while a category needs it, and anew after a restart", async () => {
  const { telemetry, monitor } = open();
  const lease = newLeaseId();
  telemetry.told(lease, { revision: 1, telemetry: text({ enabled: true }) });
  expect(monitor).toEqual([]);
  telemetry.told(lease, { revision: 2, telemetry: text({ browser: { page: on } }) });
  telemetry.told(lease, { revision: 3, telemetry: text({ browser: { page: on, network: on } }) });
  telemetry.restarted();
  telemetry.told(lease, { revision: 4, telemetry: text({ enabled: true }) });
  telemetry.restarted();
  telemetry.told(lease, { revision: 5, telemetry: text({ browser: { console: on } }) });
  await telemetry.over(lease);
  expect(monitor.map((told) => told.split(" ")[0])).toEqual([
    "start",
    "apply",
    "stop",
    "start",
    "stop",
    "start",
    "stop",
  ]);
});

test("a lease's trace counts whoever brings it, also with a word that changes nothing else", async () => {
  const { telemetry } = open({ enabled: true });
  const [lease, next] = [newLeaseId(), newLeaseId()];
  const trace = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  // A PATCH is told without it; the client that connects afterwards brings what the record has.
  telemetry.told(lease, { revision: 3, telemetry: text({ enabled: true }) });
  expect(telemetry.capture?.sink.trace).toBeUndefined();
  telemetry.told(lease, { revision: 3, trace });
  expect(telemetry.capture?.sink.trace).toMatchObject({ traceId: "a".repeat(32) });
  telemetry.told(lease, { revision: 4, telemetry: text({ enabled: false }) });
  telemetry.told(lease, { revision: 5, telemetry: text({ enabled: true }) });
  expect(telemetry.capture?.sink.trace).toMatchObject({ spanId: "b".repeat(16) });
  telemetry.told(next, { revision: 0 });
  expect(telemetry.capture?.sink.trace).toBeUndefined();
});

test("a lease stays in the trace that its first client has brought, also where its capture is switched off and on", () => {
  const { telemetry } = open({ enabled: true });
  const [lease, next] = [newLeaseId(), newLeaseId()];
  telemetry.told(lease, { revision: 0 });
  const brought = { traceId: "c".repeat(32), spanId: "d".repeat(16), isSampled: true, state: "a=b" };
  if (telemetry.capture) telemetry.capture.sink.trace = brought;
  telemetry.told(lease, { revision: 1, telemetry: text({ enabled: false }) });
  telemetry.told(lease, { revision: 2, telemetry: text({ enabled: true }) });
  expect(telemetry.capture?.sink.trace).toEqual(brought);
  telemetry.told(next, { revision: 0 });
  expect(telemetry.capture?.sink.trace).toBeUndefined();
});
