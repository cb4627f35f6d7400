import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { newLeaseId } from "../../../src/base/ids.js";
import { Monitor } from "../../../src/telemetry/monitor/monitor.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { SeenEvents } from "../../support/telemetry/seen-events.js";

// In headless-shell a dialog opens because the monitor listens, and its page waits for an answer.
let browser: GatewayBrowser;
let monitor: Monitor;
let pages: PipeClient;
let session: string;
let answerCurl: () => void;

beforeAll(async () => {
  const curled = new Promise<void>((resolve) => (answerCurl = resolve));
  const answer = { status: 204, headers: {}, body: Buffer.alloc(0), durationMs: 5 };
  browser = await openGatewayBrowser({}, { curl: () => curled.then(() => answer) });
  const { activity } = browser.bed.local(browser.chromium.id);
  const hasClients = (): boolean => activity.hasClients;
  monitor = new Monitor({ clock: systemClock, log: silentLog, isRestarting: () => false, hasClients });
  const { pipe } = browser.chromium;
  const watched = { pipe, lease: newLeaseId(), sink: new SeenEvents() };
  await monitor.start({ ...watched, categories: new Set(["page"]) });
  pages = new PipeClient(browser.chromium, 1_000_000);
  session = await pages.attach();
});
afterAll(async () => {
  await monitor.stop();
  await browser.close();
});
beforeEach(() => void (pages.events.length = 0));

const asked = (): Promise<unknown> => pages.evaluate(`confirm("Really?")`, session);
const dialogOpened = (): Promise<unknown> =>
  until("a dialog is open", () =>
    pages.events.some(({ method }) => method === "Page.javascriptDialogOpening"),
  );

test("a dialog holds no page up while nobody but a request of the lease is there", async () => {
  const body = JSON.stringify({ url: "http://a.example/" });
  const curl = fetch(browser.http().replace("/cdp?", "/curl?"), { method: "POST", body });
  const { activity } = browser.bed.local(browser.chromium.id);
  await until("it is in flight", () => activity.registrations === 1);
  expect(await asked()).toBe(false);
  expect(activity.hasVisitors).toBe(true);
  answerCurl();
  await (await curl).text();
});

test("a dialog that a client hears of is the client's to answer", async () => {
  const client = await connectRaw(browser.url());
  const theirs = await client.attach();
  await client.send("Page.enable", {}, theirs);
  const answer = asked();
  await client.message(({ method }) => method === "Page.javascriptDialogOpening");
  await client.send("Page.handleJavaScriptDialog", { accept: true }, theirs);
  expect(await answer).toBe(true);
  await client.close();
});

test("a dialog that the last client leaves behind, having heard nothing of it, holds no page up", async () => {
  const client = await connectRaw(browser.url());
  const answer = asked();
  await dialogOpened();
  await client.close();
  expect(await answer).toBe(false);
});
