import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { listRoutes } from "../../support/http/listed-routes.js";
import { destinationBody } from "../../support/http/recorded-audit.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

let redis: TestRedis;
let client: Redis;
let place: DaemonPlace;
beforeAll(async () => {
  redis = await startRedis();
  client = redis.client();
  place = new DaemonPlace({
    role: "control",
    redisUrl: redis.url,
    file: {
      projects: { enabled: true },
      telemetry: { export: { private_hosts: ["127.0.0.1"] } },
      audit: {
        hot_bytes: 2 ** 13,
        max_bytes: 2 ** 13,
        // Nothing is sealed meanwhile, so that the log stays full.
        seal_period_seconds: 3600,
        unknown_entries_of_address: 2,
        export: { assume_role: false },
      },
    },
  });
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
  place.remove();
});

const exports = "/audit-logs/export/destinations";
const collectors = "/telemetry/destinations";
const collector = { name: "collector", endpoint: "http://127.0.0.1:9" };

const credential = {
  type: "credential",
  spec: { provider: "native", fields: [{ name: "user", type: "text", value: "before" }] },
};

/** One of each thing that may be changed, by the place in the paths that names it. */
async function prepare(daemon: DaemonProcess): Promise<Readonly<Record<string, string>>> {
  const make = async (operation: string, body: object): Promise<string> => {
    const got = await daemon.call(operation, body);
    if (got.status !== 201) throw new Error(`${operation}: ${got.text}`);
    return (got.body as { id: string }).id;
  };
  const project = await make("POST /org/projects", { name: "there" });
  const vault = await make("POST /vaults", { name: "there" });
  const item = await daemon.call(`PUT /vaults/${vault}/items/there`, credential);
  expect(item, item.text).toMatchObject({ status: 200 });
  return {
    // There is none: one that were asked for all the same would be told 404.
    "/nodes": "there",
    "/vaults": vault,
    "/items": "there",
    "/org/api_keys": await make("POST /org/api_keys", { name: "there" }),
    "/org/projects": project,
    "/projects": project,
    [exports]: await make(`POST ${exports}`, destinationBody()),
    [collectors]: await make(`POST ${collectors}`, collector),
  };
}

/** A body for each route that is on record first, which would change something. */
const bodies: Readonly<Record<string, object>> = {
  "POST /org/api_keys": { name: "more" },
  "PATCH /org/api_keys/{id}": { name: "renamed" },
  "DELETE /org/api_keys/{id}": {},
  "POST /org/api_keys/{id}/rotate": {},
  "POST /org/projects": { name: "more" },
  "PATCH /org/projects/{id}": { name: "renamed" },
  "DELETE /org/projects/{id}": {},
  "PATCH /org/projects/{id}/limits": { max_concurrent_sessions: 7 },
  "POST /projects": { name: "more" },
  "PATCH /projects/{id}": { status: "archived" },
  "DELETE /projects/{id}": {},
  "PATCH /projects/{id}/limits": { max_concurrent_sessions: 7 },
  "PATCH /org/limits": { default_project_max_concurrent_sessions: 9 },
  [`POST ${exports}`]: destinationBody(),
  [`PATCH ${exports}/{id}`]: { prefix: "elsewhere" },
  [`DELETE ${exports}/{id}`]: {},
  [`POST ${collectors}`]: { ...collector, name: "more" },
  [`PATCH ${collectors}/{id_or_name}`]: { description: "changed" },
  [`DELETE ${collectors}/{id_or_name}`]: {},
  "POST /vaults": { name: "more" },
  "PUT /vaults/{id_or_name}/items/{key}": credential,
  "PATCH /vaults/{id_or_name}/items/{key}": {
    type: "credential",
    version: 1,
    spec: { fields: { user: { value: "after" } } },
  },
  "POST /vaults/{id_or_name}/items/{key}/operations": { type: "collect" },
  "DELETE /vaults/{id_or_name}/items/{key}": {},
  "DELETE /vaults/{id_or_name}": {},
  "POST /nodes/{id}/drain": {},
  "DELETE /nodes/{id}/drain": {},
};

/** What is kept of whoever may do what, as it is. */
async function kept(): Promise<ReadonlyMap<string, string>> {
  const keys = (await client.keys("remuda:*")).filter((key) => !ofOthers.test(key)).toSorted();
  return new Map(
    await Promise.all(
      keys.map(async (key) => [key, String((await client.dumpBuffer(key))?.toString("hex"))] as const),
    ),
  );
}
const ofOthers = /schedule|control|node|queue/i;

/** What a metric counts, with its labels. */
async function counted(daemon: DaemonProcess, sample: string): Promise<number> {
  const line = (await daemon.call("GET /metrics")).text
    .split("\n")
    .find((each) => each.startsWith(`${sample} `));
  return Number(line?.slice(sample.length + 1) ?? 0);
}
const lost = 'remuda_audit_entries_lost_total{reason="log_full"}';

test("a full log refuses each change that has to be on record and changes nothing; metrics tell what is lost", async () => {
  const daemon = await spawnDaemon(place);
  const ids = await prepare(daemon);
  expect(await counted(daemon, lost)).toBe(0);
  const longPath = `/browser_pools/${"x".repeat(200)}`;
  await expect
    .poll(
      async () => {
        await daemon.call(`GET ${longPath}`);
        return await counted(daemon, lost);
      },
      { timeout: 60_000, interval: 10 },
    )
    .toBeGreaterThan(0);

  const before = await kept();
  expect(before.size).toBeGreaterThan(5);
  const routes = (await listRoutes()).filter(({ audit }) => audit === "first");
  expect(routes.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual(
    Object.keys(bodies).toSorted(),
  );
  for (const [route, body] of Object.entries(bodies)) {
    const asked = route.replaceAll(/(\/[\w/-]*)\/\{\w+\}/g, (_, start: string) => `${start}/${ids[start]}`);
    const got = await daemon.call(asked, body);
    expect([asked, got.status, got.body.code]).toEqual([asked, 503, "audit_unavailable"]);
  }
  expect(await kept()).toEqual(before);

  // Each that was refused was to leave an entry as well.
  const atLeast = Object.keys(bodies).length;
  await expect.poll(() => counted(daemon, lost)).toBeGreaterThan(atLeast);
  await daemon.end("SIGTERM");
});

test("metrics tell how many requests of unknown callers share an entry", async () => {
  const daemon = await spawnDaemon(place);
  for (let count = 0; count < 5; count += 1)
    expect((await daemon.call("GET /browsers", undefined, { authorization: "" })).status).toBe(401);
  await expect.poll(() => counted(daemon, "remuda_audit_requests_folded_total")).toBe(3);
  await daemon.end("SIGTERM");
});
