import { afterEach, beforeEach, expect, test } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { Lease, PoolBrowser } from "../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import { getJson, refusedUpgrade } from "../support/gateway/gateway-bed.js";
import { send } from "../support/http/http-server.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { keysAbout } from "../support/store/redis-look.js";

let redis: TestRedis;
let running: DaemonProcess[];
beforeEach(async () => {
  redis = await startRedis();
  running = [];
});
afterEach(async () => {
  // Nodes first: a control has nothing to wait for.
  for (const daemon of running.toReversed()) await daemon.stop();
  await redis.stop();
});

async function start(role: "control" | "node", file: Record<string, unknown> = {}): Promise<DaemonProcess> {
  const daemon = await spawnDaemon(
    new DaemonPlace({ role, redisUrl: redis.url, file: { drain: { limit_seconds: 0 }, ...file } }),
  );
  running.push(daemon);
  return daemon;
}
const startNode = (id: string, drainSeconds = 0): Promise<DaemonProcess> =>
  start("node", { node: { id }, drain: { limit_seconds: drainSeconds } });

async function killed(daemon: DaemonProcess): Promise<void> {
  running = running.filter((other) => other !== daemon);
  await daemon.end("SIGKILL");
}

async function acquire(control: DaemonProcess, pool: string, body: object = {}): Promise<Lease> {
  const got = await control.call(`POST /browser_pools/${pool}/acquire`, {
    acquire_timeout_seconds: 50,
    ...body,
  });
  if (got.status !== 200) throw new Error(`not acquired: ${got.status} ${got.text}`);
  return got.body as Lease;
}
const nodeOf = async (control: DaemonProcess, pool: string, { session_id }: Lease): Promise<string> =>
  (await control.browsersOf(pool)).find((browser) => browser.session_id === session_id)?.node ?? "";
const nodesOf = (browsers: readonly PoolBrowser[]): string[] => browsers.map(({ node }) => node).toSorted();

/** Where one node was late both may be on the other: one of them is replaced, where fewest are. */
async function onBoth(control: DaemonProcess, pool: string): Promise<void> {
  for (let tries = 0; new Set(nodesOf(await control.browsersOf(pool))).size < 2; tries += 1) {
    expect(tries, "both are on one node each time that one is replaced").toBeLessThan(3);
    const { session_id } = await acquire(control, pool);
    await control.call(`POST /browser_pools/${pool}/release`, { session_id, reuse: false });
    await control.poolWhen(pool, ({ available_count }) => available_count === 2);
  }
}

test("a control lends a browser of a node, which is driven through either of them", async () => {
  const [control, node] = [await start("control"), await startNode("a")];
  await control.makePool({ name: "herd" });
  const lease = await acquire(control, "herd");
  expect(new URL(lease.cdp_ws_url).host).toBe(new URL(control.url).host);
  const relayed = await connectRaw(lease.cdp_ws_url);
  const direct = await connectRaw(
    lease.cdp_ws_url.replace(new URL(control.url).host, new URL(node.url).host),
  );
  for (const client of [relayed, direct])
    expect(await client.evaluate("6 * 7", await client.attach())).toBe(42);
  const discovery = await getJson(
    lease.cdp_ws_url.replace(/^ws/, "http").replace("/cdp?", "/cdp/json/version?"),
  );
  expect(discovery.status).toBe(200);
  // The node's own egress answers, through the API of the control as well as over the browser's URL at
  // either.
  const denied = { status: 400, body: { code: "egress_denied" } };
  const asked = { url: `${node.url}/healthz` };
  expect(await control.call(`POST /browsers/${lease.session_id}/curl`, asked)).toMatchObject(denied);
  for (const { url } of [control, node]) {
    const own = lease.cdp_ws_url.replace(/^ws:\/\/[^/]+/, url).replace("/cdp?", "/curl?");
    expect(await send(own, { method: "POST", body: asked, headers: { authorization: "" } })).toMatchObject(
      denied,
    );
  }
  expect(
    (await control.call("POST /browser_pools/herd/release", { session_id: lease.session_id })).status,
  ).toBe(204);
  expect([(await relayed.closed).code, (await direct.closed).code]).toEqual([4410, 4410]);
  expect(await refusedUpgrade(lease.cdp_ws_url)).toMatchObject({
    status: 410,
    body: { code: "browser_gone" },
  });
  expect((await acquire(control, "herd")).session_id).toBe(lease.session_id);
});

test("a node that joins later is closed to browsers of the nodes that were there before", async () => {
  const [control] = [await start("control"), await startNode("a")];
  await control.makePool({ name: "herd" });
  const { session_id } = await acquire(control, "herd");
  const other = await startNode("b");
  await until("b's port is reserved at a", async () => {
    const asked = { url: `${other.url}/healthz` };
    const { status, body } = await control.call(`POST /browsers/${session_id}/curl`, asked);
    return status === 400 && (body as { code?: string }).code === "egress_denied";
  });
});

test("a node that dies ends its leases only, and its browsers are replaced on another", async () => {
  const [control, first, second] = [await start("control"), await startNode("a"), await startNode("b")];
  await control.makePool({ name: "herd", size: 2 });
  await onBoth(control, "herd");
  const leases = [await acquire(control, "herd"), await acquire(control, "herd")];
  const nodes = await Promise.all(leases.map((lease) => nodeOf(control, "herd", lease)));
  expect(nodes.toSorted()).toEqual(["a", "b"]);
  const [lost, kept] = nodes[0] === "a" ? leases : leases.toReversed();
  const clients = await Promise.all([lost, kept].map((lease) => connectRaw(lease?.cdp_ws_url ?? "")));
  await killed(first);
  await clients[0]?.closed;
  await until(
    "the lease over",
    async () => (await control.call(`GET /browsers/${lost?.session_id}`)).status === 404,
  );
  expect(await refusedUpgrade(lost?.cdp_ws_url ?? "")).toMatchObject({
    status: 410,
    body: { code: "browser_gone" },
  });
  await control.poolWhen("herd", (pool) => pool.available_count === 1 && pool.acquired_count === 1);
  expect(nodesOf(await control.browsersOf("herd"))).toEqual(["b", "b"]);
  expect((await clients[1]?.send("Browser.getVersion"))?.result).toBeDefined();
  expect(await control.call(`GET /browsers/${kept?.session_id}`)).toMatchObject({
    status: 200,
    body: { lease_id: kept?.lease_id },
  });
  await until(
    "no key of the lost one",
    async () => (await keysAbout(redis.url, [lost?.session_id ?? ""])).length === 0,
  );
  await until("no key of its node", async () => (await keysAbout(redis.url, ["node-a"])).length === 0);
  expect(second.log).not.toContain("browser crashed");
  // What the killed one has left is cleared by its next start.
  const again = await spawnDaemon(first.place);
  running.push(again);
});

test("waiters of a control that died are passed over; those of another are served", async () => {
  const [living, dying] = [await start("control"), await start("control")];
  await startNode("a");
  await living.makePool({ name: "herd" });
  const held = await acquire(dying, "herd");
  const lost = acquire(dying, "herd").catch(() => "lost");
  await living.poolWhen("herd", (pool) => pool.waiting_count === 1);
  const served = acquire(living, "herd");
  await living.poolWhen("herd", (pool) => pool.waiting_count === 2);
  await killed(dying);
  expect(await lost).toBe("lost");
  const client = await connectRaw(held.cdp_ws_url.replace(new URL(dying.url).host, new URL(living.url).host));
  await living.poolWhen("herd", (pool) => pool.waiting_count === 1);
  expect(
    (await living.call("POST /browser_pools/herd/release", { session_id: held.session_id })).status,
  ).toBe(204);
  expect((await served).session_id).toBe(held.session_id);
  expect((await client.closed).code).toBe(4410);
  dying.place.remove();
});

test("a node that is told to stop lets its leases end, warms replacements elsewhere first, and lends nothing meanwhile", async () => {
  const [control, going] = [await start("control"), await startNode("a", 60)];
  await control.makePool({ name: "herd", size: 2 });
  const held = await acquire(control, "herd");
  const client = await connectRaw(held.cdp_ws_url);
  await startNode("b");
  going.signal("SIGTERM");
  await control.poolWhen("herd", (pool) => pool.available_count === 1 && pool.acquired_count === 1);
  await until("the idle one replaced", async () => {
    const browsers = await control.browsersOf("herd");
    return browsers.every(({ node, state }) => node === "b" || state === "leased");
  });
  const next = await acquire(control, "herd");
  expect(await nodeOf(control, "herd", next)).toBe("b");
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  expect((await fetch(`${going.url}/readyz`)).status).toBe(503);
  await control.call("POST /browser_pools/herd/release", { session_id: held.session_id });
  expect(await going.ended()).toEqual({ code: 0, signal: null });
  running = running.filter((daemon) => daemon !== going);
  await control.poolWhen("herd", (pool) => pool.available_count === 1 && pool.acquired_count === 1);
  expect(nodesOf(await control.browsersOf("herd"))).toEqual(["b", "b"]);
  going.place.remove();
});

test("a drain ends the leases that outlast its limit", async () => {
  const [control, going] = [await start("control"), await startNode("a", 2)];
  await control.makePool({ name: "herd" });
  const held = await acquire(control, "herd");
  const client = await connectRaw(held.cdp_ws_url);
  const asked = performance.now();
  going.signal("SIGTERM");
  await client.closed;
  expect(performance.now() - asked).toBeGreaterThan(1900);
  expect(await going.ended()).toEqual({ code: 0, signal: null });
  running = running.filter((daemon) => daemon !== going);
  expect((await control.call(`GET /browsers/${held.session_id}`)).status).toBe(404);
  expect((await control.call(`GET /browsers/${held.session_id}?include_deleted=true`)).body).toMatchObject({
    reason: "drained",
  });
  going.place.remove();
});
