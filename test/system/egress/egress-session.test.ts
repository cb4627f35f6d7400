import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { closeServer, listenLocally } from "../../support/egress/local-server.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";

let daemon: Daemon;
let site: Site;
let other: Site;
beforeAll(async () => {
  [daemon, site, other] = await Promise.all([startDaemon(), openSite(), openSite()]);
});
afterAll(async () => {
  await daemon.stop();
  await Promise.all([site.close(), other.close()]);
});

const hostOf = (origin: string): string => new URL(origin).host;
const acquire = async (pool: string, body: object = {}): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 50, ...body }))
    .body as Lease;
const patch = (lease: Lease, body: object) => daemon.call(`PATCH /browsers/${lease.session_id}`, body);
const curl = (lease: Lease, url: string, more: object = {}) =>
  daemon.call(`POST /browsers/${lease.session_id}/curl`, { url, ...more });

/** `200`, or the reason of a denial, as a page sees it. */
async function visit(client: RawCdp, page: string, url: string): Promise<unknown> {
  const { result } = await client.send("Page.navigate", { url }, page);
  if (result?.["errorText"]) return result["errorText"];
  return await until(
    `${url} loaded`,
    async () => await client.evaluate("document.readyState === 'complete' && document.body.innerText", page),
  );
}

test("a session says what holds it, from when that is proved, and what it has used", async () => {
  await daemon.makePool({ name: "says", network: { allowed_hosts: ["*.example.com", "127.0.0.1"] } });
  const lease = await acquire("says");
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  expect(await visit(client, page, site.origin)).toBe("hello");
  expect(await visit(client, page, other.otherOrigin)).toContain("allowed_hosts");
  const { body } = await daemon.call(`GET /browsers/${lease.session_id}`);
  expect(body.network).toMatchObject({
    allowed_hosts: ["*.example.com", "127.0.0.1"],
    generation: 1,
    attested: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  expect(["namespace", "proxy"]).toContain(body.network.isolation);
  expect(body.isolation.network).toBe(body.network.isolation);
  const used = await until("what was used", async () => {
    const { usage } = (await daemon.call(`GET /browsers/${lease.session_id}`)).body;
    return usage.denied > 0 && usage;
  });
  expect(used.requests).toBeGreaterThanOrEqual(2);
  expect(used.bytes_received).toBeGreaterThan(50);
  expect(used.bytes_sent).toBeGreaterThan(50);
  await client.close();
  await daemon.call(`DELETE /browsers/${lease.session_id}`);
  const dead = await until("its last count", async () => {
    const { body: found } = await daemon.call(`GET /browsers/${lease.session_id}?include_deleted=true`);
    return found.deleted_at && found.usage.requests >= used.requests && found;
  });
  expect(dead.usage.bytes_received).toBeGreaterThanOrEqual(used.bytes_received);
  for (const series of [
    'requests_total{pool="says",outcome="denied"}',
    'requests_total{pool="says",outcome="direct"}',
    'denied_total{pool="says",reason="allowed_hosts"}',
    'bytes_total{pool="says",direction="received"}',
    `browsers{tier="${body.network.isolation}"}`,
  ])
    await until(series, async () =>
      (await daemon.call("GET /metrics")).text.includes(`remuda_egress_${series} `),
    );
});

test("what a holder used is not the next one's", async () => {
  await daemon.makePool({ name: "counts" });
  const first = await acquire("counts");
  const client = await connectRaw(first.cdp_ws_url);
  await visit(client, await client.attach(), site.origin);
  await until(
    "its count",
    async () => (await daemon.call(`GET /browsers/${first.session_id}`)).body.usage.requests > 0,
  );
  await daemon.call("POST /browser_pools/counts/release", { session_id: first.session_id });
  const next = await acquire("counts");
  expect(next.session_id).toBe(first.session_id);
  expect((await curl(next, site.origin)).status).toBe(200);
  const used = await until("its own count", async () => {
    const { usage } = (await daemon.call(`GET /browsers/${next.session_id}`)).body;
    return usage.requests > 0 && usage;
  });
  expect(used.requests).toBe(1);
  await daemon.call("POST /browser_pools/counts/release", { session_id: next.session_id });
});

test("a PATCH of allowed_hosts is in force at its reply, cuts what it no longer allows, and ends with the lease", async () => {
  await daemon.makePool({ name: "changes" });
  const lease = await acquire("changes");
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  const sockets = await openWebSocketSite();
  await visit(client, page, site.origin);
  // A tunnel that stays open.
  expect(
    await client.evaluate(
      `new Promise((resolve) => { window.socket = new WebSocket("${sockets.url}"); socket.onopen = () => resolve("open"); window.cut = new Promise((done) => socket.onclose = () => done("cut")) })`,
      page,
    ),
  ).toBe("open");
  const { status, body } = await patch(lease, {
    network: { allowed_hosts: [hostOf(site.origin), "  *.Example.com "] },
    name: "narrow",
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    name: "narrow",
    network: { allowed_hosts: [hostOf(site.origin), "*.example.com"] },
  });
  expect(await client.evaluate("window.cut", page)).toBe("cut");
  expect((await curl(lease, other.origin)).body).toMatchObject({
    code: "egress_denied",
    message: expect.stringContaining("allowed_hosts"),
  });
  expect((await curl(lease, site.origin)).status).toBe(200);
  expect(other.requests).toEqual([]);
  expect(await patch(lease, { start_url: other.origin })).toMatchObject({
    status: 400,
    body: { details: [{ message: expect.stringContaining("start_url") }] },
  });
  expect((await patch(lease, { network: { allowed_hosts: [] } })).status).toBe(400);
  const wide = await patch(lease, { network: { allowed_hosts: null } });
  expect(wide.body.network).not.toHaveProperty("allowed_hosts");
  expect((await curl(lease, other.origin)).status).toBe(200);
  await patch(lease, { network: { allowed_hosts: ["nothing.example"] } });
  await daemon.call("POST /browser_pools/changes/release", { session_id: lease.session_id });
  const next = await acquire("changes");
  expect(next.session_id).toBe(lease.session_id);
  expect((await curl(next, site.origin)).status).toBe(200);
  expect((await daemon.call(`GET /browsers/${next.session_id}`)).body.network).not.toHaveProperty(
    "allowed_hosts",
  );
  await daemon.call("POST /browser_pools/changes/release", { session_id: next.session_id });
  await sockets.close();
});

test("a pool's new allowlist replaces idle browsers at once and leased ones at their release", async () => {
  await daemon.makePool({ name: "pools", size: 2 });
  const lease = await acquire("pools");
  expect(
    (await daemon.call("PATCH /browser_pools/pools", { network: { allowed_hosts: [hostOf(site.origin)] } }))
      .status,
  ).toBe(200);
  expect((await curl(lease, other.origin)).status).toBe(200);
  const fresh = await acquire("pools");
  expect((await curl(fresh, other.origin)).body).toMatchObject({ code: "egress_denied" });
  expect((await daemon.call(`GET /browsers/${fresh.session_id}`)).body.network).toMatchObject({
    allowed_hosts: [hostOf(site.origin)],
    generation: 2,
  });
  for (const { session_id } of [lease, fresh])
    await daemon.call("POST /browser_pools/pools/release", { session_id });
  await daemon.poolWhen("pools", (pool) => pool.available_count === 2 && pool.stale_count === 0);
  const idle = (await daemon.browsersOf("pools")).filter(({ state }) => state === "idle");
  expect(idle.map(({ session_id }) => session_id)).not.toContain(lease.session_id);
  expect(await daemon.call("POST /browser_pools/pools/acquire", { start_url: other.origin })).toMatchObject({
    status: 400,
  });
});

test("private hosts a pool names replace the operator's; [] closes them all", async () => {
  await daemon.makePool({ name: "closed", network: { private_hosts: [] } });
  const shut = await acquire("closed");
  expect((await curl(shut, site.origin)).body).toMatchObject({
    code: "egress_denied",
    message: expect.stringContaining("private"),
  });
  await daemon.makePool({ name: "one", network: { private_hosts: [hostOf(site.origin)] } });
  const one = await acquire("one");
  expect((await curl(one, site.origin)).status).toBe(200);
  expect((await curl(one, other.origin)).body).toMatchObject({ code: "egress_denied" });
  for (const [pool, { session_id }] of [
    ["closed", shut],
    ["one", one],
  ] as const)
    await daemon.call(`POST /browser_pools/${pool}/release`, { session_id });
});

test("the ports of Remuda itself are closed whatever is opened", async () => {
  await daemon.makePool({ name: "own" });
  const lease = await acquire("own");
  for (const url of [
    daemon.url,
    daemon.url.replace("127.0.0.1", "localhost"),
    daemon.url.replace("127.0.0.1", "127.0.0.2"),
  ]) {
    expect((await curl(lease, `${url}/healthz`)).body, url).toMatchObject({
      code: "egress_denied",
      message: expect.stringContaining("remuda"),
    });
  }
  await daemon.call("POST /browser_pools/own/release", { session_id: lease.session_id });
});

test("the port a daemon listens on is closed to its browsers, though others reach it by another address", async () => {
  const behind = await startDaemon({ file: { node: { address: "http://192.0.2.1:9" } } });
  try {
    await behind.makePool({ name: "behind" });
    const lease = (await behind.call("POST /browser_pools/behind/acquire", { acquire_timeout_seconds: 50 }))
      .body as Lease;
    const { port, searchParams } = new URL(lease.cdp_ws_url);
    const answer = await fetch(
      `http://127.0.0.1:${port}/browsers/${lease.session_id}/curl?token=${searchParams.get("token")}`,
      { method: "POST", body: JSON.stringify({ url: `http://127.0.0.1:${port}/health` }) },
    );
    expect(await answer.json()).toMatchObject({
      code: "egress_denied",
      message: expect.stringContaining("remuda"),
    });
  } finally {
    await behind.stop();
  }
});

/** Takes any WebSocket and says nothing. */
async function openWebSocketSite(): Promise<{ url: string; close(): Promise<void> }> {
  const { WebSocketServer } = await import("ws");
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  const url = `ws://${await listenLocally(server)}`;
  return {
    url,
    async close() {
      for (const socket of sockets.clients) socket.terminate();
      await closeServer(server);
    },
  };
}
