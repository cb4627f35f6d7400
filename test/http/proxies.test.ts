import Kernel, {
  BadRequestError,
  NotFoundError,
  PermissionDeniedError,
  UnprocessableEntityError,
} from "@onkernel/sdk";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Seal } from "../../src/base/crypto/seal.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { type Daemon, startDaemon } from "../support/daemon/daemon.js";
import { type Dns, startDns } from "../support/egress/dns-server.js";
import { pictureOf } from "../support/browser/picture.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import {
  findClosedPort,
  makeCertificate,
  type Origin,
  startHttpProxy,
  startOrigin,
  startSilent,
  type UpstreamProxy,
} from "../support/egress/upstream-proxies.js";

const credentials = { username: "me", password: "hunter2-of-this-suite" };
const certificate = makeCertificate();
let redis: TestRedis;
let client: Redis;
let dns: Dns;
let origin: Origin;
let upstream: UpstreamProxy;
let daemon: Daemon;
let kernel: Kernel;
beforeAll(async () => {
  [redis, dns, origin, upstream] = await Promise.all([
    startRedis(),
    startDns({ "origin.example": ["93.184.216.34"], "inside.example": ["10.0.0.7"] }),
    startOrigin(),
    startHttpProxy({ credentials }),
  ]);
  client = redis.client();
  const egress = {
    check_url: `http://127.0.0.1:${origin.port}/mine`,
    check_limit_seconds: 2,
    resolvers: [dns.server],
  };
  daemon = await startDaemon({
    role: "control",
    redisUrl: redis.url,
    file: { egress, limits: { max_proxies: 40 } },
  });
  kernel = daemon.kernel();
});
afterAll(async () => {
  await daemon.stop();
  client.disconnect();
  await Promise.all([redis.stop(), dns.close(), origin.close(), upstream.close()]);
});

const place = (over: object = {}) => ({ host: "127.0.0.1", port: upstream.port, ...over });
const create = async (over: Partial<Kernel.ProxyCreateParams> = {}, config: object = {}): Promise<string> =>
  (await kernel.proxies.create({ type: "custom", protocol: "http", config: place(config), ...over })).id ??
  "";
const failed = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no error",
    (error: unknown) => error,
  );
const detailsOf = async (operation: string, body: object): Promise<string[]> => {
  const got = await daemon.call(operation, body);
  expect(got).toMatchObject({ status: 400, body: { code: "bad_request" } });
  return got.body.details.map(({ message }: { message: string }) => message);
};
/** All that Redis holds under such keys, as one text. */
const contents = async (keys = "*"): Promise<string> =>
  JSON.stringify(
    await Promise.all(
      (await client.keys(keys)).toSorted().map(async (key) => [key, await pictureOf(client, key)]),
    ),
  );

test("the official client creates, reads, renames, checks, lists and deletes", async () => {
  const made = await kernel.proxies.create({
    type: "custom",
    name: "out",
    protocol: "http",
    bypass_hosts: ["A.Example"],
    config: place(credentials),
  });
  const shown = {
    type: "custom",
    name: "out",
    protocol: "http",
    bypass_hosts: ["a.example"],
    config: place({ username: "me", has_password: true, has_ca_bundle: false }),
  };
  expect(made).toEqual({ id: expect.stringMatching(/^[0-9a-z]{24}$/), ...shown });
  const id = made.id ?? "";
  expect(await kernel.proxies.retrieve(id)).toEqual(made);
  expect(await kernel.proxies.update(id, { name: "renamed ü" })).toEqual({ ...made, name: "renamed ü" });
  const checked = await kernel.proxies.check(id);
  expect(checked).toEqual({
    ...made,
    name: "renamed ü",
    status: "available",
    ip_address: "203.0.113.7",
    last_checked: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  expect(origin.requests.at(-1)).toBe(`GET 127.0.0.1:${origin.port} /mine`);
  expect(await kernel.proxies.retrieve(id)).toEqual(checked);
  expect((await kernel.proxies.list()).getPaginatedItems()).toEqual([checked]);
  expect(await kernel.proxies.delete(id)).toBeNull();
  const works = [
    () => kernel.proxies.retrieve(id),
    () => kernel.proxies.update(id, { name: "x" }),
    () => kernel.proxies.check(id),
    () => kernel.proxies.delete(id),
  ];
  for (const work of works) expect(await failed(work())).toBeInstanceOf(NotFoundError);
});

test("a list is walked page by page, newest first, and names may be alike", async () => {
  const ids: string[] = [];
  for (let count = 0; count < 5; count += 1) ids.unshift(await create({ name: "alike" }));
  const seen: (string | undefined)[] = [];
  for await (const proxy of kernel.proxies.list({ limit: 2 })) seen.push(proxy.id);
  expect(seen).toEqual(ids);
  const page = await daemon.call("GET /proxies?limit=2&offset=2");
  expect(
    Object.fromEntries(
      ["x-has-more", "x-next-offset", "x-limit", "x-offset"].map((name) => [name, page.headers.get(name)]),
    ),
  ).toEqual({ "x-has-more": "true", "x-next-offset": "4", "x-limit": "2", "x-offset": "2" });
  for (const limit of ["0", "101", "x"])
    expect((await daemon.call(`GET /proxies?limit=${limit}`)).status).toBe(400);
  for (const id of ids) await kernel.proxies.delete(id);
});

test("neither password nor certificates are answered, kept in clear or logged", async () => {
  const id = await create({ protocol: "https" }, { ...credentials, ca_bundle: certificate.cert });
  await kernel.proxies.check(id);
  const refused = await daemon.call("POST /proxies", {
    type: "custom",
    config: { ...credentials, host: "http://x", ca_bundle: `${certificate.cert.slice(0, 90)}` },
  });
  expect(refused.status).toBe(400);
  const shown = await daemon.call(`GET /proxies/${id}`);
  expect(shown.body.config).toEqual(place({ username: "me", has_password: true, has_ca_bundle: true }));
  const body = certificate.cert.split("\n")[2] ?? "";
  expect(body.length).toBeGreaterThan(40);
  const kept = await contents();
  expect(kept).toContain(id);
  for (const text of [kept, shown.text, refused.text, daemon.log]) {
    for (const secret of [
      credentials.password,
      Buffer.from(credentials.password).toString("base64"),
      Buffer.from(`me:${credentials.password}`).toString("base64"),
      body,
    ])
      expect(text).not.toContain(secret);
  }
  await kernel.proxies.delete(id);
  expect(await contents()).not.toContain(id);
});

test("every fault is told at once, kinds that need a vendor are not supported, and nothing is kept", async () => {
  const before = await contents("*prox*");
  expect(
    await detailsOf("POST /proxies", {
      type: "custom",
      bypass_hosts: ["*"],
      config: { host: "a b", port: 1, password: "x\ny" },
    }),
  ).toEqual([
    "config.host: must be a host name or an address, without a scheme, a port or a path",
    "config.password: requires a username",
    "config.password: must not have control characters",
    "bypass_hosts[0]: must name more than *: leave the list out to mean every host",
  ]);
  expect(
    await detailsOf("POST /proxies", {
      type: "custom",
      colour: 1,
      config: { host: 1, port: 0, vendor: "x" },
    }),
  ).toEqual(
    expect.arrayContaining([
      "colour: is not a known field",
      "config.host: must be a string",
      "config.port: must be at least 1",
      "config.vendor: is not a known field",
    ]),
  );
  expect(await detailsOf("POST /proxies", {})).toEqual(["type: is required"]);
  expect(
    await detailsOf("POST /proxies", {
      type: "custom",
      bypass_hosts: Array.from({ length: 101 }, (_, at) => `a${at}.example`),
    }),
  ).toEqual(["bypass_hosts: must have at most 100 entries"]);
  for (const type of ["datacenter", "isp", "residential", "mobile"] as const) {
    expect(await failed(kernel.proxies.create({ type, config: { country: "US" } }))).toMatchObject({
      status: 400,
      error: { code: "not_supported" },
    });
  }
  expect(await contents("*prox*")).toBe(before);
});

test("a name is 1 to 255 characters, none of them a control character", async () => {
  const id = await create({ name: "out" });
  for (const [name, fault] of [
    ["", "name: must have at least 1 character"],
    ["x".repeat(256), "name: must have at most 255 characters"],
    ["a\nb", "name: must not have control characters"],
  ]) {
    expect(await detailsOf(`PATCH /proxies/${id}`, { name })).toEqual([fault]);
  }
  expect(await detailsOf(`PATCH /proxies/${id}`, {})).toEqual(["name: is required"]);
  expect(await detailsOf(`PATCH /proxies/${id}`, { name: "x", config: {} })).toEqual([
    "config: is not a known field",
  ]);
  expect((await kernel.proxies.retrieve(id)).name).toBe("out");
  await kernel.proxies.delete(id);
});

test("what is no id names nothing, a proxy's name included", async () => {
  const id = await create({ name: "out" });
  for (const ref of ["out", "%00", "a%2Fb", "%7Bx%7D", id.toUpperCase(), `${id}0`]) {
    expect(await daemon.call(`GET /proxies/${ref}`), ref).toMatchObject({
      status: 404,
      body: { code: "proxy_not_found" },
    });
  }
  await kernel.proxies.delete(id);
});

test("there are no more than there may be", async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, () => create()));
  expect(await failed(create())).toBeInstanceOf(PermissionDeniedError);
  await kernel.proxies.delete(ids[0] ?? "");
  ids[0] = await create();
  await Promise.all(ids.map((id) => kernel.proxies.delete(id)));
});

test("a proxy that a pool names is not deleted, until no pool names it any more", async () => {
  const [own, routed] = [await create({ name: "own" }), await create({ name: "routed" })];
  const { body: pool } = await daemon.call("POST /browser_pools", {
    name: "herd",
    size: 1,
    headless: true,
    fill_rate_per_minute: 0,
    proxy_id: own,
    network: { proxy_routes: [{ hosts: ["a.example"], proxy: { name: "routed" } }] },
  });
  for (const id of [own, routed]) {
    expect(await failed(kernel.proxies.delete(id))).toMatchObject({
      status: 400,
      error: {
        code: "resource_in_use",
        details: [{ code: "resource_in_use", message: `pool herd (${pool.id})` }],
      },
    });
    expect((await kernel.proxies.retrieve(id)).id).toBe(id);
  }
  expect((await daemon.call("PATCH /browser_pools/herd", { proxy_id: "" })).status).toBe(200);
  await kernel.proxies.delete(own);
  expect(await failed(kernel.proxies.delete(routed))).toBeInstanceOf(BadRequestError);
  await kernel.browserPools.delete("herd");
  await kernel.proxies.delete(routed);
});

test("a reference to no proxy, or to several, is refused field by field; nothing is changed", async () => {
  const [one, twin] = [await create({ name: "twin" }), await create({ name: "twin" })];
  const network = {
    proxy_routes: [
      { hosts: ["a.example"], proxy: { id: one } },
      { hosts: ["b.example"], proxy: { name: "twin" } },
      { hosts: ["c.example"], proxy: { id: "none" } },
    ],
  };
  const faults = [
    "network.proxy_routes[1].proxy: 2 proxies have this name; choose one by its id",
    "network.proxy_routes[2].proxy: there is no such proxy",
    "proxy_id: there is no such proxy",
  ];
  const body = { size: 1, headless: true, fill_rate_per_minute: 0, name: "herd" };
  expect((await detailsOf("POST /browser_pools", { ...body, proxy_id: "none", network })).toSorted()).toEqual(
    faults,
  );
  expect((await daemon.call("GET /browser_pools/herd")).status).toBe(404);
  await daemon.call("POST /browser_pools", { ...body, proxy_id: one });
  expect(
    (await detailsOf("PATCH /browser_pools/herd", { proxy_id: "none", network, memory: "16GiB" })).toSorted(),
  ).toEqual([expect.stringMatching(/^memory: /), ...faults]);
  expect((await daemon.call("GET /browser_pools/herd")).body.browser_pool_config).toMatchObject({
    proxy_id: one,
  });
  expect(await detailsOf("POST /browsers", { headless: true, proxy: { name: "twin" } })).toEqual([
    "proxy: 2 proxies have this name; choose one by its id",
  ]);
  expect(await detailsOf("POST /browsers", { headless: true, proxy_id: "none" })).toEqual([
    "proxy_id: there is no such proxy",
  ]);
  expect(await detailsOf("POST /browsers", { headless: true, proxy_id: one, proxy: { id: twin } })).toEqual([
    "proxy: cannot be combined with proxy_id",
  ]);
  await kernel.browserPools.delete("herd");
  await Promise.all([one, twin].map((id) => kernel.proxies.delete(id)));
});

test("a route is kept by the id of its proxy, and only that id is expected of a network", async () => {
  const [id, other] = [await create({ name: "out" }), await create({ name: "other" })];
  const routes = (proxy: object) => ({ proxy_routes: [{ hosts: ["A.example"], proxy }] });
  const made = await daemon.call("POST /browser_pools", {
    size: 1,
    headless: true,
    fill_rate_per_minute: 0,
    name: "herd",
    network: routes({ name: "out" }),
  });
  const { network } = made.body.browser_pool_config;
  expect(network).toEqual({ proxy_routes: [{ hosts: ["a.example"], proxy: { id } }] });
  const patch = (expected: object) =>
    daemon.call("PATCH /browser_pools/herd", { timeout_seconds: 77, expected_network: expected });
  for (const expected of [routes({ name: "out" }), routes({ id: other }), {}])
    expect(await patch(expected)).toMatchObject({ status: 409, body: { code: "stale_network" } });
  expect((await daemon.call("GET /browser_pools/herd")).body.browser_pool_config.timeout_seconds).toBe(600);
  expect((await patch(network)).status).toBe(200);
  await kernel.proxies.update(id, { name: "renamed" });
  expect((await patch(routes({ id }))).status).toBe(200);
  expect(
    (
      await daemon.call("PATCH /browser_pools/herd", {
        network: routes({ name: "other" }),
        expected_network: network,
      })
    ).body.browser_pool_config.network,
  ).toEqual({ proxy_routes: [{ hosts: ["a.example"], proxy: { id: other } }] });
  await kernel.browserPools.delete("herd");
  await Promise.all([id, other].map((one) => kernel.proxies.delete(one)));
});

test("a check tells what the proxy carries now: one that fails is unavailable, and that is no error", async () => {
  const silent = await startSilent();
  const cases: [object, string][] = [
    [credentials, "available"],
    [{ ...credentials, password: "other" }, "unavailable"],
    [{}, "unavailable"],
    [{ port: await findClosedPort() }, "unavailable"],
    [{ port: silent.port }, "unavailable"],
    [{ host: "no-such.example" }, "unavailable"],
  ];
  for (const [config, status] of cases) {
    const id = await create({}, config);
    const checked = await kernel.proxies.check(id, { url: `http://origin.example:${origin.port}/` });
    expect([config, checked.status, typeof checked.last_checked]).toEqual([config, status, "string"]);
    expect(checked.ip_address).toBe(status === "available" ? "203.0.113.7" : undefined);
    await kernel.proxies.delete(id);
  }
  await silent.close();
});

test("a check does not look into the operator's network", async () => {
  const id = await create({}, credentials);
  const asked = upstream.targets.length;
  for (const url of [
    "http://127.0.0.1/",
    "http://localhost:6379/",
    "http://169.254.169.254/",
    "http://inside.example/",
    "http://[::1]/",
  ]) {
    expect(await detailsOf(`POST /proxies/${id}/check`, { url })).toEqual(["url: must name a public host"]);
  }
  expect(await detailsOf(`POST /proxies/${id}/check`, { url: "ftp://origin.example/" })).toEqual([
    "url: must be an http or https URL",
  ]);
  expect(upstream.targets.length).toBe(asked);
  expect(await kernel.proxies.retrieve(id)).not.toHaveProperty("status");
  await kernel.proxies.delete(id);
});

test("this daemon's own port is no proxy", async () => {
  const id = await create({}, { port: Number(new URL(daemon.url).port) });
  expect((await kernel.proxies.check(id)).status).toBe("unavailable");
  expect(daemon.log).not.toContain('"path":"http');
  await kernel.proxies.delete(id);
});

test("secrets that were sealed with another key are a clear error, and the proxy can still be read and deleted", async () => {
  const id = await create({}, credentials);
  const [key = ""] = await client.keys(`*${id}`);
  await client.hset(
    key,
    "sealed",
    new Seal(new Secret("the key of another deployment")).close(JSON.stringify({ password: "x" }), id),
  );
  const error = await failed(kernel.proxies.check(id));
  expect(error).toBeInstanceOf(UnprocessableEntityError);
  expect(error).toMatchObject({
    error: { code: "secret_unreadable", message: expect.stringContaining("REMUDA_ENCRYPTION_KEY") },
  });
  expect((await kernel.proxies.retrieve(id)).config).toMatchObject({ has_password: true });
  await kernel.proxies.delete(id);
});
