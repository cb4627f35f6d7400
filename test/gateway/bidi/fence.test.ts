import { request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { NodeAddress } from "../../../src/gateway/ports.js";
import { until } from "../../support/browser/chromium-until.js";
import { type GatewayBed, openGatewayBed, refusedUpgrade } from "../../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectBidi, firstContext } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

let browser: GatewayBrowser;
/** A daemon that has no browser itself. */
let front: GatewayBed;

beforeAll(async () => {
  browser = await openGatewayBrowser({}, { limits: { bidiClients: { lease: 2, daemon: 3 } } });
  const there: NodeAddress = { host: "127.0.0.1", port: browser.bed.port };
  front = await openGatewayBed([], { findAddress: async () => there });
});
afterAll(async () => {
  await front.close();
  await browser.close();
});
beforeEach(async () => {
  const { counts } = browser.bed;
  await until("no client is left", () => counts.opened === counts.closed);
  browser.bed.newLease(browser.chromium.id);
});

const viaFront = (url: string): string => url.replace(`:${browser.bed.port}/`, `:${front.port}/`);
/** The URL of a command of classic WebDriver, with the token in its query. */
const classic = (command: string, url = browser.bidi()): string =>
  url.replace("ws:", "http:").replace("/webdriver/session?", `/webdriver${command}?`);

interface ClassicAnswer {
  readonly status: number;
  readonly value: {
    readonly error?: string;
    readonly sessionId?: string;
    readonly capabilities?: { webSocketUrl: string };
  } | null;
  readonly code?: string;
}

const ask = (
  method: string,
  url: string,
  { body, headers = {} }: { body?: object; headers?: Record<string, string> } = {},
): Promise<ClassicAnswer> =>
  new Promise((resolve, reject) => {
    const asking = request(url, { method, headers, agent: false });
    asking.once("response", (answer) =>
      text(answer).then(
        (read) =>
          resolve({ status: answer.statusCode ?? 0, ...(JSON.parse(read) as Omit<ClassicAnswer, "status">) }),
        reject,
      ),
    );
    asking.once("error", reject).end(body && JSON.stringify(body));
  });

test("a lease that is over cuts its BiDi clients and opens no more", async () => {
  const [url, http] = [browser.bidi(), classic("/status")];
  const client = await connectBidi(url);
  await client.begin();
  const { activity } = browser.bed.local(browser.chromium.id);
  expect(activity.inactiveSinceMs).toBeUndefined();
  await activity.cutLease(browser.bed.lease(browser.chromium.id), "released");
  expect(await client.closed).toEqual({ code: 4410, reason: "released" });
  expect(await refusedUpgrade(url)).toMatchObject({ status: 410, body: { code: "browser_gone" } });
  expect(await ask("GET", http)).toMatchObject({
    status: 410,
    code: "browser_gone",
    value: { error: "invalid session id" },
  });
});

test("a token that is wrong opens nothing, in the query or as a password", async () => {
  const url = browser.bidi().replace(/token=.*/, "token=wrong");
  expect(await refusedUpgrade(url)).toMatchObject({ status: 401, body: { code: "unauthorized" } });
  expect(await ask("POST", classic("/session", url), { body: {} })).toMatchObject({
    status: 401,
    code: "unauthorized",
  });
  const bare = classic("/status", url).replace(/\?.*/, "");
  const authorization = `Basic ${Buffer.from("lease:wrong").toString("base64")}`;
  expect(await ask("GET", bare, { headers: { authorization } })).toMatchObject({ status: 401 });
});

test("clients beyond the limits of a lease and of the daemon are 429, and a place that is left is free", async () => {
  const clients = [await connectBidi(browser.bidi()), await connectBidi(browser.bidi())];
  expect(await refusedUpgrade(browser.bidi())).toMatchObject({
    status: 429,
    body: { code: "too_many_clients" },
  });
  const cdp = await connectRaw(browser.url());
  await cdp.close();
  browser.bed.newLease(browser.chromium.id);
  clients.push(await connectBidi(browser.bidi()));
  expect((await refusedUpgrade(browser.bidi())).status).toBe(429);
  await Promise.all(clients.map((client) => client.close()));
  await until("a place is free", async () => {
    const client = await connectBidi(browser.bidi()).catch(() => undefined);
    await client?.close();
    return client !== undefined;
  });
});

test("a session that was made by HTTP is begun with its socket, and ends with its DELETE", async () => {
  expect(await ask("GET", classic("/status"))).toMatchObject({ status: 200, value: { ready: true } });
  const alwaysMatch = { browserName: "chrome", unhandledPromptBehavior: "accept", "x:y": 1 };
  const made = await ask("POST", classic("/session"), { body: { capabilities: { alwaysMatch } } });
  const { sessionId = "", capabilities } = made.value ?? {};
  const client = await connectBidi(capabilities?.webSocketUrl ?? "");
  const context = await firstContext(client.send);
  expect(await client.evaluate(context, "confirm('?')")).toBe(true);
  expect(await client.send("session.new", { capabilities: {} })).toMatchObject({
    error: "session not created",
  });
  expect(await ask("GET", classic(`/session/${sessionId}/window`))).toMatchObject({ value: context });
  expect(await ask("GET", classic(`/session/${sessionId}/window/handles`))).toMatchObject({
    value: [context],
  });
  expect(
    await ask("POST", classic(`/session/${sessionId}/url`), { body: { url: "about:blank" } }),
  ).toMatchObject({ status: 404, value: { error: "unknown command" } });
  expect(await ask("DELETE", classic(`/session/${sessionId}`))).toMatchObject({ status: 200, value: null });
  expect((await client.closed).code).toBe(1000);
});

test.each([
  [{ browserName: "firefox" }, 500, "session not created"],
  [{ browserVersion: "3" }, 500, "session not created"],
  [{ platformName: "windows" }, 500, "session not created"],
  [{ proxy: { proxyType: "direct" } }, 500, "session not created"],
  [{ acceptInsecureCerts: "yes" }, 400, "invalid argument"],
  [{ unhandledPromptBehavior: "think" }, 400, "invalid argument"],
])("a session with %j is refused", async (alwaysMatch, status, error) => {
  expect(await ask("POST", classic("/session"), { body: { capabilities: { alwaysMatch } } })).toMatchObject({
    status,
    value: { error },
  });
});

test("a body that is none, an address that is none and options that are none are told so", async () => {
  expect(await ask("POST", classic("/session"))).toMatchObject({
    status: 400,
    value: { error: "invalid argument" },
  });
  expect((await refusedUpgrade(browser.bidi().replace("/session?", "/nothing?"))).status).toBe(404);
  const session = "/session/11111111-1111-1111-1111-111111111111?options=eHg&";
  expect((await refusedUpgrade(browser.bidi().replace("/session?", session))).status).toBe(400);
});

test("clients of both protocols drive one browser at once", async () => {
  const [bidi, cdp] = [await connectBidi(browser.bidi()), await connectRaw(browser.url())];
  const context = await bidi.begin();
  const session = await cdp.attach(context);
  expect(await bidi.evaluate(context, "globalThis.said = 'by BiDi'")).toBe("by BiDi");
  expect(await cdp.evaluate("said", session)).toBe("by BiDi");
  await bidi.close();
  expect(await cdp.evaluate("said", session)).toBe("by BiDi");
  await cdp.close();
});

test("a daemon without the browser sends sockets and requests on to its node", async () => {
  const made = await ask("POST", viaFront(classic("/session")), { body: { capabilities: {} } });
  const client = await connectBidi(viaFront(made.value?.capabilities?.webSocketUrl ?? ""));
  const context = await firstContext(client.send);
  expect(await client.evaluate(context, "6 * 7")).toBe(42);
  expect(await ask("DELETE", viaFront(classic(`/session/${made.value?.sessionId}`)))).toMatchObject({
    value: null,
  });
  expect((await client.closed).code).toBe(1000);
});
