import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { newLeaseId } from "../../../src/base/ids.js";
import type { Chromium } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import type { SeenEvent } from "../../../src/telemetry/event.js";
import { Monitor } from "../../../src/telemetry/monitor/monitor.js";
import { openTestHost, silentLog } from "../../support/browser/chromium-host.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { SeenEvents } from "../../support/telemetry/seen-events.js";

let host: BrowserHost;
const { launch, killAll } = makeLauncher(() => host);

beforeAll(async () => {
  host = await openTestHost();
});
afterAll(async () => {
  await killAll();
  await host.close();
});

const lease = newLeaseId();
const watched = new Set(["page", "console"] as const);
/** So little is read that a small flood is one. */
const rates = {
  messages: { most: 10, perSecond: 0.01 },
  bytes: { most: 4 * 1024 * 1024, perSecond: 1024 * 1024 },
};
const types = (events: SeenEvents): string[] => events.all.map(({ type }) => type);

async function watch(
  isRestarting: boolean,
): Promise<{ chromium: Chromium; monitor: Monitor; events: SeenEvents }> {
  const chromium = await launch({});
  const events = new SeenEvents();
  const parts = { clock: systemClock, log: silentLog, hasClients: () => false, rates };
  const monitor = new Monitor({ ...parts, isRestarting: () => isRestarting });
  await monitor.start({ pipe: chromium.pipe, lease, sink: events, categories: watched });
  return { chromium, monitor, events };
}

test("a restart within a session is told: when the watch ended, and when it went on", async () => {
  const { chromium, monitor, events } = await watch(true);
  await chromium.kill();
  await events.find("monitor_disconnected");
  const next = await launch({});
  await monitor.stop();
  // A new sink is made for it, and what it takes goes to the same lease.
  const again = { wants: () => true, emit: (event: SeenEvent) => events.emit(event), left() {} };
  await monitor.start({ pipe: next.pipe, lease, sink: again, categories: watched });
  expect(types(events)).toEqual(["monitor_disconnected", "monitor_reconnected"]);
  const [, reconnected] = events.all;
  expect(reconnected?.data["reconnect_duration_ms"]).toBeGreaterThan(0);
  await monitor.stop();
});

test("what was left out last of a Chromium that goes is told before its end", async () => {
  const { chromium, monitor, events } = await watch(true);
  const client = new PipeClient(chromium);
  const { targetId } = await client.send("Target.createTarget", { url: "about:blank" });
  const session = await client.attach(String(targetId));
  await client.evaluate("for (let line = 0; line < 100; line += 1) console.log(line)", session);
  await chromium.kill();
  await events.find("monitor_disconnected");
  expect(types(events).slice(-2)).toEqual(["monitor_events_dropped", "monitor_disconnected"]);
  const dropped = events.of("monitor_events_dropped").map(({ data }) => Number(data["dropped"]));
  expect(dropped.reduce((sum, each) => sum + each, 0)).toBe(100 - events.of("console_log").length);
  await monitor.stop();
});

test("another lease is not told of a restart in the one before", async () => {
  const { chromium, monitor, events } = await watch(true);
  await chromium.kill();
  await events.find("monitor_disconnected");
  const next = await launch({});
  const others = new SeenEvents();
  await monitor.start({ pipe: next.pipe, lease: newLeaseId(), sink: others, categories: watched });
  expect(types(others)).toEqual([]);
  await monitor.stop();
});

test("the end of a browser is no restart, and stops the watch", async () => {
  const { chromium, monitor, events } = await watch(false);
  await chromium.kill();
  await monitor.apply(watched);
  await monitor.stop();
  expect(types(events)).toEqual([]);
});
