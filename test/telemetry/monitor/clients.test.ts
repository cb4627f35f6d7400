import { chromium as playwright } from "playwright-core";
import { connect as connectPuppeteer } from "puppeteer-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { newLeaseId } from "../../../src/base/ids.js";
import { Monitor } from "../../../src/telemetry/monitor/monitor.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { pageCategories } from "../../support/telemetry/monitored-browser.js";
import { openMonitoredSite } from "../../support/telemetry/monitored-site.js";
import { SeenEvents } from "../../support/telemetry/seen-events.js";

let browser: GatewayBrowser;
let monitor: Monitor;
let site: Awaited<ReturnType<typeof openMonitoredSite>>;
const events = new SeenEvents();

beforeAll(async () => {
  site = await openMonitoredSite();
  browser = await openGatewayBrowser({ engine: "chromium" });
  const parts = { clock: systemClock, log: silentLog, isRestarting: () => false, hasClients: () => true };
  monitor = new Monitor(parts);
  await monitor.start({
    pipe: browser.chromium.pipe,
    lease: newLeaseId(),
    sink: events,
    categories: new Set(pageCategories),
  });
});
afterAll(async () => {
  await monitor.stop();
  await browser.close();
  await site.close();
});

test("Playwright notices nothing: pages, popups, frames, workers, dialogs and routes are as without it", async () => {
  const client = await playwright.connectOverCDP(browser.url());
  const context = await client.newContext();
  const page = await context.newPage();
  const said: string[] = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("dialog", (dialog) => void dialog.accept());
  await page.route("**/json?mine", (route) => route.fulfill({ body: "answered by the client" }));
  await page.goto(`${site.url}/fields`);
  expect(await page.evaluate(`confirm("Really?")`)).toBe(true);
  await page.fill("#field", "typed by nobody");
  await page.click("#link");
  const [popup] = await Promise.all([page.waitForEvent("popup"), page.evaluate(`void open("/console")`)]);
  await popup.waitForLoadState();
  const [worker] = await Promise.all([page.waitForEvent("worker"), page.goto(`${site.url}/worker`)]);
  expect(await worker.evaluate("6 * 7")).toBe(42);
  await page.evaluate(`{
    const frame = document.createElement("iframe");
    frame.src = "${site.otherUrl}/inner";
    document.body.append(frame);
  }`);
  const frame = page.frameLocator("iframe");
  expect(await frame.locator("p").textContent()).toBe("Some text that is painted.");
  expect(await page.evaluate(`fetch("/json?mine").then((answer) => answer.text())`)).toBe(
    "answered by the client",
  );
  await expect.poll(() => said).toContain("from the frame");
  await context.close();
  await client.close();
  const clicked = await events.find("interaction_click");
  expect(clicked.data).toMatchObject({ tag: "A", selector: "a#link" });
  expect(JSON.stringify(events.all)).not.toContain("typed by nobody");
});

test("Puppeteer notices nothing either", async () => {
  const client = await connectPuppeteer({ browserWSEndpoint: browser.url() });
  const page = await client.newPage();
  page.on("dialog", (dialog) => void dialog.accept("an answer"));
  await page.setRequestInterception(true);
  page.on("request", (request) => void request.continue());
  await page.goto(`${site.url}/fields`, { waitUntil: "networkidle0" });
  expect(await page.evaluate(`prompt("What?")`)).toBe("an answer");
  await page.click("#link");
  await page.reload();
  const targets = client.targets().map((target) => target.url());
  expect(targets).toContain(`${site.url}/fields#there`);
  await page.close();
  await client.disconnect();
});

test("no client gets into its sessions", async () => {
  const client = await connectPuppeteer({ browserWSEndpoint: browser.url() });
  const page = await client.newPage();
  const told = await events.find("page_tab_opened", (data) => {
    const target = page.target() as unknown as { _targetId: string };
    return data["target_id"] === target._targetId;
  });
  const session = String(told.source.metadata?.["cdp_session_id"]);
  const root = await client.target().createCDPSession();
  const detach = root.send("Target.detachFromTarget", { sessionId: session });
  await expect(detach).rejects.toThrow();
  await page.goto(`${site.url}/console`);
  await events.find("console_log", (data) => data["session_id"] === session);
  await page.close();
  await client.disconnect();
});
