import { beforeEach, expect, test } from "vitest";
import type { MonitoredBrowser } from "../../support/telemetry/monitored-browser.js";
import { type MonitoredSite, useMonitorBed } from "../../support/telemetry/monitor-bed.js";
import type { SeenEvents } from "../../support/telemetry/seen-events.js";

/** So little is read that a small flood is one. */
const rates = {
  messages: { most: 100, perSecond: 0.01 },
  bytes: { most: 4 * 1024 * 1024, perSecond: 1024 * 1024 },
};

const bed = useMonitorBed(rates);
let browser: MonitoredBrowser;
let events: SeenEvents;
let site: MonitoredSite;
beforeEach(() => {
  ({ browser, site } = bed());
  ({ events } = browser);
});

const run = (session: string, expression: string): Promise<unknown> =>
  browser.client.evaluate(expression, session);
const log = (lines: number): string =>
  `for (let line = 0; line < ${lines}; line += 1) console.log("line " + line)`;

test("of a console that is flooded so much is read, and what is left out is told", async () => {
  await browser.start(["console", "page"]);
  const { target, session } = await browser.open();
  await run(session, log(1000));
  const dropped = await events.find("monitor_events_dropped");
  expect(dropped).toMatchObject({
    category: "monitor",
    source: { kind: "local_process" },
    data: { by_method: { "Runtime.consoleAPICalled": expect.any(Number) }, paused_targets: [] },
  });
  expect(events.of("console_log").length).toBeLessThan(200);
  // Its navigations are told all the same.
  await browser.client.send("Page.navigate", { url: `${site.url}/` }, session);
  await events.find("page_load", (data) => data["target_id"] === target);
});

test("what was left out last is told where the watch ends, once", async () => {
  await browser.start(["console"]);
  const { session } = await browser.open();
  await run(session, log(1000));
  // Its messages have come before the answer.
  const stopped = browser.monitor.stop();
  const told = [...events.all];
  await stopped;
  expect(events.all).toEqual(told);
  const dropped = events.of("monitor_events_dropped").map(({ data }) => Number(data["dropped"]));
  expect(dropped.reduce((sum, each) => sum + each, 0) + events.of("console_log").length).toBe(1000);
  expect(dropped.at(-1)).toBeGreaterThan(0);
});

test("what was left out while nothing more could be taken is told when something can, or where the watch ends", async () => {
  await browser.start(["console"]);
  const { session } = await browser.open();
  events.isFull = true;
  await run(session, log(1000));
  await browser.monitor.stop();
  events.isFull = false;
  const [last] = events.all;
  expect(events.all).toHaveLength(1);
  expect(last).toMatchObject({ type: "monitor_events_dropped", countsLost: true });
  expect(last?.data["dropped"]).toBeGreaterThan(800);
});

test("a page that goes on is left alone, and others are not", async () => {
  await browser.start(["console", "page"]);
  const flooding = await browser.open();
  await run(flooding.session, log(5000));
  const paused = await events.find(
    "monitor_events_dropped",
    (data) => (data["paused_targets"] as string[]).length > 0,
  );
  expect(paused.data["paused_targets"]).toEqual([flooding.target]);
  const other = await browser.open(`${site.url}/`);
  await events.find("page_load", (data) => data["target_id"] === other.target);
  // Nor is the page itself held up.
  expect(await run(flooding.session, "6 * 7")).toBe(42);
});

test("a page whose navigation is left out is not taken for the one before", async () => {
  await browser.start(["page", "console"]);
  const page = await browser.open(`${site.url}/`);
  await events.find("page_load", ({ target_id }) => target_id === page.target);
  await run(
    page.session,
    `Promise.all(Array.from({ length: 200 }, () => {
      const frame = document.createElement("iframe");
      frame.srcdoc = "a frame";
      document.body.append(frame);
      return new Promise((resolve) => (frame.onload = resolve));
    })).then(String)`,
  );
  await run(page.session, `void (location.href = "${site.otherUrl}/inner")`);
  const { data } = await events.find("console_log", ({ text }) => text === "from the frame");
  expect(data).toMatchObject({ nav_seq: 2, url: "" });
  expect(events.of("page_navigation", ({ url }) => url === `${site.otherUrl}/inner`)).toEqual([]);
});

test("where requests are left out, quiet is what counts as idle", async () => {
  await browser.start(["network"]);
  const { session } = await browser.open(`${site.url}/`);
  await run(
    session,
    `Promise.all(Array.from({ length: 300 }, (_, index) => fetch("data:text/plain," + index))).then(String)`,
  );
  const { data } = await events.find("monitor_events_dropped");
  expect(Object.keys(data["by_method"] as object).every((method) => method.startsWith("Network."))).toBe(
    true,
  );
  await events.find("network_idle");
});

test("of a line of 10 MB the beginning is told", async () => {
  await browser.start(["console"]);
  const { session } = await browser.open(`${site.url}/`);
  await run(session, `console.error("begin " + "x".repeat(10 * 1024 * 1024))`);
  const long = await events.find("console_error");
  expect(long.truncated).toBe(true);
  expect(String(long.data["text"])).toMatch(/^begin xxx.*\.\.\.\[truncated\]$/);
  expect(JSON.stringify(long).length).toBeLessThan(64 * 1024);
});
