import { afterAll, beforeAll, expect, test } from "vitest";
import { newProxyId, type ProxyId } from "../../src/base/ids.js";
import { Seal } from "../../src/base/crypto/seal.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { openUpstream } from "../../src/registry/proxies/operations.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";

let server: TestRedis;
let bed: StoreBed;
beforeAll(async () => {
  server = await startRedis();
  bed = await openStoreBed(server, { project: "upstreams" });
});
afterAll(async () => {
  await bed.close();
  await server.stop();
});

const seal = new Seal(new Secret("the key of this suite"));
const record = {
  protocol: "socks5",
  host: "proxy.example",
  port: 1080,
  username: "me",
  hasPassword: true,
  hasCaBundle: false,
  bypassHosts: ["*.a.example:8080", "10.0.0.1"],
} as const;
const open = (id: ProxyId, by = seal) => openUpstream({ store: bed.proxies, seal: by }, id);

async function keep(sealedFor?: ProxyId): Promise<ProxyId> {
  const id = newProxyId();
  await bed.proxies.create({
    id,
    record,
    sealed: seal.close(JSON.stringify({ password: "hunter2" }), sealedFor ?? id),
    most: 100,
  });
  return id;
}

test("a proxy opens with its secrets and patterns, and its password does not print itself", async () => {
  const id = await keep();
  const upstream = await open(id);
  expect(upstream).toMatchObject({
    id,
    protocol: "socks5",
    host: "proxy.example",
    port: 1080,
    username: "me",
  });
  expect(upstream?.bypass).toEqual([
    { kind: "name", name: "a.example", isWild: true, port: 8080 },
    { kind: "address", address: "10.0.0.1" },
  ]);
  expect(upstream?.password?.reveal()).toBe("hunter2");
  expect(JSON.stringify(upstream)).not.toContain("hunter2");
});

test("one without secrets opens with any key, and one that is gone is none", async () => {
  const id = newProxyId();
  await bed.proxies.create({ id, record: { ...record, hasPassword: false }, most: 100 });
  const upstream = await open(id, new Seal(new Secret("whatever key there is")));
  expect(Object.keys(upstream ?? {})).not.toContain("password");
  await bed.proxies.remove(id);
  expect(await open(id)).toBeUndefined();
});

test("another key, and secrets of another proxy, are clear errors that tell no secret", async () => {
  const [id, swapped] = [await keep(), await keep(newProxyId())];
  const wrongKey = open(id, new Seal(new Secret("some other deployment's key")));
  await expect(wrongKey).rejects.toMatchObject({
    code: "secret_unreadable",
    message: `The secrets of proxy ${id} were sealed with another encryption key (REMUDA_ENCRYPTION_KEY); create the proxy anew`,
  });
  await expect(open(swapped)).rejects.toMatchObject({
    code: "secret_unreadable",
    message: `The secrets of proxy ${swapped} are damaged; create the proxy anew`,
  });
});
