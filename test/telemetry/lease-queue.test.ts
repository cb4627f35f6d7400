import { expect, test } from "vitest";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import type { SeenEvent } from "../../src/telemetry/event.js";
import type { StreamRef } from "../../src/telemetry/ports.js";
import { captureSettings, type CaptureSettings } from "../../src/telemetry/settings.js";
import { makeRecorder, recorderLimits } from "../support/telemetry/recorder.js";

const stream = (): StreamRef => ({ browser: newBrowserId(onDemandPartition), lease: newLeaseId() });
const settings = captureSettings({ browser: { control: { enabled: true } } }) as CaptureSettings;
const seen = (data: Record<string, unknown> = {}): SeenEvent => ({
  type: "api_call",
  category: "control",
  source: { kind: "kernel_api" },
  data,
});

test("all leases of a daemon together hold no more than it may", () => {
  const limits = { ...recorderLimits, queueBytes: 10_000, daemonBytes: 15_000 };
  const recorder = makeRecorder({ append: () => new Promise(() => {}) }, { limits });
  const sinks = [0, 1, 2].map(() => recorder.open(stream(), settings));
  for (const sink of sinks) while (sink.emit(seen({ text: "x".repeat(500) })));
  expect(recorder.heldBytes).toBeLessThanOrEqual(15_000);
  expect(sinks.every(({ lost }) => lost === 1)).toBe(true);
});

test("events that count lost ones have room beyond both bounds in each lease, and no more than that", () => {
  const limits = { ...recorderLimits, queueBytes: 10_000, daemonBytes: 15_000, lossCountBytes: 20_000 };
  const recorder = makeRecorder({ append: () => new Promise(() => {}) }, { limits });
  const sinks = [0, 1, 2].map(() => recorder.open(stream(), settings));
  for (const sink of sinks) while (sink.emit(seen({ text: "x".repeat(500) })));
  const full = recorder.heldBytes;
  const count = { ...seen({ text: "x".repeat(200) }), countsLost: true } as const;
  for (const sink of sinks) {
    const taken = Array.from({ length: 100 }, () => sink.emit(count)).filter(Boolean);
    expect(taken.length).toBeGreaterThan(40);
    expect(sink.emit(seen())).toBe(false);
  }
  expect(recorder.heldBytes - full).toBeLessThanOrEqual(3 * 20_000);
  expect(recorder.heldBytes - full).toBeGreaterThan(3 * 19_000);
});
