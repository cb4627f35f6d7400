import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { engines } from "../../support/browser/chromium-kinds.js";
import { until } from "../../support/browser/chromium-until.js";
import { type FillSite, fillBy, fillOf } from "../../support/browser/fill/fill-bed.js";
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
import type { RawCdp, RawReply } from "../../support/gateway/raw-cdp.js";

const body = `<input id="user"><iframe src="/frame"></iframe>`;
const worker = `self.onconnect = self.onfetch = () => {};
  self.onactivate = (event) => event.waitUntil(clients.claim());`;
const others = {
  "/frame": "frame",
  "/popup": "popup",
  "/last": "last",
  "/around": `<iframe src="{here}/within"></iframe>`,
  "/within": "within",
  "/served.js": worker,
  "/shared.js": worker,
};

describe.each(engines)("a page of %s that is protected", (_, spec) => {
  let bed: PageBesideSite;
  let browser: GatewayBrowser;
  let site: FillSite;
  let client: RawCdp;
  let page: string;
  let session: string;
  beforeAll(async () => {
    bed = await openPageBesideSite(spec);
    ({ browser, site, client, page } = bed);
    site.serve({ body, others });
    session = await client.attach(page);
    await client.send("Page.enable", {}, session);
  });
  afterAll(() => bed.close());
  beforeEach(async () => {
    filled().remove(page);
    await closeOthers(client, page);
    await loadPage(client, session, `${site.here}/`);
  });

  const filled = () => browser.bed.local(browser.chromium.id).bridge.filled;
  const protect = (): void => filled().add(page, [page], {});
  const loaded = (path: string): Promise<string> => attachLoaded(client, path);
  /** A worker has no document that could be waited for. */
  const attachedWorker = async (path: string): Promise<string> =>
    await client.attach((await targetAt(client, path)).targetId);
  /** What a client that evaluates is told, whether it throws or not. */
  const told = async (expression: string, at: string): Promise<string> =>
    JSON.stringify((await client.send("Runtime.evaluate", { expression }, at)).result);
  const opens = (expression: string, at = session) =>
    client.send("Runtime.evaluate", { expression, userGesture: true }, at);
  const fill = (): Promise<object> =>
    fillBy(browser.chromium.pipe, {
      ...fillOf({ fields: [["#user", "secret-1"]] }),
      page_url: `${site.here}/`,
    });

  test("gives no answer to what was asked before it was filled, and answers the rest", async () => {
    const ask = (expression: string): Promise<RawReply> =>
      client.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true }, session);
    const waiting = ask("new Promise((resolve) => { user.oninput = () => resolve(user.value); })");
    const failing = ask("new Promise((_, reject) => { user.onchange = () => reject(Error(user.value)); })");
    const navigating = client.send("Page.getNavigationHistory", {}, session);
    await navigating;
    protect();
    await fill();
    for (const { error, result } of await Promise.all([waiting, failing])) {
      expect(error?.message).toContain("protect_filled");
      expect(result).toBeUndefined();
    }
    filled().remove(page);
    // What is asked from now on is answered, under whichever id.
    expect(await client.evaluate("user.value", session)).toBe("secret-1");
  });

  test("does not answer late, when it shows another document by then", async () => {
    await opens(`self.popup = open("/popup", "one")`);
    const popup = await loaded("/popup");
    const asking = "new Promise((resolve) => { self.tell = () => resolve(self.got); })";
    const waiting = client.send("Runtime.evaluate", { expression: asking, awaitPromise: true }, popup);
    await until("it waits", async () => (await told("typeof self.tell", popup)).includes("function"));
    await opens(`user.oninput = () => { popup.got = user.value; }`);
    protect();
    await fill();
    filled().remove(page);
    await client.evaluate("tell()", popup);
    expect((await waiting).error?.message).toContain("protect_filled");
  });

  test("is not read by a page that a frame of it has opened", async () => {
    await client.evaluate(`user.value = "secret-1"`, session);
    await opens(`frames[0].open("/popup", "of-frame")`);
    const popup = await loaded("/popup");
    expect(await told("opener.parent.user.value", popup)).toContain("secret-1");
    protect();
    expect(await told("opener.parent.user.value", popup)).toContain("protect_filled");
  });

  test("is not read by a page whose opener has gone, and that finds it by its name", async () => {
    await client.evaluate(`user.value = "secret-1"; self.name = "main"`, session);
    await opens(`open("/popup", "middle")`);
    await opens(`open("/last", "last")`, await loaded("/popup"));
    const last = await loaded("/last");
    const middle = await targetAt(client, "/popup");
    await client.send("Target.closeTarget", { targetId: middle.targetId });
    await until("the one between is gone", async () =>
      (await targetsOf(client)).every(({ targetId }) => targetId !== middle.targetId),
    );
    const finds = `open("", "main").user.value`;
    expect(await told(finds, last)).toContain("secret-1");
    protect();
    expect(await told(finds, last)).toContain("protect_filled");
  });

  test("is not read by a frame of its own origin that came when it was about to be filled", async () => {
    const end = filled().expect();
    await client.evaluate(
      `user.value = "secret-1";
      const frame = document.createElement("iframe");
      frame.src = "${site.other}/around";
      document.body.append(frame);`,
      session,
    );
    // In headless-shell it is in the page's own process, and has no target of its own.
    const hasTarget = spec.engine === "chromium";
    const within = hasTarget ? await loaded("/within") : session;
    expect(await told("top.user.value", within)).toContain("secret-1");
    protect();
    end();
    expect(await told("top.user.value", within)).toContain("protect_filled");
  });

  test("has no request answered by the script of a worker that a client has changed meanwhile", async () => {
    await client.evaluate(
      `new SharedWorker("/shared.js");
      navigator.serviceWorker.register("/served.js").then(() => navigator.serviceWorker.ready).then(() => 1)`,
      session,
    );
    await client.send("Target.createTarget", { url: `${site.here}/last` });
    const other = await loaded("/last");
    const workers = [await attachedWorker("/served.js"), await attachedWorker("/shared.js")];
    const changes = "self.onfetch = (event) => event.respondWith(new Response('leak(user.value)'))";
    protect();
    for (const at of workers) {
      expect(await told(changes, at)).toContain("protect_filled");
      const { error } = await client.send("Network.getResponseBody", { requestId: "none" }, at);
      expect(error?.message).toContain("protect_filled");
      expect((await client.send("Runtime.enable", {}, at)).error).toBeUndefined();
    }
    expect(await told("1 + 1", other)).toContain('"value":2');
    filled().remove(page);
    for (const at of workers) expect(await told("1 + 1", at)).toContain('"value":2');
    // While a client is attached to a worker that was unregistered, Chromium 156 answers no `setAutoAttach`.
    for (const sessionId of workers) await client.send("Target.detachFromTarget", { sessionId });
    await client.evaluate(
      "navigator.serviceWorker.getRegistrations().then((all) => Promise.all(all.map((each) => each.unregister())))",
      session,
    );
  });

  test("shows no body of its responses to a session on the whole browser", async () => {
    protect();
    for (const method of ["Fetch.getResponseBody", "Fetch.takeResponseBodyAsStream"])
      expect((await client.send(method, { requestId: "none" })).error?.message).toContain("protect_filled");
  });

  const testOfChromium = spec.engine === "chromium" ? test : () => {};
  testOfChromium(
    "is read by no command of BiDi, nor by the answer to one that was asked before it was filled",
    async () => {
      const bidi = await connectBidi(browser.bidi());
      await bidi.begin();
      // The id of a page is the same in both protocols.
      const target = { context: page };
      const planted = "new Promise((resolve) => { user.oninput = () => resolve(user.value); })";
      const waiting = bidi.send("script.evaluate", { expression: planted, target, awaitPromise: true });
      await until("it waits", () => client.evaluate("typeof user.oninput === 'function'", session));
      protect();
      await fill();
      expect(JSON.stringify(await waiting)).toContain("protect_filled");
      const read = { expression: "user.value", awaitPromise: false };
      for (const [method, params] of [
        ["browsingContext.captureScreenshot", target],
        ["browsingContext.print", target],
        ["browsingContext.locateNodes", { ...target, locator: { type: "css", value: "#user" } }],
        ["script.evaluate", { ...read, target }],
        ["script.evaluate", { ...read, target: { ...target, sandbox: "mine" } }],
        ["script.callFunction", { functionDeclaration: "() => user.value", target, awaitPromise: false }],
      ] as const) {
        const answer = JSON.stringify(await bidi.send(method, params));
        expect(answer, method).toContain("protect_filled");
        expect(answer, method).not.toContain("secret-1");
      }
      bidi.close();
    },
  );
});
