import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import type { FillSite } from "../../support/browser/fill/fill-bed.js";
import type { GatewayBrowser } from "../../support/gateway/gateway-browser.js";
import {
  attachLoaded,
  closeOthers,
  loadPage,
  openPageBesideSite,
  type PageBesideSite,
  targetAt,
  targetsOf,
} from "../../support/gateway/page-beside-site.js";
import { connectBidi } from "../../support/gateway/raw-bidi.js";
import type { RawCdp } from "../../support/gateway/raw-cdp.js";

/** A click anywhere runs what the page has been told to do. */
const body = `<input id="user"><div style="position: fixed; inset: 0" onmousedown="onclicked()"></div>`;

describe.each(kinds)("a page of %s that is protected", (_, spec) => {
  let bed: PageBesideSite;
  let browser: GatewayBrowser;
  let site: FillSite;
  let client: RawCdp;
  let page: string;
  let session: string;
  beforeAll(async () => {
    bed = await openPageBesideSite(spec);
    ({ browser, site, client, page } = bed);
    site.serve({ body, others: { "/popup": "popup", "/late": "late", "/frame": "frame" } });
    session = await client.attach(page);
    await client.send("Page.enable", {}, session);
  });
  afterAll(() => bed.close());
  beforeEach(async () => {
    browser.bed.local(browser.chromium.id).bridge.filled.remove(page);
    await closeOthers(client, page);
    site.requests.splice(0);
    await loadPage(client, session, `${site.here}/`);
    await client.evaluate(`user.value = "secret-1"`, session);
  });

  const loaded = (path: string): Promise<string> => attachLoaded(client, path);
  const protect = (at = page): void => browser.bed.local(browser.chromium.id).bridge.filled.add(at, [at], {});
  /** What a client that evaluates is told, whether it throws or not. */
  const told = async (expression: string, at: string): Promise<string> =>
    JSON.stringify((await client.send("Runtime.evaluate", { expression }, at)).result);
  const opens = (expression: string) =>
    client.send("Runtime.evaluate", { expression, userGesture: true }, session);
  /** A click on a page that has not been painted yet is lost, so it is repeated until it has been seen. */
  const clickUntil = (what: string, isSeen: () => boolean): Promise<boolean> =>
    until(what, async () => {
      for (const type of ["mousePressed", "mouseReleased"])
        await client.send(
          "Input.dispatchMouseEvent",
          { type, x: 100, y: 100, button: "left", clickCount: 1 },
          session,
        );
      return isSeen();
    });

  test("is not read by a page that it has opened, nor by what that has opened", async () => {
    await opens(`self.popup = open("/popup", "one")`);
    const popup = await loaded("/popup");
    expect(await told("opener.user.value", popup)).toContain("secret-1");
    protect();
    expect(await told("opener.user.value", popup)).toContain("protect_filled");
    const { error } = await client.send("DOM.getDocument", {}, popup);
    expect(error?.message).toContain("or in a page that this one reaches");
    // What comes later is no other.
    const { error: planted } = await client.send(
      "Page.addScriptToEvaluateOnNewDocument",
      { source: "leak(opener.user.value)" },
      popup,
    );
    expect(planted?.message).toContain("protect_filled");
    browser.bed.local(browser.chromium.id).bridge.filled.remove(page);
    expect(await told("1 + 1", popup)).toContain('"value":2');
  });

  test("is not read by a page that a click opens later, nor by one that has opened it", async () => {
    await client.evaluate(`self.onclicked = () => { self.late ??= open("/late", "late"); }`, session);
    protect();
    await clickUntil("the page at /late", () => site.requests.includes("/late"));
    const { targetId } = await targetAt(client, "/late");
    const late = await client.attach(targetId);
    expect(await told("opener.user.value", late)).toContain("protect_filled");
    browser.bed.local(browser.chromium.id).bridge.filled.remove(page);
    protect(targetId);
    expect(await told("1 + 1", session)).toContain("protect_filled");
    browser.bed.local(browser.chromium.id).bridge.filled.remove(targetId);
  });

  test("leaves all other pages as they are, also one that it has opened without a hold on it", async () => {
    await opens(`open("/popup", "_blank", "noopener")`);
    const popup = await loaded("/popup");
    await client.send("Target.createTarget", { url: `${site.here}/late` });
    const other = await loaded("/late");
    protect();
    for (const at of [popup, other]) expect(await told("1 + 1", at)).toContain('"value":2');
  });

  test("is not read by a frame of another site that came later, whoever attaches to it", async () => {
    await client.evaluate(
      `const frame = document.createElement("iframe");
      frame.src = "${site.other}/frame";
      self.onclicked = () => frame.isConnected || document.body.append(frame);`,
      session,
    );
    protect();
    await clickUntil("the frame", () => site.requests.includes("/frame"));
    // In headless-shell it is in the page's own process, and has no target of its own.
    const hasTarget = spec.engine === "chromium";
    const frames = await until("its target", async () => {
      const found = (await targetsOf(client)).filter(({ type }) => type === "iframe");
      return found.length > 0 || !hasTarget ? found : undefined;
    });
    expect(frames).toHaveLength(hasTarget ? 1 : 0);
    for (const { targetId } of frames)
      expect(await told("1 + 1", await client.attach(targetId))).toContain("protect_filled");
  });

  test("has no request of it answered by a client, nor sent elsewhere", async () => {
    await client.send("Target.createTarget", { url: `${site.here}/late` });
    const other = await loaded("/late");
    const answer = { requestId: "none", responseCode: 200 };
    const elsewhere = { requestId: "none", url: `${site.here}/late` };
    const { result } = await client.send("Target.attachToBrowserTarget");
    const whole = String(result?.["sessionId"]);
    protect();
    for (const at of [session, whole, undefined]) {
      for (const [method, params] of [
        ["Fetch.fulfillRequest", answer],
        ["Fetch.continueRequest", elsewhere],
        ["Fetch.continueRequest", { ...elsewhere, url: `${site.here}/${"x".repeat(100_000)}` }],
      ] as const)
        expect((await client.send(method, params, at)).error?.message, method).toContain("protect_filled");
      const { error } = await client.send("Fetch.continueRequest", { requestId: "none" }, at);
      expect(error?.message).not.toContain("protect_filled");
    }
    // Another page's client answers its own.
    expect((await client.send("Fetch.fulfillRequest", answer, other)).error?.message).not.toContain(
      "protect_filled",
    );
  });

  const testOfChromium = spec.engine === "chromium" ? test : () => {};
  testOfChromium("is no other for a client of BiDi", async () => {
    await opens(`self.popup = open("/popup", "one")`);
    await loaded("/popup");
    await client.evaluate(
      `self.channel = new BroadcastChannel("asks");
      channel.onmessage = () => fetch("/asked").then(({ status }) => { self.got = status; })`,
      session,
    );
    await client.send("Target.createTarget", { url: `${site.here}/late` });
    const other = await loaded("/late");
    const bidi = await connectBidi(browser.bidi());
    await bidi.begin();
    await bidi.send("session.subscribe", { events: ["network.beforeRequestSent"] });
    await bidi.send("network.addIntercept", { phases: ["beforeRequestSent"] });
    const { result } = await bidi.send("browsingContext.getTree");
    const contexts = (result?.["contexts"] ?? []) as { readonly context: string; readonly url: string }[];
    const context = contexts.find(({ url }) => url.endsWith("/popup"))?.context;
    protect();
    const read = { expression: "opener.user.value", target: { context }, awaitPromise: false };
    expect(JSON.stringify(await bidi.send("script.evaluate", read))).toContain("protect_filled");
    await client.evaluate(`new BroadcastChannel("asks").postMessage("")`, other);
    const { params } = await bidi.message(
      ({ method, params: of }) =>
        method === "network.beforeRequestSent" && JSON.stringify(of).includes("/asked"),
    );
    const { request } = (params?.["request"] ?? {}) as { readonly request?: string };
    // The mapper does not tell that this was refused, and lets the request go on to the site.
    await bidi.send("network.provideResponse", { request, statusCode: 299 });
    browser.bed.local(browser.chromium.id).bridge.filled.remove(page);
    expect(await until("an answer", () => client.evaluate("self.got", session))).toBe(404);
    bidi.close();
  });
});
