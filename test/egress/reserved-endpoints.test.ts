import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ProxyListener } from "../../src/egress/parts.js";
import { openPort } from "../../src/egress/port.js";
import { makeReservedEndpoints } from "../../src/egress/reserved-endpoints.js";
import { EndpointWatch, redisEndpoints } from "../../src/daemon/reserved-endpoints.js";
import { connect } from "../../src/store/redis/connect.js";
import { ScriptStore } from "../../src/store/redis/redis.js";
import { startRedisCluster } from "../support/store/redis-cluster.js";
import { until } from "../support/browser/chromium-until.js";
import { DrivenClock } from "../support/driven-clock.js";
import { makeLogBook } from "../support/http/http-server.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { freePort } from "../support/free-port.js";

const clock = new DrivenClock();
const { log } = makeLogBook();

test("an address that a failover gives to Redis's name is closed at the next look, and the former one stays so", async () => {
  let addresses = ["10.0.0.1"];
  const own = new EndpointWatch({ clock, log, sources: [], addressesOf: async () => addresses });
  await own.add(redisEndpoints("redis://redis.example:6380")[0]);
  const { isOwn } = makeReservedEndpoints(own.places);
  expect([isOwn("10.0.0.1", 6380), isOwn("10.0.0.2", 6380), isOwn("10.0.0.1", 6379)]).toEqual([
    true,
    false,
    false,
  ]);
  addresses = ["10.0.0.2", "fd00::2"];
  await own.refresh();
  expect([isOwn("10.0.0.1", 6380), isOwn("10.0.0.2", 6380), isOwn("fd00::2", 6380)]).toEqual([
    true,
    true,
    true,
  ]);
});

test("endpoints that a source names are closed by their addresses; a source or a name that fails opens nothing, and nothing grows without end", async () => {
  let told = [{ host: "node.example", port: 4700 }];
  const own = new EndpointWatch({
    clock,
    log,
    sources: [async () => told, () => Promise.reject(new Error("no Redis"))],
    addressesOf: async (host) =>
      host === "gone.example" ? Promise.reject(new Error("ENOTFOUND")) : ["10.1.0.1"],
  });
  await own.add({ host: "gone.example", port: 1 });
  await own.refresh();
  expect(makeReservedEndpoints(own.places).isOwn("10.1.0.1", 4700)).toBe(true);
  told = [];
  await own.refresh();
  expect(makeReservedEndpoints(own.places).isOwn("10.1.0.1", 4700)).toBe(true);
  told = Array.from({ length: 3000 }, (_, i) => ({ host: "node.example", port: 10_000 + i }));
  await own.refresh();
  expect(own.places.length).toBeLessThanOrEqual(1000);
  expect(makeReservedEndpoints(own.places).isOwn("10.1.0.1", 12_999)).toBe(true);
});

test("a proxy's port is closed where the proxy is reached, and is anybody else's on other addresses", async () => {
  const { isOwn } = makeReservedEndpoints([]);
  const open = async (listener: ProxyListener): Promise<URL> => {
    const server = createServer();
    await listener.listen(server);
    onTestFinished(() => {
      listener.close();
      server.close();
    });
    return new URL(listener.proxyUrl);
  };
  const inBlock = await open(openPort());
  const port = Number(inBlock.port);
  expect(["127.0.0.1", "::1", "10.1.0.1"].map((address) => isOwn(address, port))).toEqual([
    false,
    false,
    false,
  ]);
  expect([isOwn(inBlock.hostname, port), isOwn(inBlock.hostname, port + 1)]).toEqual([true, true]);
  const elsewhere = Number((await open(openPort({ host: "127.0.0.1" }))).port);
  expect(["127.0.0.1", "127.0.0.2", "::1"].map((address) => isOwn(address, elsewhere))).toEqual([
    true,
    true,
    true,
  ]);
  expect(isOwn("10.1.0.1", elsewhere)).toBe(false);
});

async function startRedisAt(...args: string[]): Promise<number> {
  const [port, folder] = [await freePort(), await mkdtemp(join(tmpdir(), "remuda-redis-"))];
  const child = spawn(
    "redis-server",
    ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", folder, "--save", "", ...args],
    { stdio: "ignore" },
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
    await rm(folder, { recursive: true });
  });
  return port;
}

test("a master tells of its replicas and a replica of its master, so that a failover finds the other closed already", async () => {
  const master = await startRedisAt();
  const replica = await startRedisAt(
    "--replicaof",
    "127.0.0.1",
    `${master}`,
    "--repl-diskless-sync-delay",
    "0",
  );
  const storeAt = async (port: number): Promise<ScriptStore> => {
    const store = new ScriptStore(
      connect({
        url: `redis://127.0.0.1:${port}`,
        isCluster: false,
        connectTimeoutMs: 2000,
        commandTimeoutMs: 20_000,
      }),
      silentLog,
    );
    onTestFinished(() => store.close());
    await store.open(new AbortController().signal);
    return store;
  };
  const at = await storeAt(master);
  const found = await until("the replica", async () => {
    const members = await at.members();
    return members.some(({ port }) => port === replica) && members;
  });
  expect(found).toEqual(
    expect.arrayContaining([
      { host: "127.0.0.1", port: replica },
      { host: "127.0.0.1", port: master },
    ]),
  );
  expect(await (await storeAt(replica)).members()).toEqual(
    expect.arrayContaining([{ host: "127.0.0.1", port: master }]),
  );
});

test("a cluster tells of each of its nodes, also of those that the URL does not name", async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const store = new ScriptStore(
    connect({ url: cluster.url, isCluster: true, connectTimeoutMs: 2000, commandTimeoutMs: 20_000 }),
    silentLog,
  );
  onTestFinished(() => store.close());
  await store.open(new AbortController().signal);
  const portsOf = (places: readonly { port: number }[]): number[] =>
    places.map(({ port }) => port).toSorted();
  const all = cluster.proxies.map(({ url }) => Number(new URL(url).port)).toSorted();
  expect(all).toHaveLength(3);
  expect(portsOf(await store.members())).toEqual(all);
  const own = new EndpointWatch({ clock, log, sources: [() => store.members()] });
  await own.refresh();
  const { isOwn } = makeReservedEndpoints(own.places);
  expect(all.map((port) => isOwn("127.0.0.1", port))).toEqual([true, true, true]);
});
