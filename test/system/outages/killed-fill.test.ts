import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chromium, type Page } from "playwright-core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { openRedisProxy } from "../../support/store/redis-proxy.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

const path = "/vaults/logins/items/shop";
const fields = ["user", "password"].map((name) => ({ field: name, selector: `#${name}` }));

/** Each write asks the site, and stands still in the page's process until that has answered. */
const body = `<!doctype html><input id="user"><input id="password"><script>
  for (const input of document.querySelectorAll("input"))
    input.addEventListener("input", () => {
      const request = new XMLHttpRequest();
      request.open("GET", "/wrote/" + input.id, false);
      request.send();
    });
</script>`;

let redis: TestRedis;
let site: Server;
let origin = "";
/** Fields that were written, and the answers that their pages wait for. */
let wrote: string[] = [];
let held: ServerResponse[] = [];
let isHeld = true;
let running: DaemonProcess[] = [];

const release = (): void => {
  isHeld = false;
  for (const response of held.splice(0)) response.end();
};

async function start(role: "control" | "node", redisUrl = redis.url): Promise<DaemonProcess> {
  const daemon = await spawnDaemon(new DaemonPlace({ role, redisUrl }));
  running.push(daemon);
  return daemon;
}

async function kill(daemon: DaemonProcess): Promise<void> {
  running = running.filter((each) => each !== daemon);
  await daemon.end("SIGKILL");
}

beforeEach(async () => {
  [wrote, held, isHeld, running] = [[], [], true, []];
  redis = await startRedis();
  site = createServer(({ url = "" }, response) => {
    const [, field] = /^\/wrote\/(\w+)$/.exec(url) ?? [];
    if (field === undefined) return response.setHeader("content-type", "text/html").end(body);
    wrote.push(field);
    return isHeld ? held.push(response) : response.end();
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
});
afterEach(async () => {
  release();
  for (const daemon of running.toReversed()) await daemon.stop();
  site.closeAllConnections();
  await new Promise((resolve) => site.close(resolve));
  await redis.stop();
});

/** A session at a control, open on the site, and its item. */
async function opened(control: DaemonProcess): Promise<{ id: string; page: Page; close(): Promise<void> }> {
  await control.call("POST /vaults", { name: "logins" });
  const spec = {
    provider: "native",
    fields: fields.map(({ field }) => ({ name: field, type: "text", value: `secret of ${field}` })),
  };
  await control.call(`PUT ${path}`, { type: "credential", spec });
  const session = await control.call("POST /browsers", { headless: true, vaults: [{ name: "logins" }] });
  expect(session, session.text).toMatchObject({ status: 200 });
  const browser = await chromium.connectOverCDP(String(session.body.cdp_ws_url));
  const page = browser.contexts()[0]?.pages()[0];
  if (!page) throw new Error("no page");
  await page.goto(`${origin}/`);
  const id = String(session.body.session_id);
  const close = async (): Promise<void> => {
    await browser.close();
    await control.call(`DELETE /browsers/${id}`);
  };
  return { id, page, close };
}

const fill = (control: DaemonProcess, id: string, timeoutMs = 20_000) =>
  control.call(`POST ${path}/operations`, { type: "fill", browser_id: id, fields, timeout_ms: timeoutMs });

test("a node killed amid a fill: every field is unknown, nothing is written again, the item is as it was", async () => {
  const control = await start("control");
  const node = await start("node");
  const { id, close } = await opened(control);
  const before = (await control.call(`GET ${path}`)).body;
  // As long as a busy machine may take for the first write; its caller waits no longer for the dead node.
  const filling = fill(control, id, 12_000);
  await until("the first write", () => wrote.length === 1);
  await kill(node);
  release();
  const filled = await filling;
  const unknown = fields.map((_, index) => ({ index, status: "unknown" }));
  expect(filled, filled.text).toMatchObject({ status: 200, body: { status: "unknown", fields: unknown } });
  expect(wrote).toEqual(["user"]);
  expect((await control.call(`GET ${path}`)).body).toEqual(before);
  expect((await fill(control, id, 4000)).status).toBeGreaterThanOrEqual(400);
  expect(wrote).toEqual(["user"]);
  await close();
});

test("a control killed amid a fill that it has asked for: each field is written once, and another control goes on", async () => {
  const control = await start("control");
  await start("node");
  const { id, page, close } = await opened(control);
  const other = await start("control");
  const before = (await control.call(`GET ${path}`)).body;
  const filling = fill(other, id).catch(() => undefined);
  await until("the first write", () => wrote.length === 1);
  await kill(other);
  await filling;
  release();
  await until("the second write", () => wrote.length >= 2);
  await expect.poll(() => page.inputValue("#password")).toBe("secret of password");
  expect(await page.inputValue("#user")).toBe("secret of user");
  expect((await control.call(`GET ${path}`)).body).toEqual(before);
  expect(await fill(control, id)).toMatchObject({ status: 200, body: { status: "completed" } });
  expect(wrote).toEqual(["user", "password", "user", "password"]);
  await close();
});

test("Redis frozen amid a fill: each field is written once, and its caller is told that it was done", async () => {
  const control = await start("control");
  await start("node");
  const { id, page, close } = await opened(control);
  const filling = fill(control, id);
  await until("the first write", () => wrote.length === 1);
  redis.signal("SIGSTOP");
  release();
  const filled = await filling;
  await expect.poll(() => page.inputValue("#password")).toBe("secret of password");
  redis.signal("SIGCONT");
  // The values are in the page, and only the entry of it is not in the audit log in time.
  expect(filled, filled.text).toMatchObject({
    status: 503,
    body: { code: "audit_unconfirmed", message: expect.stringContaining("This was done") },
  });
  expect(filled.headers.get("x-should-retry")).toBe("false");
  expect(filled.text).not.toContain("secret of");
  expect(wrote).toEqual(["user", "password"]);
  const { body: events } = await until("Redis back", async () => {
    const got = await control.call(`GET ${path}/events`);
    return got.status === 200 ? got : undefined;
  });
  // The first without the second is an unknown outcome (docs/vault.md#fill).
  const names = (events as { name: string }[]).map(({ name }) => name);
  expect(names.slice(0, 2)).toEqual(["credential.created", "credential.fill_started"]);
  await close();
});

test("Redis frozen before a fill has begun: nothing is written, also once Redis goes on", async () => {
  const proxy = await openRedisProxy(redis.url);
  const control = await start("control");
  const frozen = await start("control", proxy.url);
  await start("node");
  const { id, page, close } = await opened(control);
  const reached = proxy.freezeAt("credential.fill_started");
  const filling = fill(frozen, id);
  await reached;
  redis.signal("SIGSTOP");
  const thawed = proxy.thaw();
  const refused = await filling;
  redis.signal("SIGCONT");
  expect(refused.status, refused.text).toBe(503);
  expect(refused.text).not.toContain("This was done");
  await thawed;
  release();
  // Not all connections of the control are back at once.
  const filled = await until("Redis back", async () => {
    const got = await fill(control, id);
    if (got.status !== 503) return got;
    expect(got.body.code).toBe("store_unavailable");
    return undefined;
  });
  expect(filled).toMatchObject({ status: 200, body: { status: "completed" } });
  expect(wrote).toEqual(["user", "password"]);
  expect(await page.inputValue("#user")).toBe("secret of user");
  await close();
  await proxy.close();
});

for (const what of ["item", "vault"] as const)
  test(`an ${what === "item" ? what : `item's ${what}`} that is deleted amid a fill: the fill ends as it was begun, and no other is`, async () => {
    const control = await start("control");
    await start("node");
    const { id, page, close } = await opened(control);
    const filling = fill(control, id);
    await until("the first write", () => wrote.length === 1);
    const removed = await control.call(`DELETE ${what === "item" ? path : "/vaults/logins"}`);
    expect(removed.status).toBe(204);
    release();
    const filled = fields.map((_, index) => ({ index, status: "filled" }));
    expect(await filling).toMatchObject({ status: 200, body: { status: "completed", fields: filled } });
    expect(await page.inputValue("#password")).toBe("secret of password");
    expect(await fill(control, id)).toMatchObject({ status: 404 });
    expect(wrote).toEqual(["user", "password"]);
    // What is noted of the end brings nothing back.
    const client = redis.client();
    const left = await client.keys("*:vault[IVEL]*");
    client.disconnect();
    expect(left).toEqual([]);
    await close();
  });
