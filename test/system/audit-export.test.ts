import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cloud, serviceCredentials, startCloud } from "../support/audit/cloud.js";
import { until } from "../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import { destinationBody, serviceRoleArn } from "../support/http/recorded-audit.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";

const path = "/audit-logs/export/destinations";
/** Longer than BullMQ takes to find that a control is gone, on a loaded machine. */
const takeOverMs = 120_000;

let redis: TestRedis;
let cloud: Cloud;
let archives: string;
const places: DaemonPlace[] = [];
beforeAll(async () => {
  [redis, cloud, archives] = await Promise.all([
    startRedis(),
    startCloud(),
    mkdtemp(join(tmpdir(), "remuda-test-export-")),
  ]);
});
afterAll(async () => {
  await cloud.close();
  await redis.stop();
  for (const place of places) place.remove();
  await rm(archives, { recursive: true, force: true });
});

async function startControl(name: string): Promise<DaemonProcess> {
  const place = new DaemonPlace({
    role: "control",
    redisUrl: redis.url,
    environment: serviceCredentials(name),
    file: {
      archives: { directory: archives },
      audit: {
        // Some of what is delivered is sealed by then, and some is not.
        hot_bytes: 4096,
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
  places.push(place);
  return await spawnDaemon(place);
}

async function askFor(daemon: DaemonProcess, name: string, count: number): Promise<void> {
  for (let index = 0; index < count; index += 1)
    expect((await daemon.call(`GET /browser_pools/${name}-${index}`)).status).toBe(404);
}

/** The paths of the log that a test has asked for. */
async function recorded(daemon: DaemonProcess): Promise<readonly string[]> {
  const query = {
    start: new Date(Date.now() - 3_600_000).toISOString(),
    end: new Date(Date.now() + 3_600_000).toISOString(),
    search: "/browser_pools/run",
  };
  const found: string[] = [];
  for await (const { path: asked } of daemon.kernel().auditLogs.list(query)) found.push(asked);
  return found;
}

/** What of the log is delivered, once that is everything. */
async function delivered(paths: readonly string[]): Promise<ReturnType<Cloud["lines"]>> {
  return await until(
    "everything delivered",
    () => {
      const lines = cloud.lines();
      const there = new Set(lines.map((line) => line.path));
      return paths.every((one) => there.has(one)) ? lines : undefined;
    },
    takeOverMs,
  );
}

test("two controls deliver each object once; where one is killed over an upload the other goes on, and nothing is lost", async () => {
  const controls = new Map([
    ["one", await startControl("one")],
    ["two", await startControl("two")],
  ]);
  const [first] = controls.values();
  if (!first) throw new Error("there are two");
  const kernel = kernelOf(first);
  type Shown = { readonly id: string; readonly external_id: string; readonly role_arn: string };
  const made = (await kernel.post(path, { body: destinationBody() })) as Shown;
  const at = `${path}/${made.id}`;
  expect(await kernel.post(`${at}/test`)).toMatchObject({ success: false, stage: "assume_role" });
  cloud.roles.set(made.role_arn, { externalId: made.external_id });
  expect(await kernel.post(`${at}/test`)).toEqual({ success: true, stage: "complete" });
  cloud.puts.length = 0;
  await kernel.patch(at, { body: { status: "active" } });

  const flooded = Promise.all(
    [...controls.values()].map((daemon, index) => askFor(daemon, `run${index}`, 30)),
  );
  // Killed after its upload has ended and before it hears so: the cursor is not moved.
  const killed = new Promise<string>((resolve, reject) => {
    cloud.aroundPuts(async ({ by }, put) => {
      cloud.aroundPuts((_put, other) => other());
      await flooded;
      await put();
      const daemon = controls.get(by);
      await daemon?.end("SIGKILL");
      if (daemon) resolve(by);
      else reject(new Error(`nobody knows the daemon ${by}`));
    });
  });
  controls.delete(await killed);
  const [survivor] = controls.values();
  if (!survivor) throw new Error("one is left");
  await askFor(survivor, "run-after", 10);

  const paths = await until("the last on record", async () => {
    const all = await recorded(survivor);
    return all.includes("/browser_pools/run-after-9") ? all : undefined;
  });
  const lines = await delivered(paths);
  expect(new Set(lines.map(({ event_id: id }) => id)).size).toBe(lines.length);

  const twice = cloud.puts.filter(({ key }, index) => cloud.puts.findIndex((put) => put.key === key) < index);
  expect(twice.map(({ key }) => key)).toEqual([cloud.puts[0]?.key]);
  expect(twice[0]?.bytes).toEqual(cloud.puts[0]?.bytes);
  expect(twice[0]?.by).not.toBe(cloud.puts[0]?.by);
  expect(cloud.faults).toEqual([]);
  expect(await kernelOf(survivor).get(at)).toMatchObject({ status: "active", consecutive_failures: 0 });
  const metrics = (await survivor.call("GET /metrics")).text;
  expect(metrics).toMatch(new RegExp(`remuda_audit_export_lag_seconds{destination="${made.id}"} \\d`));
  expect(metrics).toMatch(/remuda_audit_export_entries_total [1-9]/);

  // One that stops does not wait for an upload that hangs.
  const hanging = new Promise<void>((resolve) => {
    cloud.aroundPuts(async () => {
      resolve();
      await new Promise(() => {});
    });
  });
  await askFor(survivor, "run-last", 1);
  await hanging;
  expect((await survivor.end("SIGTERM")).code).toBe(0);
});

const kernelOf = (daemon: DaemonProcess) => daemon.kernel({ maxRetries: 0 });
