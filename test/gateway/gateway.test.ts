import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { tokenOf } from "../../src/base/crypto/lease-token.js";
import { until } from "../support/browser/chromium-until.js";
import { bedSecret, getJson, rawAnswer, refusedUpgrade } from "../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";

let browser: GatewayBrowser;

beforeAll(async () => {
  browser = await openGatewayBrowser({}, { limits: { connectMs: 1000, readyMs: 100 } });
});
afterAll(async () => browser.close());
beforeEach(() => {
  browser.bed.newLease(browser.chromium.id);
  browser.bed.registered.length = 0;
});

const at = (rest: string): string => `ws://127.0.0.1:${browser.bed.port}${rest}`;

test.each(["/json/version", "/json/version/"])("%s names the browser and our URL of it", async (path) => {
  const { status, headers, body } = await getJson(browser.http(path));
  expect([status, headers["content-type"]]).toEqual([200, "application/json; charset=utf-8"]);
  expect(body).toMatchObject({
    Browser: expect.stringContaining("Chrome/"),
    "Protocol-Version": "1.3",
    webSocketDebuggerUrl: browser.url(),
  });
  await (await connectRaw(String(body.webSocketDebuggerUrl))).close();
});

test.each(["/json", "/json/", "/json/list", "/json/list/"])(
  "%s lists targets whose URLs work",
  async (path) => {
    const { status, body } = await getJson(browser.http(path));
    expect(status).toBe(200);
    const [first] = body as unknown as {
      type: string;
      id: string;
      url: string;
      webSocketDebuggerUrl: string;
    }[];
    expect(first).toMatchObject({ type: "page", url: "about:blank" });
    const client = await connectRaw(first?.webSocketDebuggerUrl ?? "");
    expect((await client.send("Runtime.evaluate", { expression: "1+1" })).result).toMatchObject({
      result: { value: 2 },
    });
    await client.close();
  },
);

test.each(["/", "/devtools/browser", "/devtools/browser/1063aaf8-cc2b-44ce-ac86-ffd79bdef5d2"])(
  "a client may append %s",
  async (rest) => {
    const client = await connectRaw(browser.url(rest));
    expect((await client.send("Browser.getVersion")).result).toBeDefined();
    await client.close();
  },
);

test("a token that is missing, malformed, forged, or of another browser is 401, for upgrades and requests alike", async () => {
  const browserId = browser.chromium.id;
  const lease = browser.bed.lease(browserId);
  const forged = tokenOf(new Secret("another"), browserId, lease);
  const ofAnother = tokenOf(bedSecret, newBrowserId(onDemandPartition), lease);
  for (const token of ["", "x", ".", `${lease}.`, `${lease}.${"A".repeat(43)}`, forged, ofAnother, "%00"]) {
    const answers = await Promise.all([
      refusedUpgrade(at(`/browsers/${browserId}/cdp?token=${token}`)),
      getJson(at(`/browsers/${browserId}/cdp/json/version?token=${token}`).replace("ws", "http")),
    ]);
    for (const { status, body, headers } of answers) {
      expect([token, status, body]).toEqual([
        token,
        401,
        { code: "unauthorized", message: "The token is missing or not valid" },
      ]);
      expect(headers["x-request-id"]).toBeTruthy();
    }
  }
  expect(browser.bed.registered).toEqual([]);
});

test("the token of a lease that is over is 410 with the reason, and registers nothing here", async () => {
  const old = browser.url();
  const oldHttp = browser.http("/json/list");
  browser.bed.newLease(browser.chromium.id);
  const answers = [await refusedUpgrade(old), await getJson(oldHttp)];
  for (const { status, body } of answers) {
    expect([status, body]).toEqual([410, { code: "browser_gone", message: "The browser is gone: released" }]);
  }
  expect(browser.bed.local(browser.chromium.id).activity.registrations).toBe(0);
});

test("a session that no node has is 410", async () => {
  const browserId = newBrowserId(onDemandPartition);
  const { status, body } = await refusedUpgrade(
    at(`/browsers/${browserId}/cdp?token=${tokenOf(bedSecret, browserId, newLeaseId())}`),
  );
  expect([status, body.code]).toEqual([410, "browser_gone"]);
});

test("an unknown path is 404, a target that is not there too", async () => {
  expect((await refusedUpgrade(at("/nothing"))).body.code).toBe("route_not_found");
  expect((await refusedUpgrade(at("//"))).status).toBe(404);
  expect((await refusedUpgrade(browser.url("/nothing"))).status).toBe(404);
  expect((await getJson(browser.http("/json/nothing"))).status).toBe(404);
  expect((await refusedUpgrade(browser.url("/devtools/page/ABCDEF"))).body).toEqual({
    code: "not_found",
    message: "There is no such target",
  });
});

test("a plain request to a client's address, and an upgrade that is no WebSocket's, are 400", async () => {
  expect((await getJson(browser.http())).status).toBe(400);
  expect((await refusedUpgrade(browser.url("/json/version"))).status).toBe(400);
  expect((await refusedUpgrade(browser.url(), { upgrade: "h2c" })).status).toBe(400);
  expect((await refusedUpgrade(browser.url(), { "sec-websocket-key": "short" })).status).toBe(400);
});

test("a refused upgrade is a whole HTTP answer, after which the connection ends", async () => {
  const text = await rawAnswer(
    browser.bed.port,
    "GET /browsers/x/cdp HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
  );
  const [head = "", body = ""] = text.split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1\.1 404 Not Found\r\n/);
  expect(Number(/content-length: (\d+)/.exec(head)?.[1])).toBe(Buffer.byteLength(body));
  expect(JSON.parse(body)).toHaveProperty("code", "route_not_found");
});

test("registration that fails or hangs is 503 with Retry-After, and seats nobody", async () => {
  const { connects } = browser.bed;
  browser.bed.connects = async () => Promise.reject(new Error("no Redis"));
  expect((await refusedUpgrade(browser.url())).headers["retry-after"]).toBe("1");
  browser.bed.connects = () => new Promise(() => {});
  expect((await refusedUpgrade(browser.url())).status).toBe(503);
  expect((await getJson(browser.http("/json/version"))).status).toBe(503);
  browser.bed.connects = connects;
  expect(browser.bed.local(browser.chromium.id).activity.registrations).toBe(0);
});

test("the upgrade waits for the start_url's dispatch, but not for longer than its limit", async () => {
  const { connects } = browser.bed;
  let dispatch = (): void => {};
  browser.bed.connects = async () => ({
    kind: "connected",
    ready: new Promise<void>((resolve) => (dispatch = resolve)),
  });
  await (await connectRaw(browser.url())).close();
  browser.bed.connects = async () => ({
    kind: "connected",
    ready: Promise.reject(new Error("not dispatched")),
  });
  await (await connectRaw(browser.url())).close();
  dispatch();
  browser.bed.connects = connects;
});

test("the fence cuts open sockets and upgrades in flight of its lease, and the lease is 410 from then on", async () => {
  const { bed, chromium } = browser;
  const { connects } = bed;
  const { activity } = bed.local(chromium.id);
  const lease = bed.lease(chromium.id);
  const url = browser.url();
  const client = await connectRaw(url);
  const { browserContextId } =
    (await client.send("Target.createBrowserContext", { disposeOnDetach: true })).result ?? {};
  expect(browserContextId).toBeDefined();
  let admit = (): void => {};
  bed.connects = () => new Promise((resolve) => (admit = () => resolve({ kind: "connected" })));
  const registered = bed.registered.length;
  const pending = refusedUpgrade(url);
  await until("the upgrade is in flight", () => bed.registered.length > registered);
  await activity.cutLease(lease, "released");
  bed.connects = connects;
  bed.newLease(chromium.id);
  const next = await connectRaw(browser.url());
  expect((await next.send("Target.getBrowserContexts")).result?.browserContextIds).toEqual([]);
  expect(await client.closed).toEqual({ code: 4410, reason: "released" });
  expect((await pending).body).toEqual({ code: "browser_gone", message: "The browser is gone: released" });
  admit();
  expect(await refusedUpgrade(url)).toMatchObject({
    status: 410,
    body: { message: "The browser is gone: released" },
  });
  expect((await next.send("Browser.getVersion")).result).toBeDefined();
  expect(activity.lease).toBe(bed.lease(chromium.id));
  await next.close();
});

test("a client counts as activity while it is connected and no longer", async () => {
  const { activity } = browser.bed.local(browser.chromium.id);
  activity.begin(browser.bed.lease(browser.chromium.id));
  const client = await connectRaw(browser.url());
  expect([activity.inactiveSinceMs, activity.registrations]).toEqual([undefined, 1]);
  await getJson(browser.http("/json/version"));
  expect(activity.registrations).toBe(2);
  await client.close();
  await until("inactive", () => activity.inactiveSinceMs !== undefined);
});
