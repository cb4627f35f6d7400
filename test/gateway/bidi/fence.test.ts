import { request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import type { NodeAddress } from "../../../src/gateway/ports.js";
import { until } from "../../support/browser/chromium-until.js";
import { type GatewayBed, openGatewayBed, refusedUpgrade } from "../../support/gateway/gateway-bed.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectBidi, firstContext } from "../../support/gateway/raw-bidi.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { DrivenClock } from "../../support/driven-clock.js";

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
  {
    body,
    text: given = body && JSON.stringify(body),
    headers = {},
  }: { body?: object; text?: string | undefined; headers?: Record<string, string> } = {},
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
    asking.once("error", reject).end(given);
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
  const unknown = { status: 404, value: { error: "unknown command" } };
  const of = (command: string): string => classic(`/session/${sessionId}${command}`);
  expect(await ask("POST", of("/url"), { body: { url: "about:blank" } })).toMatchObject(unknown);
  expect(await ask("POST", of("/session"), { body: { capabilities: {} } })).toMatchObject(unknown);
  expect(await ask("GET", of("/status"))).toMatchObject(unknown);
  expect(await ask("DELETE", classic(`/session/${sessionId}`))).toMatchObject({ status: 200, value: null });
  expect((await client.closed).code).toBe(1000);
});

test("a session that is deleted while its browser stands still ends its client, and nothing else", async () => {
  const faults: unknown[] = [];
  const note = (fault: unknown): void => void faults.push(fault);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  const clock = new DrivenClock();
  const still = await openGatewayBrowser({}, { bridgeClock: clock });
  onTestFinished(() => still.close());
  const made = await ask("POST", classic("/session", still.bidi()), { body: { capabilities: {} } });
  const { sessionId = "", capabilities } = made.value ?? {};
  const client = await connectBidi(capabilities?.webSocketUrl ?? "");
  await firstContext(client.send);
  still.chromium.pipe.hold();
  expect(await ask("DELETE", classic(`/session/${sessionId}`, still.bidi()))).toMatchObject({ status: 200 });
  expect((await client.closed).code).toBe(1000);
  // Longer than Chromium has to say that it has detached the client.
  await clock.advance(60_000);
  still.chromium.pipe.resume();
  expect(await ask("GET", classic("/status", still.bidi()))).toMatchObject({ status: 200 });
  expect(faults).toEqual([]);
});

test.each([
  [{ browserName: "firefox" }, 500, "session not created"],
  [{ browserVersion: "3" }, 500, "session not created"],
  [{ platformName: "windows" }, 500, "session not created"],
  [{ proxy: { proxyType: "direct" } }, 500, "session not created"],
  [{ proxy: { httpProxy: "1.2.3.4:80" } }, 500, "session not created"],
  [{ proxy: { proxyType: "system", sslProxy: "1.2.3.4:80" } }, 500, "session not created"],
  [{ acceptInsecureCerts: "yes" }, 400, "invalid argument"],
  [{ unhandledPromptBehavior: "think" }, 400, "invalid argument"],
  [{ unhandledPromptBehavior: { window: "accept" } }, 400, "invalid argument"],
  [{ unhandledPromptBehavior: { alert: ["accept"] } }, 400, "invalid argument"],
  [{ unhandledPromptBehavior: ["accept"] }, 400, "invalid argument"],
  [{ browserName: 7 }, 400, "invalid argument"],
  [{ browserVersion: {} }, 400, "invalid argument"],
  [{ platformName: ["linux"] }, 400, "invalid argument"],
  [{ webSocketUrl: "yes" }, 400, "invalid argument"],
  [{ timeouts: 5 }, 400, "invalid argument"],
  [{ proxy: "none" }, 400, "invalid argument"],
  [{ proxy: { proxyType: "manual", httpProxy: "127.0.0.1:1" } }, 500, "session not created"],
])("a session with %j is refused", async (alwaysMatch, status, error) => {
  expect(await ask("POST", classic("/session"), { body: { capabilities: { alwaysMatch } } })).toMatchObject({
    status,
    value: { error },
  });
});

test.each([
  [
    "all that may be asked for",
    {
      browserName: null,
      webSocketUrl: false,
      timeouts: { script: 1, pageLoad: 2, implicit: 3 },
      unhandledPromptBehavior: { alert: "accept", beforeUnload: "ignore", default: "dismiss" },
      "goog:chromeOptions": { args: ["--no-sandbox", "--proxy-server=direct://"], binary: "/bin/sh" },
    },
  ],
  [
    "names of an object's own",
    { ["constructor"]: 1, ["toString"]: 2, ["__proto__"]: { acceptInsecureCerts: true } },
  ],
])("the address that a session is answered with can be opened: %s", async (_, alwaysMatch) => {
  const made = await ask("POST", classic("/session"), {
    body: { capabilities: { alwaysMatch, firstMatch: [{}] } },
  });
  expect(made.value?.capabilities).toMatchObject({ acceptInsecureCerts: false, proxy: {} });
  const client = await connectBidi(made.value?.capabilities?.webSocketUrl ?? "");
  expect(await client.evaluate(await firstContext(client.send), "6 * 7")).toBe(42);
  await client.close();
});

test.each([
  ["longer than it may be", `{"capabilities":{"alwaysMatch":{"x:y":"${"x".repeat(2 * 1024 * 1024)}"}}}`],
  ["too deep", `{"capabilities":${"[".repeat(100)}${"]".repeat(100)}}`],
  ["of too many values", `{"capabilities":{"firstMatch":[${"{},".repeat(20_000)}{}]}}`],
  ["no JSON", "capabilities=1"],
])("a body that is %s is an invalid argument", async (_, body) => {
  expect(await ask("POST", classic("/session"), { text: body })).toMatchObject({
    status: 400,
    value: { error: "invalid argument" },
  });
});

test("a session of no client may be ended, and no other client is", async () => {
  const client = await connectBidi(browser.bidi());
  const context = await client.begin();
  for (const id of ["11111111-1111-1111-1111-111111111111", "..", "%00", "x".repeat(4000)])
    expect((await ask("DELETE", classic(`/session/${id}`))).status).not.toBe(500);
  expect(await client.evaluate(context, "6 * 7")).toBe(42);
  await client.close();
});

test("an address that was answered tells of a session no more than who has it may know", async () => {
  const made = await ask("POST", classic("/session"), { body: { capabilities: {} } });
  const url = new URL(made.value?.capabilities?.webSocketUrl ?? "");
  url.searchParams.set("token", "wrong");
  const refused = await refusedUpgrade(url.toString());
  expect(refused).toMatchObject({ status: 401, body: { code: "unauthorized" } });
  const cdp = await refusedUpgrade(browser.url().replace(/token=.*/, "token=wrong"));
  expect(refused.body).toEqual(cdp.body);
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
