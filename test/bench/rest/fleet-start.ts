import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Helper, startHelper } from "../support/processes.js";
import { urlIn } from "../../support/daemon/said.js";

const main = join(import.meta.dirname, "../../../src/main.js");
const fleet = join(import.meta.dirname, "fleet.js");
export const apiKey = "a-key-of-the-benches";

/** A control and a whole fleet on one Redis, each in a process of its own. */
export interface Deployment {
  readonly origin: string;
  stop(): Promise<void>;
}

export async function startDeployment(redisUrl: string): Promise<Deployment> {
  const directory = await mkdtemp(join(tmpdir(), "remuda-bench-rest-"));
  const config = join(directory, "config.json");
  // All nodes share one process here: that it falls behind while it fills is no reason to take them for lost.
  await writeFile(
    config,
    JSON.stringify({
      fill: { default_rate_per_minute: 60_000 },
      log: { format: "json" },
      redis: { command_timeout_ms: 60_000 },
      limits: { max_pool_size: 2000 },
      node: { lost_after_ms: 600_000, launch_pickup_seconds: 120, launch_limit_seconds: 120 },
    }),
  );
  const secret = "a-secret-of-the-benches";
  const environment = (role: string): Record<string, string> => ({
    REMUDA_CONFIG: config,
    REMUDA_DATA_DIR: join(directory, role),
    REMUDA_PORT: "0",
    REMUDA_API_KEY: apiKey,
    REMUDA_ROLE: role,
    REMUDA_CLUSTER_SECRET: secret,
    REMUDA_ENCRYPTION_KEY: secret,
    REDIS_URL: redisUrl,
  });
  const helpers: Helper[] = [];
  const stop = async (): Promise<void> => {
    for (const helper of helpers.toReversed()) await helper.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    const control = await startHelper({ file: main, environment: environment("control"), find: urlIn });
    helpers.push(control);
    helpers.push(
      await startHelper({
        file: fleet,
        environment: environment("node"),
        limitMs: 600_000,
        find: (line) => (line === "fleet ready" ? line : undefined),
      }),
    );
    return { origin: control.said, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
