import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { typesOfPages } from "../../support/telemetry/corpus.js";
import {
  type MonitoredBrowser,
  type MonitoredPage,
  openMonitoredBrowser,
  pageCategories,
} from "../../support/telemetry/monitored-browser.js";
import { openMonitoredSite } from "../../support/telemetry/monitored-site.js";
import { lackedBy } from "../../support/telemetry/official-events.js";
import type { SeenEvents } from "../../support/telemetry/seen-events.js";
import type { SeenEvent } from "../../../src/telemetry/event.js";

/** Each type of event with one page or action that causes it, in each way Chromium runs. */
describe.each(kinds)("%s", (_name, spec) => {
  let browser: MonitoredBrowser;
  let events: SeenEvents;
  let site: Awaited<ReturnType<typeof openMonitoredSite>>;

  beforeAll(async () => {
    site = await openMonitoredSite();
    browser = await openMonitoredBrowser(spec);
    ({ events } = browser);
    await browser.start(pageCategories);
  });
  afterAll(async () => {
    await browser.close();
    await site.close();
  });

  type Data = SeenEvent["data"];
  const found = async (page: MonitoredPage, type: string, fields: Data = {}): Promise<SeenEvent> =>
    events.find(type, (data) => {
      const isSame = Object.entries(fields).every(([name, value]) => data[name] === value);
      return isSame && data["target_id"] === page.target;
    });
  const run = (page: MonitoredPage, expression: string): Promise<unknown> =>
    browser.client.evaluate(expression, page.session);
  const send = (page: MonitoredPage, method: string, params: object): Promise<unknown> =>
    browser.client.send(method, params, page.session);
  const click = async (page: MonitoredPage, x: number, y: number): Promise<void> => {
    for (const type of ["mousePressed", "mouseReleased"])
      await send(page, "Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
  };
  const press = async (page: MonitoredPage, key: string): Promise<void> => {
    const text = key.length === 1 ? key : undefined;
    await send(page, "Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", key, text });
    await send(page, "Input.dispatchKeyEvent", { type: "keyUp", key });
  };

  test("a page is opened, loads and comes to rest", async () => {
    const page = await browser.open(`${site.url}/`);
    const url = `${site.url}/`;
    expect((await found(page, "page_tab_opened")).data).toMatchObject({ target_type: "page" });
    const { data } = await found(page, "page_navigation");
    expect(data).toMatchObject({ url, frame_id: page.target });
    expect(data).not.toHaveProperty("nav_seq");
    const context = {
      url,
      frame_id: page.target,
      loader_id: data["loader_id"],
      nav_seq: 1,
      target_type: "page",
    };
    for (const type of ["page_dom_content_loaded", "page_load"])
      expect((await found(page, type)).data).toMatchObject({ ...context, cdp_timestamp: expect.any(Number) });
    const paint = await found(page, "page_lcp");
    expect(paint.data).toMatchObject({ ...context, lcp_details: { size: expect.any(Number) } });
    for (const type of ["page_layout_settled", "page_navigation_settled"])
      expect((await found(page, type)).data).toMatchObject(context);
    const { data: shown } = await found(page, "monitor_screenshot");
    expect(Buffer.from(String(shown["png"]), "base64").subarray(1, 4).toString()).toBe("PNG");
    expect(events.of("monitor_init_failed")).toEqual([]);
  });

  test("its requests are told, and when there are no more", async () => {
    const page = await browser.open(`${site.url}/`);
    const url = `${site.url}/image`;
    const sent = await found(page, "network_request", { url });
    expect(sent).toMatchObject({ category: "network", source: { event: "Network.requestWillBeSent" } });
    expect(sent.data).toMatchObject({ method: "GET", resource_type: "Image", initiator_type: "parser" });
    const answered = await found(page, "network_response", { url });
    expect(answered.data).toMatchObject({
      request_id: sent.data["request_id"],
      status: 200,
      mime_type: "image/png",
      headers: { "x-session-key": "[1 characters]" },
    });
    expect(answered.data).not.toHaveProperty("body");
    await found(page, "network_idle", { nav_seq: 1 });
    await run(
      page,
      `fetch("/moved", { method: "POST", body: "a=1", headers: { authorization: "me" } }).then(String)`,
    );
    const moved = await found(page, "network_request", { url: `${site.url}/moved` });
    expect(moved.data).toMatchObject({ post_data: "a=1", headers: { authorization: "[2 characters]" } });
    const onward = await found(page, "network_request", { is_redirect: true });
    expect(onward.data).toMatchObject({ redirect_url: `${site.url}/moved`, url: `${site.url}/json` });
    const json = await found(page, "network_response", { url: `${site.url}/json` });
    expect(json.data).toMatchObject({ body: `{"answer":42}`, mime_type: "application/json" });
    await run(page, `fetch("/broken").catch(String)`);
    const failed = await found(page, "network_loading_failed", { url: `${site.url}/broken` });
    expect(failed.data).toMatchObject({ error_text: "net::ERR_EMPTY_RESPONSE", canceled: false });
    await run(page, `fetch("/denied").then(String)`);
    expect((await found(page, "proxy_error")).data).toMatchObject({
      code: "destination_blocked",
      status: 403,
    });
  });

  test("what a page writes on its console, and what it throws", async () => {
    const page = await browser.open(`${site.url}/console`);
    const log = await found(page, "console_log", { text: "hello" });
    expect(log.data).toMatchObject({
      level: "log",
      stack_trace: { callFrames: [{ url: `${site.url}/console` }] },
    });
    expect((await found(page, "console_error", { text: "bad" })).data).toMatchObject({ args: ["bad"] });
    const thrown = await events.find(
      "console_error",
      (data) => data["target_id"] === page.target && String(data["text"]).includes("thrown"),
    );
    expect(thrown).toMatchObject({ source: { event: "Runtime.exceptionThrown" } });
    expect(thrown.data).toMatchObject({ line: 0, source_url: `${site.url}/console` });
  });

  test("a layout shifts", async () => {
    const page = await browser.open(`${site.url}/`);
    // Only what was painted can shift, and on a busy machine a page has loaded long before it is.
    await found(page, "page_lcp");
    await run(
      page,
      `{
      const above = document.createElement("div");
      above.style.height = "200px";
      document.body.prepend(above);
    }`,
    );
    const shift = await found(page, "page_layout_shift");
    expect(shift.data).toMatchObject({
      source_frame_id: page.target,
      duration: 0,
      layout_shift_details: { value: expect.any(Number), had_recent_input: false },
    });
  });

  test("clicks, keys and scrolling are told, and not what is typed", async () => {
    const page = await browser.open(`${site.url}/fields`);
    // Chromium passes over what is pressed before a page is painted.
    await found(page, "page_lcp");
    await run(page, `document.querySelector("#link").click()`);
    await click(page, 20, 15);
    expect((await found(page, "interaction_click")).data).toMatchObject({
      selector: "a#link",
      tag: "A",
      text: "Go there",
      x: 20,
      y: 15,
    });
    await run(page, `document.querySelector("#secret").focus()`);
    await press(page, "s");
    await run(page, `document.querySelector("#field").focus()`);
    await press(page, "a");
    await press(page, "Enter");
    expect((await found(page, "interaction_key", { key: "Enter" })).data).toMatchObject({
      selector: "input#field",
    });
    const keys = events.of("interaction_key", (data) => data["target_id"] === page.target);
    expect(keys.map(({ data }) => data["key"])).toEqual(["Character", "Enter"]);
    const wheel = { type: "mouseWheel", x: 30, y: 150, deltaX: 0, deltaY: 120 };
    await send(page, "Input.dispatchMouseEvent", wheel);
    expect((await found(page, "interaction_scroll_settled")).data).toMatchObject({
      from_y: 0,
      to_y: 120,
      target_selector: "div#box",
    });
    // The click by script is not one of a person or an agent.
    expect(events.of("interaction_click", (data) => data["target_id"] === page.target)).toHaveLength(1);
  });

  test("frames, wherever they run, and workers are part of their page", async () => {
    const page = await browser.open(`${site.url}/worker`);
    const worker = await events.find("console_log", (data) => data["text"] === "from the worker");
    expect(worker.data).toMatchObject({ target_type: "worker" });
    await run(
      page,
      `{
      const frame = document.createElement("iframe");
      frame.src = "${site.otherUrl}/inner";
      document.body.append(frame);
    }`,
    );
    const inner = await events.find("console_log", (data) => data["text"] === "from the frame");
    await run(page, `worker.postMessage(""), frames[0].postMessage("", "*")`);
    await events.find("network_response", (data) => String(data["url"]).endsWith("/json?worker"));
    await events.find("network_response", (data) => String(data["url"]).endsWith("/json?inner"));
    const navigation = await events.find(
      "page_navigation",
      (data) => data["url"] === `${site.otherUrl}/inner`,
    );
    expect(navigation.data).toMatchObject({ parent_frame_id: page.target });
    // headless-shell keeps frames of other sites in their page's process.
    const type = spec.engine === "headless-shell" ? "page" : "iframe";
    expect(inner.data).toMatchObject({ target_type: type });
  });

  test("a page crashes", async () => {
    const page = await browser.open(`${site.url}/`);
    await found(page, "page_load");
    browser.client.send("Page.crash", {}, page.session).catch(() => {});
    const crashed = await found(page, "page_crashed");
    expect(crashed.data).toEqual({ target_id: page.target, target_type: "page", url: `${site.url}/` });
  });

  test("every type of the corpus was caused", () => {
    expect(typesOfPages.filter((type) => events.of(type).length === 0)).toEqual([]);
    expect(lackedBy(events.all)).toEqual([]);
  });
});
