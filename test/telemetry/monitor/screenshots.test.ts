import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { SeenEvent } from "../../../src/telemetry/event.js";
import { DrivenClock } from "../../support/driven-clock.js";
import {
  type MonitoredBrowser,
  type MonitoredPage,
  openMonitoredBrowser,
} from "../../support/telemetry/monitored-browser.js";

const clock = new DrivenClock();
let browser: MonitoredBrowser;
let page: MonitoredPage;
beforeAll(async () => {
  browser = await openMonitoredBrowser({}, undefined, clock);
});
afterAll(() => browser.close());
beforeEach(async () => {
  await browser.monitor.stop();
  browser.events.all.length = 0;
  // Each begins with a watch of its own, and so without a picture that was taken lately.
  await browser.start(["page", "screenshot"]);
  page = await browser.open();
});

/** Shows another document; its navigation settles when the clock is moved on by a second. */
async function show(document: number): Promise<void> {
  await browser.client.send("Page.navigate", { url: `data:text/html,<p>${document}</p>` }, page.session);
  await found("page_load", document);
}
const found = (type: string, document: number): Promise<SeenEvent> =>
  browser.events.find(type, (data) => data["nav_seq"] === document && data["target_id"] === page.target);
const settle = async (document: number): Promise<void> => {
  await clock.advance(1000);
  await found("page_navigation_settled", document);
};
const pictured = (): unknown[] => browser.events.of("monitor_screenshot").map(({ data }) => data["nav_seq"]);

test("a page that settles again within 5 s has no second picture, and one that does so afterwards has", async () => {
  await show(1);
  await settle(1);
  await found("monitor_screenshot", 1);
  await clock.advance(3999);
  await show(2);
  await settle(2);
  await show(3);
  await settle(3);
  await found("monitor_screenshot", 3);
  expect(pictured()).toEqual([1, 3]);
});

/** What a canvas of noise takes as a PNG: 3 bytes for each of its points, since they cannot be packed. */
const noise = ([width, height]: readonly [number, number]): string => `{
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: ${width}, height: ${height} });
  const context = canvas.getContext("2d");
  const points = context.createImageData(${width}, ${height});
  for (let at = 0; at < points.data.length; at += 1)
    points.data[at] = at % 4 === 3 ? 255 : Math.random() * 256;
  context.putImageData(points, 0, 0);
  document.body.replaceChildren(canvas);
}`;

test.each([
  [0.9, [640, 480], false],
  [1.2, [800, 520], true],
  [2.5, [1270, 700], true],
] as const)("of a picture of %s MiB the bytes are told up to 1 MiB", async (mebibytes, size, isCut) => {
  await show(1);
  await browser.client.evaluate(noise(size), page.session);
  await settle(1);
  const { data, truncated } = await found("monitor_screenshot", 1);
  expect([truncated, "png" in data]).toEqual([isCut, !isCut]);
  if (!isCut) expect(Buffer.from(String(data["png"]), "base64").length / 2 ** 20).toBeCloseTo(mebibytes, 1);
});
