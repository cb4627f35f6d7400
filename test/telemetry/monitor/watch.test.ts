import { beforeEach, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import {
  type MonitoredBrowser,
  openMonitoredBrowser,
  pageCategories,
} from "../../support/telemetry/monitored-browser.js";
import { type MonitoredSite, useMonitorBed } from "../../support/telemetry/monitor-bed.js";
import type { SeenEvents } from "../../support/telemetry/seen-events.js";

const bed = useMonitorBed();
let browser: MonitoredBrowser;
let events: SeenEvents;
let site: MonitoredSite;
beforeEach(() => {
  ({ browser, site } = bed());
  ({ events } = browser);
});

const run = (session: string, expression: string): Promise<unknown> =>
  browser.client.evaluate(expression, session);
const log = (session: string, text: string): Promise<unknown> =>
  run(session, `console.log(${JSON.stringify(text)})`);
const findLog = (text: string): Promise<unknown> =>
  events.find("console_log", (data) => data["text"] === text);
/** Clicks until that is told: Chromium passes over what is pressed before a page is painted. */
async function click(session: string, x: number, y: number): Promise<void> {
  await until("a click is told", async () => {
    for (const type of ["mousePressed", "mouseReleased"])
      await browser.client.send(
        "Input.dispatchMouseEvent",
        { type, x, y, button: "left", clickCount: 1 },
        session,
      );
    return events.of("interaction_click").length > 0;
  });
}
const texts = (): unknown[] => events.of("console_log").map(({ data }) => data["text"]);

test("what was before is not told, and what comes after is", async () => {
  const { session } = await browser.open();
  await log(session, "before");
  await browser.start(["console"]);
  await log(session, "after");
  await findLog("after");
  expect(texts()).toEqual(["after"]);
  expect(events.of("page_tab_opened")).toEqual([]);
});

test("what happens in a page whose address was cut says so", async () => {
  await browser.start(["console", "page"]);
  const { session, target } = await browser.open(`${site.url}/?${"x".repeat(5000)}`);
  const ofPage = (type: string) => events.find(type, (data) => data["target_id"] === target);
  const cut = { data: { url: expect.stringMatching(/^http.*x\.\.\.\[truncated\]$/) }, truncated: true };
  expect(await ofPage("page_load")).toMatchObject(cut);
  await log(session, "short");
  expect(await ofPage("console_log")).toMatchObject(cut);
  browser.client.send("Page.crash", {}, session).catch(() => {});
  expect(await ofPage("page_crashed")).toMatchObject(cut);
  const other = await browser.open(`${site.url}/`);
  await log(other.session, "whole");
  expect(await findLog("whole")).toMatchObject({ truncated: false });
  // A crashed page answers nothing, and the next watch would tell of that after 5 s.
  await browser.client.send("Target.closeTarget", { targetId: target });
});

test("a page that goes before it has loaded is told as left", async () => {
  await browser.start(["page"]);
  const { target } = await browser.open(`${site.url}/endless`);
  const isOf = (data: Readonly<Record<string, unknown>>): boolean =>
    data["target_id"] === target && String(data["url"]).endsWith("/endless");
  await events.find("page_navigation", isOf);
  expect(events.leftTargets).not.toContain(target);
  await browser.client.send("Target.closeTarget", { targetId: target });
  await until("its end is told", () => events.leftTargets.includes(target));
  expect(events.of("page_load", isOf)).toEqual([]);
});

test("a page that Chromium has kept, and that is gone back to, comes to rest though nothing is loaded", async () => {
  // headless-shell keeps none.
  const full = await openMonitoredBrowser({ engine: "chromium" });
  onTestFinished(() => full.close());
  await full.start(["page", "network"]);
  const { session, target } = await full.open(`${site.url}/`);
  const seen = full.events;
  const settled = (of: string) =>
    seen.find("page_navigation_settled", ({ target_id, url }) => target_id === target && url === of);
  await settled(`${site.url}/`);
  await full.client.send("Page.navigate", { url: `${site.url}/fields` }, session);
  await settled(`${site.url}/fields`);
  seen.all.length = 0;
  await full.client.evaluate("history.back()", session);
  await settled(`${site.url}/`);
  await seen.find("network_idle", ({ target_id }) => target_id === target);
  expect(seen.of("page_navigation")).toMatchObject([{ data: { url: `${site.url}/` } }]);
  expect(seen.of("page_layout_settled")).toHaveLength(1);
  expect([...seen.of("network_request"), ...seen.of("page_load")]).toEqual([]);
});

test("only the categories that are on are told, and they change while it runs", async () => {
  await browser.start(["console"]);
  const { session } = await browser.open(`${site.url}/`);
  await log(session, "one");
  await findLog("one");
  await browser.monitor.apply(new Set(["network"]));
  await log(session, "two");
  await run(session, `fetch("/json").then(String)`);
  await events.find("network_response", (data) => data["url"] === `${site.url}/json`);
  await browser.monitor.apply(new Set(["console", "network"]));
  await log(session, "three");
  await findLog("three");
  expect(texts()).toEqual(["one", "three"]);
  expect(new Set(events.all.map(({ category }) => category))).toEqual(new Set(["console", "network"]));
});

test("a request that was under way when network was switched off keeps nothing from being idle afterwards", async () => {
  await browser.start(["page", "network"]);
  const { session, target } = await browser.open(`${site.url}/`);
  await events.find("network_idle", (data) => data["target_id"] === target);
  await run(session, `void fetch("/endless")`);
  await events.find("network_request", (data) => data["url"] === `${site.url}/endless`);
  await browser.monitor.apply(new Set(["page"]));
  await browser.monitor.apply(new Set(["page", "network"]));
  events.all.length = 0;
  await run(session, `fetch("/json").then(String)`);
  await events.find("network_idle", (data) => data["target_id"] === target);
});

test("without categories of its own it leaves the browser, as at its end", async () => {
  const isAttached = async (target: string): Promise<boolean> => {
    const infos = (await browser.client.targets()) as { targetId: string; attached?: boolean }[];
    return infos.find(({ targetId }) => targetId === target)?.attached === true;
  };
  const { target, session } = await browser.open();
  await browser.client.send("Target.detachFromTarget", { sessionId: session });
  expect(await isAttached(target)).toBe(false);
  await browser.start(pageCategories);
  expect(await isAttached(target)).toBe(true);
  await browser.monitor.apply(new Set(["control"]));
  expect(await isAttached(target)).toBe(false);
  await browser.monitor.apply(new Set(["page"]));
  expect(await isAttached(target)).toBe(true);
  await browser.monitor.stop();
  expect(await isAttached(target)).toBe(false);
});

test("a page that overwrites what it can neither forges nor hides a click", async () => {
  await browser.start(["interaction", "console"]);
  const { session } = await browser.open(`${site.url}/fields`);
  await run(
    session,
    `{
      JSON.stringify = () => "{}";
      Element.prototype.getAttribute = () => { throw new Error("mine"); };
      Object.defineProperty(Element.prototype, "tagName", { get: () => "FORGED" });
      EventTarget.prototype.addEventListener = () => {};
      globalThis.remudaMonitor = () => {};
      for (let id = 0; id < 10000; id += 1) clearTimeout(id);
      addEventListener("click", (event) => event.stopImmediatePropagation(), true);
      dispatchEvent(new MouseEvent("click"));
    }`,
  );
  await click(session, 20, 15);
  const clicked = events.of("interaction_click").map(({ data }) => `${data["tag"]} ${data["selector"]}`);
  expect(new Set(clicked)).toEqual(new Set(["A a#link"]));
});

test("a document that is written anew is heard, and pages do not see who hears them", async () => {
  await browser.start(["interaction"]);
  const { session } = await browser.open(`${site.url}/`);
  await run(
    session,
    `document.open(); document.write("<button style='position:absolute;left:0;top:0;width:99px;height:99px'>New</button>"); document.close()`,
  );
  await click(session, 20, 20);
  const data = events.of("interaction_click").at(-1)?.data;
  expect(data).toMatchObject({ tag: "BUTTON", text: "New" });
  expect(await run(session, `Object.keys(globalThis).filter((name) => /remuda/i.test(name)).length`)).toBe(0);
});

const large = "position:absolute;left:0;top:0;width:99px;height:99px";
/** Clicks on what is shown alone; gives the first that is told. */
async function clickOn(html: string): Promise<SeenEvents["all"][number] | undefined> {
  await browser.start(["interaction"]);
  const { session } = await browser.open();
  await browser.client.open(`${site.url}/`, session);
  await run(session, `document.body.innerHTML = ${JSON.stringify(html)}`);
  await click(session, 20, 8);
  return events.of("interaction_click")[0];
}

test("what is chosen in a list box is not told", async () => {
  const options = "<option>Mine</option><option>Yours</option>";
  const told = await clickOn(`<select size="4" style="${large}">${options}</select>`);
  expect(told?.data).toMatchObject({ tag: "OPTION", text: "" });
});

test.each([
  { html: `${"x".repeat(99)}😀`, text: `${"x".repeat(99)}😀`, truncated: false },
  { html: `${"x".repeat(99)}😀 and more`, text: `${"x".repeat(99)}😀`, truncated: true },
  { html: `${" ".repeat(250)}x${" ".repeat(250)}y`, text: "x y", truncated: false },
  { html: "<b></b>".repeat(300), text: "", truncated: true },
])(
  "of a click's text 100 whole characters are told, and whether that is all: $html",
  async ({ html, ...told }) => {
    const { text, truncated } = told;
    expect(await clickOn(`<button style="${large}">${html}</button>`)).toMatchObject({
      data: { text },
      truncated,
    });
  },
);

test("an element with a long name is told by whole characters of it, and that it was cut", async () => {
  const told = await clickOn(`<button id="a${"😀".repeat(100)}" style="${large}"></button>`);
  const selector = `button#a${"😀".repeat(63)}`;
  expect(told).toMatchObject({ data: { selector }, truncated: true });
});

test("a dialog of a page whose address is longer than is read holds no page up either", async () => {
  await browser.start(["page"]);
  const { session } = await browser.open(`data:text/html,${"x".repeat(300 * 1024)}`);
  expect(await run(session, `confirm("Really?")`)).toBe(false);
});

test("a dialog that nobody hears of but the monitor holds no page up", async () => {
  await browser.start(["page"]);
  const { session } = await browser.open(`${site.url}/`);
  expect(await run(session, `confirm("Really?")`)).toBe(false);
});

test("a look at the network of the daemon's own is nobody's request", async () => {
  await browser.start(["network"]);
  const { target, session } = await browser.open(`${site.url}/`);
  const options = { disableCache: true, includeCredentials: false };
  const asked = { frameId: target, url: `${site.url}/json?own`, options };
  await browser.client.send("Network.loadNetworkResource", asked, session);
  await run(session, `fetch("/json?theirs").then(String)`);
  await events.find("network_response", (data) => String(data["url"]).endsWith("?theirs"));
  expect(events.all.filter(({ data }) => String(data["url"]).endsWith("?own"))).toEqual([]);
});

test("what a page gives its console is not kept for the monitor's sake", async () => {
  await browser.start(["console"]);
  const { session } = await browser.open();
  // A reference that is weak shows whether somebody else has one; Chromium itself keeps the last 1000 lines.
  await run(
    session,
    `globalThis.given = new WeakRef({ large: new Array(1000).fill("kept") }); console.log(given.deref());
    for (let line = 0; line < 1000; line += 1) console.log("line")`,
  );
  await events.find("console_log");
  await expect
    .poll(async () => {
      await browser.client.send("HeapProfiler.collectGarbage", {}, session);
      return await run(session, "given.deref() === undefined");
    })
    .toBe(true);
});
