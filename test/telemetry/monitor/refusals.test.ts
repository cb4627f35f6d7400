import { beforeEach, expect, test } from "vitest";
import { newLeaseId } from "../../../src/base/ids.js";
import { Monitor } from "../../../src/telemetry/monitor/monitor.js";
import type { EventCategory } from "../../../src/telemetry/event.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { ScriptedChromium } from "../../support/telemetry/scripted-chromium.js";
import { SeenEvents } from "../../support/telemetry/seen-events.js";

const lease = newLeaseId();
let clock: DrivenClock;
let events: SeenEvents;
let monitor: Monitor;
let warnings: string[];
beforeEach(() => {
  clock = new DrivenClock();
  events = new SeenEvents();
  warnings = [];
  const log = { ...silentLog, warn: (_: object, text: string) => void warnings.push(text) };
  const parts = { clock, log, hasClients: () => false, isRestarting: () => true };
  monitor = new Monitor(parts);
});

const watch = ({ pipe }: ScriptedChromium, ...categories: readonly EventCategory[]): Promise<void> =>
  monitor.start({ pipe, lease, sink: events, categories: new Set(categories) });
const told = (): unknown[] => events.all.map(({ type, data }) => [type, data]);

test.each(["Target.attachToBrowserTarget", "Target.getTargets", "Target.setAutoAttach"])(
  "where Chromium refuses %s there is no watch, and that is told",
  async (step) => {
    await watch(new ScriptedChromium({ refuses: [step] }), "page");
    expect(events.all).toMatchObject([
      { type: "monitor_init_failed", category: "monitor", source: { kind: "local_process" }, data: { step } },
    ]);
    await monitor.stop();
    expect(clock.pending).toBe(0);
  },
);

test("what a page refuses is told, and what it gives is told too", async () => {
  const chromium = new ScriptedChromium({ refuses: ["Network.enable"] });
  await watch(chromium, "console", "network");
  chromium.tellPage("PAGE");
  await events.find("monitor_init_failed");
  const args = [{ type: "string", value: "hello" }];
  await until("its console", () => chromium.asked.some(({ method }) => method === "Runtime.enable"));
  await until("its line", () => {
    chromium.tell("Runtime.consoleAPICalled", { type: "log", args }, "PAGE");
    return events.of("console_log").length > 0;
  });
  expect(events.of("monitor_init_failed").map(({ data }) => data)).toEqual([{ step: "Network.enable" }]);
  expect(events.of("console_log")[0]?.data).toMatchObject({ text: "hello", target_id: "PAGE" });
  await monitor.stop();
});

test.each([
  ["refuses", "Target.setAutoAttach"],
  ["ignores", "Target.attachToBrowserTarget"],
])("a Chromium that was restarted and %s %s could not be watched again", async (does, method) => {
  const first = new ScriptedChromium({});
  await watch(first, "page");
  first.exit();
  await events.find("monitor_disconnected");
  const next = new ScriptedChromium({ [does]: [method] });
  const watching = watch(next, "page");
  await until("the step", () => next.asked.some((asked) => asked.method === method));
  // Whoever does not answer is waited for so long.
  await clock.advance(5000);
  await watching;
  await events.find("monitor_reconnect_failed");
  expect(told()).toEqual([
    ["monitor_disconnected", { reason: "chrome_restarted" }],
    ["monitor_init_failed", { step: method }],
    ["monitor_reconnect_failed", { reason: "reconnect_exhausted" }],
  ]);
  await monitor.stop();
});

test.each([
  ["answers late is waited for", 3000, false],
  ["does not answer is not waited for any longer", 4000, true],
])("a page that %s before it is said that it is watched", async (_, afterMs, isGivenUp) => {
  const chromium = new ScriptedChromium({ ignores: ["Target.setAutoAttach", "Page.enable"] });
  let isWatched = false;
  const watching = watch(chromium, "page").then(() => (isWatched = true));
  const asked = (wanted: string, session: string) =>
    until(wanted, () =>
      chromium.asked.find(({ method, sessionId }) => method === wanted && sessionId === session),
    );
  const attaching = await asked("Target.setAutoAttach", "ROOT");
  chromium.tellPage("PAGE");
  chromium.answer(attaching, {});
  const enabling = await asked("Page.enable", "PAGE");
  await clock.advance(afterMs);
  expect(isWatched).toBe(isGivenUp);
  chromium.answer(enabling, {});
  chromium.answer(await asked("Target.setAutoAttach", "PAGE"), {});
  await watching;
  await monitor.stop();
});

test("of a page's texts four are asked for at once; a response whose text was left out is truncated", async () => {
  const chromium = new ScriptedChromium({ ignores: ["Network.getResponseBody"] });
  await watch(chromium, "network");
  chromium.tellPage("PAGE");
  await until("the page", () => chromium.asked.some(({ method }) => method === "Network.enable"));
  const response = { status: 200, mimeType: "text/plain", headers: {} };
  for (const requestId of ["1", "2", "3", "4", "5"]) {
    const request = { url: `http://site/${requestId}`, method: "GET", headers: {} };
    chromium.tell("Network.requestWillBeSent", { requestId, request, type: "Fetch" }, "PAGE");
    chromium.tell("Network.responseReceived", { requestId, response }, "PAGE");
    chromium.tell("Network.loadingFinished", { requestId, encodedDataLength: 100 }, "PAGE");
  }
  await events.find("network_response");
  const bodies = chromium.asked.filter(({ method }) => method === "Network.getResponseBody");
  for (const asked of bodies) chromium.answer(asked, { body: "text", base64Encoded: false });
  await until("all", () => events.of("network_response").length === 5);
  const answered = events
    .of("network_response")
    .map(({ data, truncated }) => [data["request_id"], data["body"], truncated]);
  expect(answered.toSorted()).toEqual([
    ["1", "text", false],
    ["2", "text", false],
    ["3", "text", false],
    ["4", "text", false],
    ["5", undefined, true],
  ]);
  await monitor.stop();
});

test.each([
  ["ends", "meanwhile", []],
  ["says", "nothing", ["browser's watch not ended in order"]],
])("of a watch that is ended and whose Chromium %s %s so much is warned of", async (does, _, then) => {
  const chromium = new ScriptedChromium({ ignores: ["Target.detachFromTarget"] });
  await watch(chromium, "page");
  const stopped = monitor.stop();
  await until("its end", () => chromium.asked.some(({ method }) => method === "Target.detachFromTarget"));
  if (does === "ends") chromium.exit();
  else await clock.advance(5000);
  await stopped;
  expect(warnings).toEqual(then);
});
