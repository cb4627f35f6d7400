import { beforeEach, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type MonitoredBrowser, type MonitoredPage } from "../../support/telemetry/monitored-browser.js";
import { type MonitoredSite, useMonitorBed } from "../../support/telemetry/monitor-bed.js";
import type { SeenEvents } from "../../support/telemetry/seen-events.js";

// What pages try that know they are watched.
const bed = useMonitorBed();
let browser: MonitoredBrowser;
let events: SeenEvents;
let site: MonitoredSite;
beforeEach(() => {
  ({ browser, site } = bed());
  ({ events } = browser);
});

const run = ({ session }: MonitoredPage, expression: string): Promise<unknown> =>
  browser.client.evaluate(expression, session);
async function clickUntilTold({ session }: MonitoredPage): Promise<void> {
  const at = { x: 20, y: 20, button: "left", clickCount: 1 };
  await until("a click is told", async () => {
    for (const type of ["mousePressed", "mouseReleased"])
      await browser.client.send("Input.dispatchMouseEvent", { type, ...at }, session);
    return events.of("interaction_click").length > 0;
  });
}
const press = ({ session }: MonitoredPage, key: string, text?: string): Promise<unknown> =>
  browser.client.send(
    "Input.dispatchKeyEvent",
    { type: text === undefined ? "rawKeyDown" : "keyDown", key, text },
    session,
  );
/** Resolves when the page is there, with all that it begins with. */
async function load(path: string): Promise<MonitoredPage> {
  const page = await browser.open();
  await browser.client.open(`${site.url}${path}`, page.session);
  return page;
}
const button = `<button id="button" style="position:absolute;left:0;top:0;width:99px;height:99px">Pay</button>`;

test("elements that have names of the document's own functions hide no click", async () => {
  await browser.start(["interaction"]);
  const page = await load("/");
  const names = ["createTreeWalker", "scrollingElement", "documentElement", "addEventListener"];
  const forms = names.map((name) => `<img name="${name}"><form name="${name}"></form>`).join("");
  await run(page, `document.body.innerHTML = ${JSON.stringify(button + forms)}`);
  await clickUntilTold(page);
  expect(events.of("interaction_click")[0]?.data).toMatchObject({ text: "Pay", selector: "button#button" });
});

test("elements that have the monitor's names do not keep it from a document that was there before", async () => {
  const page = await load("/");
  const elements = `<a id="remudaIsHeard"></a><a id="remudaMonitor"></a><img name="remudaIsHeard">`;
  await run(page, `document.body.innerHTML = ${JSON.stringify(button + elements)}`);
  await browser.start(["interaction"]);
  await clickUntilTold(page);
});

test("what is typed into a closed shadow tree, or where no field is seen, is not told", async () => {
  await browser.start(["interaction"]);
  const page = await load("/");
  await run(
    page,
    `{
      const host = document.createElement("my-login");
      const tree = host.attachShadow({ mode: "closed" });
      tree.innerHTML = '<input type="password">';
      document.body.replaceChildren(host);
      tree.firstChild.focus();
    }`,
  );
  for (const key of "hunter") await press(page, key, key);
  await run(page, `document.body.innerHTML = "<div tabindex=0 id=terminal>$</div>", terminal.focus()`);
  for (const key of "sesame") await press(page, key, key);
  await press(page, "swordfish");
  await press(page, "Escape");
  await events.find("interaction_key", ({ key }) => key === "Escape");
  const keys = new Set(events.of("interaction_key").map(({ data }) => data["key"]));
  expect([...keys]).toEqual(["Character", "Escape"]);
});

test("fields of a document of XHTML, whose names are in lower case, are known for what they are", async () => {
  await browser.start(["interaction"]);
  const page = await browser.open();
  const fields = `<h:input id="secret" type="password" />
    <h:div id="button"><h:select><h:option>chosen</h:option></h:select><h:textarea>written</h:textarea>Pay</h:div>`;
  const document = `<h:html xmlns:h="http://www.w3.org/1999/xhtml"><h:body>${fields}</h:body></h:html>`;
  await browser.client.open(
    `data:application/xhtml+xml,${encodeURIComponent(document.replaceAll(/\s+</g, "<"))}`,
    page.session,
  );
  await run(
    page,
    `document.getElementById("button").style = "position:absolute;left:0;top:0;width:299px;height:99px;padding-top:50px",
     document.getElementById("secret").focus()`,
  );
  for (const key of "hunter") await press(page, key, key);
  await press(page, "Backspace");
  await clickUntilTold(page);
  expect(events.of("interaction_click")[0]?.data).toMatchObject({ text: "Pay", selector: "div#button" });
  expect(events.of("interaction_key")).toEqual([]);
});

test("a selector finds its element, whatever elements are called", async () => {
  await browser.start(["interaction"]);
  const page = await load("/");
  const pay = button.replaceAll("button", "x:y").replace(' id="x:y"', "");
  const drawn = "document.createElementNS('http://www.w3.org/2000/svg', 'a')";
  await run(
    page,
    `document.body.innerHTML = ${JSON.stringify(`<a><x:y></x:y>${pay}</a>`)}, document.body.prepend(${drawn})`,
  );
  await clickUntilTold(page);
  const selector = String(events.of("interaction_click")[0]?.data["selector"]);
  expect(selector).toBe("html > body > a > x\\:y:nth-of-type(2)");
  expect(await run(page, `document.querySelector(${JSON.stringify(selector)}).textContent`)).toBe("Pay");
});

test("a page with an address of 300 KB is not taken for the one before it", async () => {
  await browser.start(["page", "console"]);
  const page = await load("/");
  await events.find("page_load", ({ target_id }) => target_id === page.target);
  const address = `${site.otherUrl}/inner#${"a".repeat(300_000)}`;
  await run(page, `void (location.href = ${JSON.stringify(address)})`);
  const said = await events.find("console_log", ({ text }) => text === "from the frame");
  expect(said.data).toMatchObject({ nav_seq: 2, url: `${site.otherUrl}/inner` });
});

test("targets that have gone make room for others, however many there were", async () => {
  await browser.start(["console"]);
  const page = await load("/");
  const code = `console.log("works"); postMessage("")`;
  await run(
    page,
    `globalThis.workers = Array.from({ length: 260 }, () =>
      new Worker(URL.createObjectURL(new Blob([${JSON.stringify(code)}]))));
    Promise.all(workers.map((worker) => new Promise((resolve) => (worker.onmessage = resolve)))).then(String)`,
  );
  await run(page, `workers.forEach((worker) => worker.terminate())`);
  // Chromium tells that they have gone when it comes to it; a page that opens before is not watched.
  await until("another page is told of", async () => {
    const { target } = await load("/console");
    const isTold = (): boolean =>
      events.of("console_log", (data) => data["text"] === "hello" && data["target_id"] === target).length > 0;
    return await until("its console", isTold, 2000).catch(() => false);
  });
});
