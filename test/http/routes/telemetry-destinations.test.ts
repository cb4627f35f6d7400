import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";
import { type Dns, startDns } from "../../support/egress/dns-server.js";
import { pictureOf } from "../../support/store/picture.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

let redis: TestRedis;
let client: Redis;
let dns: Dns;
let daemon: Daemon;
beforeAll(async () => {
  [redis, dns] = await Promise.all([
    startRedis(),
    startDns({ "public.example": ["93.184.216.34"], "mixed.example": ["93.184.216.34", "10.0.0.7"] }),
  ]);
  client = redis.client();
  daemon = await startDaemon({
    role: "control",
    redisUrl: redis.url,
    file: {
      egress: { resolvers: [dns.server] },
      telemetry: { export: { private_hosts: ["10.1.0.0/16"], max_destinations: 6 } },
    },
  });
});
afterAll(async () => {
  await daemon.stop();
  client.disconnect();
  await Promise.all([redis.stop(), dns.close()]);
});

const path = "/telemetry/destinations";
const endpoint = "https://public.example/otlp";
const secrets = ["Bearer of-this-suite", "another-secret-of-it"] as const;
afterEach(async () => {
  const { body } = await daemon.call(`GET ${path}`);
  for (const { id } of body) await daemon.call(`DELETE ${path}/${id}`);
});
async function inRedis(): Promise<string> {
  const keys = await client.keys("*");
  return (await Promise.all(keys.map((key) => pictureOf(client, key)))).join("\n");
}
const create = (body: object) => daemon.call(`POST ${path}`, body);

test("one is made, read, listed, changed and deleted, and no value of a header is ever shown", async () => {
  const headers = { authorization: secrets[0], "x-api-key": secrets[1] };
  const made = await create({ name: "out", endpoint, headers, description: "ours" });
  const { id } = made.body;
  expect(made).toMatchObject({
    status: 201,
    body: {
      id: expect.stringMatching(/^[0-9a-z]{24}$/),
      name: "out",
      endpoint,
      headers: { Authorization: "", "X-Api-Key": "" },
      description: "ours",
      consecutive_failures: 0,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: made.body.created_at,
    },
  });
  for (const ref of [id, "out"])
    expect(await daemon.call(`GET ${path}/${ref}`)).toMatchObject({ status: 200, body: made.body });
  const patch = {
    name: "renamed",
    endpoint: "http://10.1.2.3:4318",
    headers: { "X-API-KEY": null, "x-tenant": "mine" },
    description: "",
  };
  const changed = await daemon.call(`PATCH ${path}/out`, patch);
  expect(changed.body).toMatchObject({
    id,
    name: "renamed",
    endpoint: patch.endpoint,
    headers: { Authorization: "", "X-Tenant": "" },
  });
  expect(changed.body).not.toHaveProperty("description");
  // What was read can be sent back, but for the values of headers.
  const { headers: shown } = changed.body;
  expect(await daemon.call(`PATCH ${path}/renamed`, { headers: shown })).toMatchObject({ status: 400 });
  await daemon.call(`PATCH ${path}/renamed`, {});
  const everything = await inRedis();
  expect(everything).toContain("renamed");
  for (const secret of secrets) {
    expect(everything).not.toContain(secret);
    expect(daemon.log).not.toContain(secret);
  }
  expect(await daemon.call(`DELETE ${path}/renamed`)).toMatchObject({ status: 204 });
  for (const method of ["GET", "PATCH", "DELETE"])
    expect(await daemon.call(`${method} ${path}/${id}`, method === "PATCH" ? {} : undefined)).toMatchObject({
      status: 404,
      body: { code: "otlp_destination_not_found" },
    });
  expect(await client.keys("*otlpDestination*")).toEqual([]);
});

test("each change is in the audit log when it is answered, without anything that was sent", async () => {
  await create({ name: "audited", endpoint, headers: { authorization: secrets[0] } });
  await daemon.call(`PATCH ${path}/audited`, { description: "x" });
  await daemon.call(`DELETE ${path}/audited`);
  const end = new Date(Date.now() + 60_000).toISOString();
  const start = new Date(Date.now() - 600_000).toISOString();
  const { body, text } = await daemon.call(`GET /audit-logs?start=${start}&end=${end}&search=/audited`);
  expect(body.map(({ method, status }: { method: string; status: number }) => [method, status])).toEqual([
    ["DELETE", 204],
    ["PATCH", 200],
  ]);
  for (const secret of secrets) expect(text).not.toContain(secret);
});

test.each([
  ["a loopback address", "http://127.0.0.1:4318", "must be at a public address"],
  ["a name of this machine", "http://localhost:4318", "must be at a public address"],
  ["a private address", "http://10.0.0.7", "must be at a public address"],
  ["a cloud's metadata", "http://169.254.169.254", "must be at a public address"],
  ["an address written otherwise", "http://0x7f.1/", "must be at a public address"],
  ["a private address in IPv6", "http://[::ffff:10.0.0.7]", "must be at a public address"],
  ["a name with a private address among others", "https://mixed.example", "must be at a public address"],
  ["a name that has no address", "https://nobody.example", "names a host that has no address"],
])("%s is no collector", async (_, where, fault) => {
  expect(await create({ name: "closed", endpoint: where })).toMatchObject({
    status: 400,
    body: { code: "bad_request", details: [{ message: `endpoint: ${fault}` }] },
  });
});

test("every fault of a body is told at once; a name is one destination's and no id", async () => {
  const { body } = await create({ name: "a".repeat(24), endpoint: "x", headers: { host: "y", "b ": "z" } });
  expect(body.details.map(({ message }: { message: string }) => message)).toEqual([
    "name: must not look like an id",
    "endpoint: must be an http or https URL",
    'headers["host"]: is set by the exporter itself',
    'headers["b "]: is no name of a header',
  ]);
  await create({ name: "one", endpoint });
  await create({ name: "two", endpoint });
  const taken = { status: 409, body: { code: "name_taken" } };
  expect(await create({ name: "one", endpoint })).toMatchObject(taken);
  expect(await daemon.call(`PATCH ${path}/two`, { name: "one" })).toMatchObject(taken);
  expect(await create({ endpoint })).toMatchObject({ status: 400 });
  expect(await create({ name: "three" })).toMatchObject({ status: 400 });
});

test("a list has pages, the newest first, and is searched by name, endpoint and id", async () => {
  const ids: string[] = [];
  for (const name of ["alpha", "beta", "gamma"]) {
    const made = await create({ name, endpoint: `https://public.example/of-${name}` });
    ids.unshift(made.body.id);
  }
  const list = async (query: string): Promise<string[]> =>
    (await daemon.call(`GET ${path}?${query}`)).body.map(({ id }: { id: string }) => id);
  expect(await list("")).toEqual(ids);
  expect(await list("limit=1&offset=1")).toEqual([ids[1]]);
  expect(await list("query=BET")).toEqual([ids[1]]);
  expect(await list("query=of-gam")).toEqual([ids[0]]);
  expect(await list(`query=${ids[2]}`)).toEqual([ids[2]]);
  expect(await list("name=ALPHA")).toEqual([ids[2]]);
  expect(await list("name=alp")).toEqual([]);
  expect(await list("name=alpha&query=of-gamma")).toEqual([]);
  for (const name of ["delta", "epsilon", "zeta"]) await create({ name, endpoint });
  expect(await create({ name: "eta", endpoint })).toMatchObject({
    status: 403,
    body: { code: "limit_exceeded" },
  });
});
