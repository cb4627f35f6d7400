import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { until } from "../browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../daemon/daemon-process.js";
import { DaemonPlace } from "../daemon/daemon-settings.js";
import { destinationBody, serviceRoleArn } from "../http/recorded-audit.js";
import { startRedis } from "../store/redis.js";
import { type Cloud, serviceCredentials, startCloud } from "./cloud.js";

export const destinationsPath = "/audit-logs/export/destinations";

/** Longer than BullMQ takes to find that a control is gone, on a loaded machine. */
const takeOverMs = 120_000;

/** Controls that share a Redis and archives, and the cloud that they deliver their audit log to. */
export async function openExportFleet() {
  const [redis, cloud, archives] = await Promise.all([
    startRedis(),
    startCloud(),
    mkdtemp(join(tmpdir(), "remuda-test-export-")),
  ]);
  const places: DaemonPlace[] = [];
  return {
    cloud,
    /** `s3Endpoint`: the way to the cloud's store, where that is another than its own. */
    async startControl(name: string, s3Endpoint = cloud.s3Endpoint): Promise<DaemonProcess> {
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
              s3_endpoint: s3Endpoint,
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
    },
    async close(): Promise<void> {
      await cloud.close();
      await redis.stop();
      for (const place of places) place.remove();
      await rm(archives, { recursive: true, force: true });
    },
  };
}

interface Shown {
  readonly id: string;
  readonly external_id: string;
  readonly role_arn: string;
}
/** A destination that is paused, whose role nobody has made yet. */
export const makeDestination = async (daemon: DaemonProcess): Promise<Shown> =>
  (await daemon.kernel({ maxRetries: 0 }).post(destinationsPath, { body: destinationBody() })) as Shown;

/** Asks for what is not there, which leaves entries that are told apart by their paths. */
export async function askFor(daemon: DaemonProcess, names: readonly string[]): Promise<void> {
  for (const name of names) expect((await daemon.call(`GET /browser_pools/${name}`)).status).toBe(404);
}

/** The paths of the log that a test has asked for. */
export async function recordedPaths(daemon: DaemonProcess): Promise<readonly string[]> {
  const query = {
    start: new Date(Date.now() - 3_600_000).toISOString(),
    end: new Date(Date.now() + 3_600_000).toISOString(),
    search: "/browser_pools/run",
  };
  const found: string[] = [];
  for await (const { path: asked } of daemon.kernel().auditLogs.list(query)) found.push(asked);
  return found;
}

/** The lines that were delivered, once all of these paths are among them. */
export async function deliveredLines(
  cloud: Cloud,
  paths: readonly string[],
): Promise<ReturnType<Cloud["lines"]>> {
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
