import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newDirectory, newScratchDirectory } from "../killed-runs.js";
import { key } from "../http/http-server.js";
import { redisProgram } from "../store/redis-server.js";

export interface DaemonOptions {
  /** Put over the settings of tests, section by section: as in a configuration file. */
  readonly file?: Readonly<Record<string, unknown>>;
  /** A Redis shared with others; without it the daemon has a private one. */
  readonly redisUrl?: string;
  readonly role?: "all" | "control" | "node";
  /** Known before it listens; drawn by the kernel otherwise. */
  readonly port?: number;
  /** Variables that it is given besides. */
  readonly environment?: Readonly<Record<string, string>>;
  /** In the place of the suite's. */
  readonly encryptionKey?: string;
  /** It draws its key and secret itself and keeps them in files, instead of being given the suite's. */
  readonly drawsKeys?: boolean;
}

export const clusterSecret = "the_cluster_secret_of_this_suite";
export const encryptionKey = "the_encryption_key_of_this_suite";

/** How long room for a launch is held for whoever died: three times the limit of one. */
export const launchClaimMs = 300_000;

/** Everything happens soon, so that a test waits for little. */
const quick = {
  browser: { engine: "headless-shell" },
  // No private host is open by default, but the sites and proxies of tests are on this machine.
  egress: { private_hosts: ["127.0.0.0/8", "[::1]", "localhost"], proxy_hosts: ["127.0.0.0/8"] },
  // The servers of tests keep nothing, and several daemons run beside each other.
  vault: { allow_lossy_redis: true, form: { port: 0 } },
  fill: { default_rate_per_minute: 6000, backoff_initial_ms: 200 },
  periods: { fill_ms: 100, reap_ms: 300, recycle_ms: 300 },
  node: {
    beat_period_ms: 200,
    lost_after_ms: 2500,
    expire_period_seconds: 1,
    // Other work on the machine is no failure.
    launch_limit_seconds: launchClaimMs / 3000,
    reset_limit_seconds: 20,
    probe_period_seconds: 1,
    probe_limit_seconds: 30,
  },
  acquire: { control_beat_period_ms: 200, control_lost_after_ms: 2000, provisional_seconds: 3 },
  stop: { step_seconds: 15, limit_seconds: 40, hurried_seconds: 8 },
  redis: { executable: redisProgram },
  log: { level: "debug", format: "json" },
};

/** A place of one daemon: its directories stay the same over restarts, and go with the test. */
export class DaemonPlace {
  readonly directory = newDirectory("daemon");
  readonly dataDir = join(this.directory, "data");
  readonly scratchDirectory = newScratchDirectory();
  readonly #file = join(this.directory, "config.json");

  constructor(private readonly options: DaemonOptions) {
    const own = { node: { scratch_dir: this.scratchDirectory } };
    writeFileSync(this.#file, JSON.stringify([quick, own, options.file ?? {}].reduce(merge, {})));
  }

  get environment(): Record<string, string> {
    const { role, redisUrl, drawsKeys, port = 0, environment } = this.options;
    return {
      PATH: process.env["PATH"] ?? "/usr/bin:/bin",
      ...environment,
      REMUDA_CONFIG: this.#file,
      REMUDA_DATA_DIR: this.dataDir,
      REMUDA_PORT: String(port),
      ...(!drawsKeys && {
        REMUDA_API_KEY: key,
        REMUDA_CLUSTER_SECRET: clusterSecret,
        REMUDA_ENCRYPTION_KEY: this.options.encryptionKey ?? encryptionKey,
      }),
      ...(role && { REMUDA_ROLE: role }),
      ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    };
  }

  /** What it answers to; a drawn one is there once the daemon is. */
  get apiKey(): string {
    return this.options.drawsKeys ? readFileSync(join(this.dataDir, "api-key"), "utf8").trim() : key;
  }

  remove(): void {
    for (const path of [this.directory, this.scratchDirectory])
      rmSync(path, { recursive: true, force: true });
  }
}

type Sections = Record<string, unknown>;
const isSection = (value: unknown): value is Sections =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const merge = (base: Sections, over: Sections): Sections => ({
  ...base,
  ...Object.fromEntries(
    Object.entries(over).map(([name, value]) => {
      const under = base[name];
      return [name, isSection(value) && isSection(under) ? merge(under, value) : value];
    }),
  ),
});
