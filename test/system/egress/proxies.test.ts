import type Kernel from "@onkernel/sdk";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Seal } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import {
  type Origin,
  startHttpProxy,
  startOrigin,
  startSocksProxy,
  type UpstreamProxy,
} from "../../support/egress/upstream-proxies.js";

const credentials = { username: "me", password: "hunter2-of-this-suite" };
let redis: TestRedis;
let origin: Origin;
let http: UpstreamProxy;
let socks: UpstreamProxy;
let daemon: Daemon;
let kernel: Kernel;
beforeAll(async () => {
  [redis, origin, http, socks] = await Promise.all([
    startRedis(),
    startOrigin(),
    startHttpProxy({ credentials }),
    startSocksProxy(credentials),
  ]);
  daemon = await startDaemon({ redisUrl: redis.url });
  kernel = daemon.kernel({ maxRetries: 0 });
});
afterAll(async () => {
  await daemon.stop();
  await Promise.all([redis.stop(), origin.close(), http.close(), socks.close()]);
});

const register = async (name: string, port: number, protocol: string): Promise<string> => {
  const body = {
    type: "custom",
    name,
    protocol,
    bypass_hosts: [],
    config: { host: "127.0.0.1", port, ...credentials },
  };
  return (await daemon.call("POST /proxies", body)).body.id as string;
};
const open = async (cdpUrl: string, host: string): Promise<number | undefined> => {
  const browser = await chromium.connectOverCDP(cdpUrl);
  const page = browser.contexts()[0]?.pages()[0];
  const response = await page?.goto(`http://${host}:${origin.port}/`);
  await browser.close();
  return response?.status();
};

test("a browser goes through the proxy its session names, with credentials that nobody else sees", async () => {
  const id = await register("out", http.port, "http");
  const { body: session } = await daemon.call("POST /browsers", { headless: true, proxy: { name: "out" } });
  expect(session).toMatchObject({ proxy: { id, name: "out" }, proxy_id: id });
  expect(await open(session.cdp_ws_url, "one.example")).toBe(200);
  expect(http.targets).toEqual([`one.example:${origin.port}`]);
  expect(daemon.log).not.toContain(credentials.password);
  await kernel.proxies.delete(id);
  // What it was launched with stays.
  expect(await open(session.cdp_ws_url, "two.example")).toBe(200);
  await kernel.browsers.deleteByID(session.session_id);
});

test("browsers of a pool go through its proxy, and by host through those of its routes", async () => {
  const [own, routed] = [
    await register("own", http.port, "http"),
    await register("routed", socks.port, "socks5"),
  ];
  await daemon.makePool({
    name: "herd",
    proxy_id: own,
    network: { proxy_routes: [{ hosts: ["*.routed.example"], proxy: { name: "routed" } }] },
  });
  const lease = await kernel.browserPools.acquire("herd", { acquire_timeout_seconds: 50 });
  expect(lease).toMatchObject({
    proxy: { id: own, name: "own" },
    network: { proxy_routes: [{ hosts: ["*.routed.example"], proxy: { id: routed } }] },
  });
  expect(await open(lease.cdp_ws_url, "plain.example")).toBe(200);
  expect(await open(lease.cdp_ws_url, "a.routed.example")).toBe(200);
  expect(http.targets.at(-1)).toBe(`plain.example:${origin.port}`);
  const asked = await daemon.call(`POST /browsers/${lease.session_id}/curl`, {
    url: `http://b.routed.example:${origin.port}/`,
  });
  expect(asked).toMatchObject({ status: 200, body: { status: 200, body: '{"ip": "203.0.113.7"}' } });
  expect(socks.targets).toEqual([`a.routed.example:${origin.port}`, `b.routed.example:${origin.port}`]);
  await kernel.browserPools.delete("herd", { force: true });
  await Promise.all([own, routed].map((id) => kernel.proxies.delete(id)));
});

test("a PATCH sends a running browser through another proxy, or none; at its release nobody gets it any more", async () => {
  const [own, other] = [
    await register("first", http.port, "http"),
    await register("second", socks.port, "socks5"),
  ];
  await daemon.makePool({ name: "swap", proxy_id: own });
  const lease = await kernel.browserPools.acquire("swap", { acquire_timeout_seconds: 50 });
  const patch = (body: object) => daemon.call(`PATCH /browsers/${lease.session_id}`, body);
  expect(await patch({ proxy: { name: "second" } })).toMatchObject({
    status: 200,
    body: { proxy: { id: other, name: "second" }, proxy_id: other },
  });
  expect(await open(lease.cdp_ws_url, "swapped.example")).toBe(200);
  expect(socks.targets.at(-1)).toBe(`swapped.example:${origin.port}`);
  const direct = await patch({ proxy_id: "" });
  expect(direct.body).toMatchObject({ proxy: { mode: "direct" } });
  expect(direct.body).not.toHaveProperty("proxy_id");
  expect(
    await daemon.call(`POST /browsers/${lease.session_id}/curl`, { url: `http://127.0.0.1:${origin.port}/` }),
  ).toMatchObject({ status: 200 });
  expect((await patch({ proxy: { name: "nobody" } })).status).toBe(400);
  expect((await patch({ proxy: { mode: "direct" }, proxy_id: own })).status).toBe(400);
  await kernel.browserPools.release("swap", { session_id: lease.session_id });
  const stateOfIt = async () =>
    (await daemon.browsersOf("swap")).find(({ session_id }) => session_id === lease.session_id)?.state;
  // It is listed until its node has ended it, and another may be idle before.
  expect(["retiring", undefined]).toContain(await stateOfIt());
  const next = await kernel.browserPools.acquire("swap", { acquire_timeout_seconds: 50 });
  expect(next.session_id).not.toBe(lease.session_id);
  await expect.poll(stateOfIt).toBeUndefined();
  await kernel.browserPools.release("swap", { session_id: next.session_id });
  await kernel.browserPools.delete("swap");
});

test("a proxy whose secrets do not open launches no browser, and the refusal says why", async () => {
  const id = await register("sealed", http.port, "http");
  const client = redis.client();
  const [key = ""] = await client.keys(`*${id}`);
  await client.hset(key, "sealed", new Seal(new Secret("the key of another deployment")).close("{}", id));
  client.disconnect();
  const got = await daemon.call("POST /browsers", { headless: true, proxy: { id } });
  expect(got).toMatchObject({
    status: 500,
    body: { code: "launch_failed", details: [{ message: expect.stringContaining("REMUDA_ENCRYPTION_KEY") }] },
  });
  await kernel.proxies.delete(id);
});
