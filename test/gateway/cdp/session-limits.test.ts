import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type GatewayBrowser, openGatewayBrowser } from "../../support/gateway/gateway-browser.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";

let browser: GatewayBrowser;
let client: RawCdp;
let page: string;

beforeEach(async () => {
  browser = await openGatewayBrowser({}, { limits: { sessions: { client: 5, browser: 8 } } });
  client = await connectRaw(browser.url());
  page = await firstPage(client);
});
afterEach(async () => {
  client.socket.terminate();
  await browser.close();
});

async function firstPage(of: RawCdp): Promise<string> {
  const infos = (await of.send("Target.getTargets")).result?.["targetInfos"] as {
    targetId: string;
    type: string;
  }[];
  return infos.find(({ type }) => type === "page")?.targetId ?? "";
}

const attach = (of: RawCdp): ReturnType<RawCdp["send"]> =>
  of.send("Target.attachToTarget", { targetId: page, flatten: true });
const attachAll = (of: RawCdp, count: number): ReturnType<typeof attach>[] =>
  Array.from({ length: count }, () => attach(of));

test("a client may have so many sessions, however fast it asks; a further attach is refused until one has gone", async () => {
  const replies = await Promise.all(attachAll(client, 9));
  expect(replies.filter(({ result }) => result !== undefined)).toHaveLength(5);
  expect(replies.at(-1)?.error).toEqual({
    code: -32000,
    message: "A client may have 5 CDP sessions at once",
  });
  expect((await client.send("Target.attachToBrowserTarget")).error?.message).toContain("5 CDP sessions");
  await client.send("Target.detachFromTarget", { sessionId: replies[0]?.result?.["sessionId"] });
  expect((await attach(client)).result).toBeDefined();
});

test("nested sessions count like others, and go with the one they were attached through", async () => {
  const nested = String((await client.send("Target.attachToBrowserTarget")).result?.["sessionId"]);
  const within = await Promise.all(
    Array.from({ length: 5 }, () =>
      client.send("Target.attachToTarget", { targetId: page, flatten: true }, nested),
    ),
  );
  expect(within.filter(({ error }) => error !== undefined)).toHaveLength(1);
  await client.send("Target.detachFromTarget", { sessionId: nested });
  expect((await Promise.all(attachAll(client, 5))).every(({ result }) => result !== undefined)).toBe(true);
});

test("the clients of a browser may have so many together; what one had is free when it has left", async () => {
  const other = await connectRaw(browser.url());
  await Promise.all(attachAll(client, 5));
  const replies = await Promise.all(attachAll(other, 4));
  expect(replies.map(({ error }) => error?.message)).toEqual([
    undefined,
    undefined,
    undefined,
    "The clients of a browser may have 8 CDP sessions at once",
  ]);
  client.socket.terminate();
  await until("there is room", async () => (await attach(other)).result !== undefined);
  await other.close();
});

test("a client for whom more targets are attached unasked than it may have is closed with a reason, and takes nothing along", async () => {
  const other = await connectRaw(browser.url());
  for (let pages = 0; pages < 6; pages += 1) await other.send("Target.createTarget", { url: "about:blank" });
  client.socket.send(
    JSON.stringify({
      id: 900,
      method: "Target.setAutoAttach",
      params: { autoAttach: true, waitForDebuggerOnStart: true, flatten: true },
    }),
  );
  expect(await client.closed).toEqual({ code: 1008, reason: "too_many_sessions" });
  expect(await other.evaluate("6 * 7", await other.attach(page))).toBe(42);
  const opened = await other.send("Target.createTarget", { url: "data:text/html,<title>runs</title>" });
  const session = await other.attach(String(opened.result?.["targetId"]));
  await until(
    "new pages are not held back",
    async () => (await other.evaluate("document.title", session)) === "runs",
  );
  await other.close();
});
