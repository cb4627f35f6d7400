import type { Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { WebSocket } from "ws";
import { until } from "../support/browser/chromium-until.js";
import { endsAt } from "../support/gateway/client-ends.js";
import { type GatewayBrowser, openGatewayBrowser } from "../support/gateway/gateway-browser.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { ownRenderers } from "../support/browser/renderers.js";
import { signalLiving } from "../support/living.js";

let browser: GatewayBrowser;

beforeEach(async () => {
  browser = await openGatewayBrowser();
});

afterEach(async () => browser.close());

function killRenderers(): void {
  const renderers = ownRenderers();
  expect(renderers.length).toBeGreaterThan(0);
  for (const pid of renderers) signalLiving(pid, "SIGKILL");
}

test("a renderer killed while a command is pending: every client's pending command gets an error, under its own id and session", async () => {
  const [first, second] = await Promise.all([connectRaw(browser.url()), connectRaw(browser.url())]);
  const [one, two] = [await first.attach(), await second.attach()];
  const endless = { expression: "new Promise(() => {})", awaitPromise: true };
  const pending = [
    first.send("Runtime.evaluate", endless, one),
    second.send("Runtime.evaluate", endless, two),
  ];
  await first.evaluate("1", one);
  killRenderers();
  const replies = await Promise.all(pending);
  expect(replies.map(({ error }) => error)).toEqual(
    [1, 2].map(() => ({ code: -32001, message: "Target crashed" })),
  );
  expect(replies.map(({ sessionId }) => sessionId)).toEqual([one, two]);
  await Promise.all([first.close(), second.close()]);
});

test("a target closed while a command is pending on it: the command gets an error after the event that tells of it", async () => {
  const client = await connectRaw(browser.url());
  const targetId = String(
    (await client.send("Target.createTarget", { url: "about:blank" })).result?.targetId,
  );
  const session = await client.attach(targetId);
  const order: string[] = [];
  const pending = client.send(
    "Runtime.evaluate",
    { expression: "new Promise(() => {})", awaitPromise: true },
    session,
  );
  client.socket.on("message", (data: Buffer) =>
    order.push(...(/detachedFromTarget|"error"/.exec(data.toString()) ?? [])),
  );
  await client.send("Target.closeTarget", { targetId });
  const reply = await pending;
  expect(reply).toMatchObject({
    sessionId: session,
    error: { code: -32001, message: "Session was detached" },
  });
  expect(order).toEqual(["detachedFromTarget", '"error"']);
  await client.close();
});

test("a detached session's pending commands get an error, those of its nested sessions too", async () => {
  const client = await connectRaw(browser.url());
  const nested = String((await client.send("Target.attachToBrowserTarget")).result?.sessionId);
  const infos = (await client.send("Target.getTargets")).result?.targetInfos as { targetId: string }[];
  const attached = await client.send(
    "Target.attachToTarget",
    { targetId: infos[0]?.targetId, flatten: true },
    nested,
  );
  const page = String(attached.result?.sessionId);
  const pending = client.send(
    "Runtime.evaluate",
    { expression: "new Promise(() => {})", awaitPromise: true },
    page,
  );
  await client.evaluate("1", page);
  await client.send("Target.detachFromTarget", { sessionId: nested });
  expect((await pending).error).toEqual({ code: -32001, message: "Session was detached" });
  expect((await client.send("Runtime.evaluate", { expression: "1" }, page)).error?.code).toBe(-32001);
  await client.close();
});

test("Chromium killed: pending commands get an error and the sockets are closed with the reason", async () => {
  const client = await connectRaw(browser.url());
  const session = await client.attach();
  const pending = client.send(
    "Runtime.evaluate",
    { expression: "new Promise(() => {})", awaitPromise: true },
    session,
  );
  await client.evaluate("1", session);
  await browser.chromium.kill();
  expect((await pending).error).toEqual({ code: -32001, message: "The browser is gone" });
  expect(await client.closed).toEqual({ code: 1011, reason: "browser_gone" });
  await expect(connectRaw(browser.url())).rejects.toThrow("503");
});

test("Browser.close is answered, disconnects that client, and leaves the browser to the others", async () => {
  const [leaving, staying] = await Promise.all([connectRaw(browser.url()), connectRaw(browser.url())]);
  expect(await leaving.send("Browser.close")).toEqual({ id: 1, result: {} });
  expect((await leaving.closed).code).toBe(1000);
  expect((await staying.send("Browser.getVersion")).result?.product).toContain("Chrome");
  await staying.close();
});

test.each(["Browser.crash", "Browser.crashGpuProcess", "Target.exposeDevToolsProtocol"])(
  "%s is refused, on any session",
  async (method) => {
    const client = await connectRaw(browser.url());
    const session = await client.attach();
    expect((await client.send(method)).error?.message).toContain("is refused");
    expect(await client.send(method, {}, session)).toMatchObject({
      sessionId: session,
      error: { code: -32000 },
    });
    expect(await client.evaluate("1", session)).toBe(1);
    expect(browser.bed.counts.refused).toEqual([method, method]);
    await client.close();
  },
);

test("no way of writing a file's address opens it", async () => {
  const client = await connectRaw(browser.url());
  const session = await client.attach();
  await client.send("Page.enable", {}, session);
  for (const url of [
    "file:///etc/hostname",
    "view-source:file:///etc/hostname",
    "FILE:/etc/hostname",
    "/etc/hostname",
    "//etc/hostname",
    "fi\tle:///etc/hostname",
  ]) {
    const reply = await client.send("Page.navigate", { url }, session);
    expect([url, reply.error?.message ?? reply.result?.errorText]).toEqual([url, expect.any(String)]);
  }
  await client.send("Log.enable", {}, session);
  await client.send("Runtime.evaluate", { expression: "location = 'file:///etc/hostname'" }, session);
  const refusal = "Not allowed to load local resource";
  await client.message(
    ({ method, params }) => method === "Log.entryAdded" && JSON.stringify(params).includes(refusal),
  );
  expect(await client.evaluate("location.href", session)).toBe("about:blank");
  await client.close();
});

test("a binary frame closes the client with 1003", async () => {
  const client = await connectRaw(browser.url());
  client.socket.send(Buffer.from('{"id":1,"method":"Browser.getVersion"}'));
  expect(await client.closed).toEqual({ code: 1003, reason: "messages are text" });
});

test("a message nested too deeply gets an error and harms nobody", async () => {
  const client = await connectRaw(browser.url());
  client.socket.send(
    `{"id":900,"method":"Browser.getVersion","params":{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}}`,
  );
  expect((await client.message(({ id }) => id === 900)).error?.message).toBe(
    "Message must not be nested deeper than 300",
  );
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  await client.close();
});

test("garbage gets the error Chromium gives, and the client stays", async () => {
  const client = await connectRaw(browser.url());
  client.socket.send("{");
  expect((await client.message(({ error }) => error !== undefined)).error?.code).toBe(-32700);
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  await client.close();
});

test("a client connected to one page drives it without a session, and is closed when the page goes", async () => {
  const observer = await connectRaw(browser.url());
  const targetId = String(
    (await observer.send("Target.createTarget", { url: "about:blank" })).result?.targetId,
  );
  const client = await connectRaw(browser.url(`/devtools/page/${targetId}`));
  expect((await client.send("Runtime.evaluate", { expression: "40+2" })).result).toMatchObject({
    result: { value: 42 },
  });
  await client.send("Runtime.enable");
  expect(
    await client.message(({ method }) => method === "Runtime.executionContextCreated"),
  ).not.toHaveProperty("sessionId");
  const pending = client.send("Runtime.evaluate", {
    expression: "new Promise(() => {})",
    awaitPromise: true,
  });
  await observer.send("Target.closeTarget", { targetId });
  expect((await pending).error).toBeDefined();
  expect(await client.closed).toEqual({ code: 1001, reason: "target_closed" });
  await observer.close();
});

test("a client that has left is no activity any more", async () => {
  const client = await connectRaw(browser.url());
  await client.attach();
  const { activity } = browser.bed.local(browser.chromium.id);
  expect(activity.inactiveSinceMs).toBeUndefined();
  await client.close();
  await until("nobody uses it", () => activity.inactiveSinceMs !== undefined);
});

test.each([
  ["that is too long", 1009, (socket: WebSocket) => socket.send("x".repeat(16 * 1024 * 1024 + 1))],
  ["that is no text", 1007, (socket: WebSocket) => socket.send(Buffer.from([0xff]), { binary: false })],
] as const)("a message %s ends its client, which is told to have been cut", async (_, code, send) => {
  const ends = endsAt(browser);
  const client = await connectRaw(browser.url());
  send(client.socket);
  expect((await client.closed).code).toBe(code);
  expect(ends).toEqual(["cut"]);
});

test("a client whose connection is reset is told to have left", async () => {
  const ends = endsAt(browser);
  const client = await connectRaw(browser.url());
  const { _socket: socket } = client.socket as unknown as { readonly _socket: Socket };
  socket.resetAndDestroy();
  await until("its end is told", () => ends.length > 0);
  expect(ends).toEqual(["left"]);
});
