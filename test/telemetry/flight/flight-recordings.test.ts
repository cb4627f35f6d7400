import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { type BrowserId, newLeaseId } from "../../../src/base/ids.js";
import type { Log } from "../../../src/base/log.js";
import { storedRecordingParser } from "../../../src/spec/flight-recording.js";
import { FlightRecorder } from "../../../src/telemetry/flight/flight-recorder.js";
import { Recordings } from "../../../src/telemetry/flight/recordings.js";
import { scriptHostOf } from "../../../src/telemetry/flight/flight-recorder.js";

const idOf = (number: number): BrowserId =>
  `poolpoolpoolbrowser${String(number).padStart(5, "0")}` as BrowserId;
const flightOf = (number: number): FlightRecorder =>
  new FlightRecorder(idOf(number), { clock: systemClock, memoryLimitBytes: 2 ** 30 });

/** Somewhere to keep recordings that can be away, and what was warned of meanwhile. */
function bed() {
  const [kept, warnings] = [new Map<BrowserId, string>(), [] as string[]];
  const store = { isAway: true };
  const log = { warn: (_: object, text: string) => void warnings.push(text) } as unknown as Log;
  const recordings = new Recordings({
    log,
    async keepRecording(browser, text) {
      if (store.isAway) throw new Error("Redis is away");
      kept.set(browser, text);
    },
  });
  return { kept, warnings, store, recordings };
}

test("what could not be kept waits for Redis, in its order, and is as it was when the browser ended", async () => {
  const { kept, store, recordings } = bed();
  const lease = newLeaseId();
  const flight = flightOf(1);
  flight.begins(lease);
  flight.sent("Page.navigate");
  await recordings.over(flight, { why: "crashed", lease });
  flight.sent("Page.reload");
  await recordings.over(flightOf(2), { why: "launch_failed", error: "it did not start" });
  await recordings.retry();
  expect(kept.size).toBe(0);
  store.isAway = false;
  await Promise.all([recordings.retry(), recordings.retry()]);
  expect([...kept.keys()]).toEqual([idOf(1), idOf(2)]);
  expect(storedRecordingParser.json(kept.get(idOf(1)) ?? "")).toMatchObject({
    lease,
    recording: { reason: "crashed", commands: { count: 1, last: [{ method: "Page.navigate" }] } },
  });
  kept.clear();
  await recordings.retry();
  expect(kept.size).toBe(0);
});

test("what waits is bounded: the oldest is lost, and that is said", async () => {
  const { kept, warnings, store, recordings } = bed();
  for (let number = 0; number < 70; number += 1) await recordings.over(flightOf(number), { why: "crashed" });
  store.isAway = false;
  await recordings.retry();
  expect([...kept.keys()]).toEqual(Array.from({ length: 64 }, (_, place) => idOf(place + 6)));
  expect(warnings.filter((text) => text.startsWith("flight recording lost"))).toHaveLength(6);
});

test("the end of what went in order is not kept", async () => {
  const { kept, store, recordings } = bed();
  store.isAway = false;
  await recordings.over(flightOf(1), { why: "released" });
  expect(kept.size).toBe(0);
});

const frames = (url: string): object => ({ stack_trace: { callFrames: [{ url }] } });
test.each([
  [{ source_url: "https://cdn.example:8443/secret.js?token=1", url: "https://a.example/" }, "cdn.example"],
  [{ ...frames("https://user:secret@b.example/x.js"), url: "https://a.example/" }, "b.example"],
  [{ ...frames(""), url: "https://a.example/secret" }, "a.example"],
  [{ url: "data:text/html,secret" }, "other"],
  [{ url: "no address" }, "other"],
  [{}, "other"],
])("of an error with %j the host is told, and nothing else: %s", (data, host) => {
  const source = { kind: "cdp" } as const;
  expect(scriptHostOf({ type: "console_error", category: "console", source, data })).toBe(host);
});
