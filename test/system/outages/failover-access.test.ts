import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cloud, serviceCredentials, startCloud } from "../../support/audit/cloud.js";
import { until } from "../../support/browser/chromium-until.js";
import { DaemonClient } from "../../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import type { Got } from "../../support/http/http-server.js";
import { destinationBody, serviceRoleArn } from "../../support/http/recorded-audit.js";
import { type RedisFailover, startRedisFailover } from "../../support/store/redis-failover.js";

const patience = { timeout: 60_000 };
const destinations = "/audit-logs/export/destinations";

let redis: RedisFailover;
let cloud: Cloud;
let place: DaemonPlace;
beforeAll(async () => {
  [redis, cloud] = await Promise.all([startRedisFailover(), startCloud()]);
  place = new DaemonPlace({
    role: "control",
    redisUrl: redis.url,
    environment: serviceCredentials("one"),
    file: {
      projects: { enabled: true },
      limits: { concurrent_sessions: 10 },
      audit: {
        // Sealed before the failover, in what it loses, and after it.
        hot_bytes: 4096,
        segment_entries: 20,
        seal_period_seconds: 1,
        export: {
          service_role_arn: serviceRoleArn,
          s3_endpoint: cloud.s3Endpoint,
          sts_endpoint: cloud.stsEndpoint,
          hold_seconds: 1,
          window_seconds: 1,
          period_seconds: 1,
        },
      },
    },
  });
});
afterAll(async () => {
  await cloud.close();
  await redis.stop();
  place.remove();
});

const poolOf = (name: string, size: number) => ({ name, size, headless: true, fill_rate_per_minute: 0 });
const statusOf = (got: Promise<Got>): Promise<number> => got.then(({ status }) => status);
async function madeBy(asked: Promise<Got>) {
  const got = await asked;
  if (got.status !== 200 && got.status !== 201) throw new Error(`${got.status} ${got.text}`);
  return got.body as { id: string; key: string; role_arn: string; external_id: string };
}
async function askFor(daemon: DaemonProcess, name: string): Promise<void> {
  for (let at = 0; at < 30; at += 1)
    expect(await statusOf(daemon.call(`GET /browser_pools/asked-${name}-${at}`))).toBe(404);
}
const namesIn = (paths: readonly string[], name: string): readonly string[] =>
  paths.filter((path) => path.startsWith(`/browser_pools/asked-${name}-`));
async function listed(daemon: DaemonProcess): Promise<readonly string[]> {
  const range = {
    start: new Date(Date.now() - 3_600_000).toISOString(),
    end: new Date(Date.now() + 3_600_000).toISOString(),
  };
  const found: string[] = [];
  for await (const { path } of daemon.kernel().auditLogs.list({ ...range, search: "/asked-" }))
    found.push(path);
  return found;
}
/** Entries are written a moment after their requests. */
const areListed = (daemon: DaemonProcess, name: string): Promise<void> =>
  expect.poll(async () => namesIn(await listed(daemon), name).length, patience).toBe(30);

test("what a failover loses of keys, projects, limits and the log is made again, and nothing is stuck", async () => {
  const daemon = await spawnDaemon(place);
  const made = (...asked: Parameters<DaemonProcess["call"]>) => madeBy(daemon.call(...asked));
  const as = (key: string): Promise<number> =>
    statusOf(new DaemonClient(daemon.url, key).call("GET /browsers"));
  const inProject = (id: string): Promise<number> =>
    statusOf(daemon.call("GET /browsers", undefined, { "x-kernel-project-id": id }));
  const limit = async (): Promise<unknown> =>
    (await daemon.call("GET /org/limits")).body.default_project_max_concurrent_sessions;
  const used = async (): Promise<unknown> =>
    (await daemon.call("GET /org/limits")).body.concurrent_sessions_used;

  const kept = await made("POST /org/api_keys", { name: "kept" });
  const deleted = await made("POST /org/api_keys", { name: "deleted" });
  await daemon.call("PATCH /org/limits", { default_project_max_concurrent_sessions: 9 });
  await made("POST /browser_pools", poolOf("before", 2));
  const target = await made(`POST ${destinations}`, destinationBody());
  cloud.roles.set(target.role_arn, { externalId: target.external_id });
  await daemon.call(`PATCH ${destinations}/${target.id}`, { status: "active" });
  await askFor(daemon, "before");
  await areListed(daemon, "before");

  await redis.detach();
  const again = { "idempotency-key": "again" };
  const lost = await made("POST /org/api_keys", { name: "lost" }, again);
  expect(await statusOf(daemon.call(`DELETE /org/api_keys/${deleted.id}`))).toBe(204);
  const project = await made("POST /org/projects", { name: "lost" });
  await daemon.call("PATCH /org/limits", { default_project_max_concurrent_sessions: 10 });
  await made("POST /browser_pools", poolOf("lost", 7));
  expect(await statusOf(daemon.call("DELETE /browser_pools/before", {}))).toBe(204);
  await askFor(daemon, "lost");
  expect([await as(lost.key), await as(deleted.key), await inProject(project.id)]).toEqual([200, 401, 200]);
  await redis.failOver();
  await until("Redis back", async () => (await statusOf(daemon.call("GET /browsers"))) === 200);

  // What was lost is unknown, what was undone is there again: as before.
  expect(await Promise.all([as(kept.key), as(lost.key), as(deleted.key)])).toEqual([200, 401, 200]);
  expect([await inProject(project.id), await limit()]).toEqual([404, 9]);
  const repeated = await made("POST /org/api_keys", { name: "lost" }, again);
  expect(await as(repeated.key)).toBe(200);
  expect(await statusOf(daemon.call(`DELETE /org/api_keys/${deleted.id}`))).toBe(204);
  expect(await as(deleted.key)).toBe(401);
  expect(await inProject((await made("POST /org/projects", { name: "lost" })).id)).toBe(200);
  // All that the limit leaves can be had, and no more.
  await expect.poll(used, patience).toBe(2);
  await made("POST /browser_pools", poolOf("after", 7));
  expect((await daemon.call("POST /browser_pools", poolOf("beyond", 1))).body.code).toBe("limit_exceeded");
  expect(await statusOf(daemon.call("DELETE /browser_pools/before", {}))).toBe(204);
  await made("POST /browser_pools", poolOf("again", 2));

  await askFor(daemon, "after");
  await areListed(daemon, "after");
  const paths = await listed(daemon);
  expect(new Set(paths).size).toBe(paths.length);
  expect(namesIn(paths, "before")).toHaveLength(30);
  const delivered = (name: string) =>
    new Set(
      namesIn(
        cloud.lines().map(({ path }) => String(path)),
        name,
      ),
    ).size;
  await expect.poll(() => [delivered("before"), delivered("after")], { timeout: 60_000 }).toEqual([30, 30]);
  await daemon.end("SIGTERM");
});
