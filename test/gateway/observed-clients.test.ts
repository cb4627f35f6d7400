import { once } from "node:events";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { WebSocket } from "ws";
import { newRequestId } from "../../src/base/ids.js";
import type { ClientObserver } from "../../src/gateway/ports.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp, type RawReply } from "../support/gateway/raw-cdp.js";
import { DrivenClock } from "../support/driven-clock.js";
import { until } from "../support/browser/chromium-until.js";

let browser: GatewayBrowser;
/** `what client rest`, in order; clients are numbered as they come. */
let heard: string[];
let messages: number;

const numbers = new Map<object, number>();
const numberOf = (client: object): number => {
  const number = numbers.get(client) ?? numbers.size + 1;
  numbers.set(client, number);
  return number;
};
const observer: ClientObserver = {
  opened: (client) => void heard.push(`opened ${numberOf(client)}`),
  message: () => void (messages += 1),
  command: (client, { method, data }) => {
    const { method: _, command_id: id, session_id: session, ...fields } = data ?? {};
    heard.push(
      [method, numberOf(client), id, session === undefined ? "root" : "session", JSON.stringify(fields)].join(
        " ",
      ),
    );
  },
  closed: (client, end) => void heard.push(`closed ${numberOf(client)} ${end}`),
  requested: ({ lease, request, operation, status }) =>
    void heard.push(`${operation} ${lease === presentLease()} ${request} ${status}`),
};
const presentLease = () => browser.bed.lease(browser.chromium.id);

beforeAll(async () => {
  const answer = { status: 404, headers: {}, body: Buffer.from("not there"), durationMs: 5 };
  browser = await openGatewayBrowser({}, { curl: async () => answer, bridgeClock: new DrivenClock() });
});
afterAll(async () => browser.close());
beforeEach(() => {
  heard = [];
  messages = 0;
  numbers.clear();
  browser.bed.newLease(browser.chromium.id);
  browser.bed.observer = observer;
});
afterEach(() => {
  browser.bed.observer = undefined;
});

/** A test waits for it, so that the next hears nothing of its clients. */
const closed = (number: number): Promise<unknown> =>
  until(`client ${number} was told to be gone`, async () =>
    heard.some((line) => line.startsWith(`closed ${number} `)),
  );
const leave = async (client: RawCdp): Promise<void> => {
  await client.close();
  await closed(1);
};

test("commands of several clients are told in their order, each with its session, and no other commands", async () => {
  const [first, second] = [await connectRaw(browser.url()), await connectRaw(browser.url())];
  const session = await first.attach();
  await first.send("Input.insertText", { text: "abc" }, session);
  await second.send("Target.createBrowserContext");
  await first.evaluate("1", session);
  await first.send("Page.bringToFront", {}, session);
  await first.close();
  await second.close();
  await Promise.all([closed(1), closed(2)]);
  expect(heard).toEqual([
    "opened 1",
    "opened 2",
    'Input.insertText 1 3 session {"text_length":3}',
    'Target.createBrowserContext 2 1 root {"proxy_server_present":false,"proxy_bypass_list_present":false}',
    "Page.bringToFront 1 5 session {}",
    "closed 1 left",
    "closed 2 left",
  ]);
});

test("a command within a message is told as itself", async () => {
  const client = await connectRaw(browser.url());
  const { result } = await client.send("Target.attachToTarget", {
    targetId: await firstPage(client),
    flatten: false,
  });
  const sessionId = String(result?.sessionId);
  const message = JSON.stringify({ id: 77, method: "Input.insertText", params: { text: "xy" } });
  await client.send("Target.sendMessageToTarget", { sessionId, message });
  await leave(client);
  expect(heard.slice(1, -1)).toEqual(['Input.insertText 1 77 session {"text_length":2}']);
});

async function firstPage(client: RawCdp): Promise<string> {
  const { result } = await client.send("Target.getTargets");
  const targets = result?.targetInfos as { targetId: string; type: string }[];
  return targets.find(({ type }) => type === "page")?.targetId ?? "";
}

test("a long command, which a thread judges, keeps its place among short ones and is told like them", async () => {
  const client = await connectRaw(browser.url());
  const session = await client.attach();
  const text = "😀".repeat(100_000);
  await Promise.all([
    client.send("Page.bringToFront", {}, session),
    client.send("Input.insertText", { text }, session),
    client.send("Page.stopLoading", {}, session),
    client.send("Runtime.evaluate", { expression: `"${text}"` }, session),
  ]);
  await leave(client);
  expect(heard.slice(1, -1)).toEqual([
    "Page.bringToFront 1 3 session {}",
    'Input.insertText 1 4 session {"text_length":100000}',
    "Page.stopLoading 1 5 session {}",
  ]);
});

test("what does not reach the browser is not told: invalid JSON, refused commands, sessions that are not there", async () => {
  const client = await connectRaw(browser.url());
  client.socket.send("{");
  client.socket.send(JSON.stringify({ id: 901, method: "Page.close", params: 5 }));
  client.socket.send(JSON.stringify({ id: 902, method: "Page.close", sessionId: "none" }));
  await client.message(({ id }) => id === 902);
  const session = await client.attach();
  await client.send("Page.navigate", { url: "file:///etc/passwd" }, session);
  await client.send("DOM.setFileInputFiles", { files: ["/etc/passwd"] }, session);
  await client.send("Target.openDevTools", { targetId: "x" });
  await leave(client);
  expect(heard).toEqual(["opened 1", "closed 1 left"]);
});

/** Holds the first page, as while a vault writes into it. */
async function openHeldPage() {
  const client = await connectRaw(browser.url());
  const page = await firstPage(client);
  const session = await client.attach(page);
  const { bridge } = browser.bed.local(browser.chromium.id);
  const release = bridge.holds.hold([page]);
  /** Its answer, and that it has come this far. */
  const say = async (method: string): Promise<{ readonly answer: Promise<RawReply> }> => {
    const before = messages;
    const answer = client.send(method, {}, session);
    await until("the message has come", async () => messages > before);
    await new Promise(setImmediate);
    return { answer };
  };
  return { client, page, bridge, release, say };
}

test("a command that waited for a vault's fill is told when it goes to the browser", async () => {
  const { client, release, say } = await openHeldPage();
  const { answer } = await say("Page.bringToFront");
  expect(heard).toEqual(["opened 1"]);
  release();
  expect(heard.slice(1)).toEqual(["Page.bringToFront 1 3 session {}"]);
  await answer;
  await leave(client);
});

test("a command that waited for a vault's fill and is then refused is not told", async () => {
  const { client, page, bridge, release, say } = await openHeldPage();
  bridge.filled.add(page, [page], {});
  const { answer } = await say("Page.captureScreenshot");
  release();
  expect((await answer).error?.message).toMatch(/is refused until the page's next navigation/);
  bridge.filled.remove(page);
  await leave(client);
  expect(heard).toEqual(["opened 1", "closed 1 left"]);
});

test("a command that waited for a vault's fill is not told where its client was cut meanwhile", async () => {
  const { client, release, say } = await openHeldPage();
  const { answer } = await say("Page.reload");
  answer.catch(() => {});
  await browser.bed.local(browser.chromium.id).activity.cutLease(presentLease(), "released");
  release();
  expect(heard).toEqual(["opened 1", "closed 1 cut"]);
  await client.closed;
});

test("a command to a page is not told where the page has closed while it waited", async () => {
  const other = await connectRaw(browser.url());
  const { result } = await other.send("Target.createTarget", { url: "about:blank" });
  const page = String(result?.targetId);
  const client = await connectRaw(browser.url(`/devtools/page/${page}`));
  const release = browser.bed.local(browser.chromium.id).bridge.holds.hold([page]);
  const before = messages;
  client.send("Page.reload").catch(() => {});
  await until("the message has come", async () => messages > before);
  await other.send("Target.closeTarget", { targetId: page });
  await client.closed;
  release();
  await leave(other);
  expect(heard).not.toContain("Page.reload 2 1 root {}");
  expect(heard).toContain("closed 2 browser");
});

test("arguments that do not decode reach the browser, and only their method is told", async () => {
  const client = await connectRaw(browser.url());
  const { error } = await client.send(
    "Page.handleJavaScriptDialog",
    { accept: "yes" },
    await client.attach(),
  );
  expect(error).toBeDefined();
  await leave(client);
  expect(heard[1]).toMatch(/^Page\.handleJavaScriptDialog 1 /);
});

test("Browser.close, which the gateway carries out, is told before the client is gone", async () => {
  const client = await connectRaw(browser.url());
  await client.send("Browser.close");
  await client.closed;
  expect(heard).toEqual(["opened 1", "Browser.close 1 1 root {}", "closed 1 left"]);
});

test("messages are counted in both directions", async () => {
  const client = await connectRaw(browser.url());
  await client.send("Browser.getVersion");
  await client.send("Browser.getVersion");
  expect(messages).toBe(4);
  await leave(client);
});

test("a binary frame ends its client, and is told so", async () => {
  const client = await connectRaw(browser.url());
  client.socket.send(Buffer.from("{}"), { binary: true });
  await client.closed;
  expect(heard).toEqual(["opened 1", "closed 1 cut"]);
});

test("a client whose lease is over is told of before the fence is done", async () => {
  const client = await connectRaw(browser.url());
  await browser.bed.local(browser.chromium.id).activity.cutLease(presentLease(), "released");
  expect(heard).toEqual(["opened 1", "closed 1 cut"]);
  await client.closed;
});

test("a restart of the browser is told as one", async () => {
  const client = await connectRaw(browser.url());
  await browser.bed.local(browser.chromium.id).activity.interrupt("restarting");
  expect(heard).toEqual(["opened 1", "closed 1 restart"]);
  await client.closed;
});

test("a client of one page is told when the page is gone", async () => {
  const client = await connectRaw(browser.url());
  const { result } = await client.send("Target.createTarget", { url: "about:blank" });
  const page = await connectRaw(browser.url(`/devtools/page/${String(result?.targetId)}`));
  await client.send("Target.closeTarget", { targetId: result?.targetId });
  await page.closed;
  await closed(2);
  expect(heard.at(-1)).toBe("closed 2 browser");
  await leave(client);
});

test("a client that was never let in is not told of", async () => {
  const socket = new WebSocket(browser.url("/devtools/page/nowhere"));
  await once(socket, "error");
  expect(heard).toEqual([]);
});

test("who begins to listen while a client is connected hears it from then on", async () => {
  browser.bed.observer = undefined;
  const client = await connectRaw(browser.url());
  const session = await client.attach();
  await client.send("Page.stopLoading", {}, session);
  browser.bed.observer = observer;
  await client.send("Page.bringToFront", {}, session);
  browser.bed.observer = undefined;
  await client.send("Page.stopLoading", {}, session);
  browser.bed.observer = observer;
  await leave(client);
  expect(heard).toEqual(["Page.bringToFront 1 4 session {}", "closed 1 left"]);
});

const askCurl = async (body: object, headers: Record<string, string> = {}) => {
  const url = browser.http().replace("/cdp?", "/curl?");
  const response = await fetch(url, { method: "POST", body: JSON.stringify(body), headers });
  await response.text();
  return response;
};

test("a request through the browser's way out is told with the id and the status of its answer", async () => {
  const { headers } = await askCurl({ url: "http://a.example/" });
  const refused = await askCurl({ address: 5 });
  const ofControl = newRequestId();
  await askCurl({ url: "http://a.example/" }, { "x-request-id": ofControl });
  await until("all were told", async () => heard.length === 3);
  expect(heard).toEqual([
    `curlBrowser true ${headers.get("x-request-id")} 200`,
    `curlBrowser true ${refused.headers.get("x-request-id")} 400`,
    `curlBrowser true ${ofControl} 200`,
  ]);
});
