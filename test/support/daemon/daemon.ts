import Kernel from "@onkernel/sdk";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../../src/base/clock.js";
import { nothing, takeCensus } from "../browser/chromium-census.js";
import { until } from "../browser/chromium-until.js";
import { compiled } from "../compiled.js";
import { isLiving } from "../living.js";
import { clusterSecret, DaemonPlace, encryptionKey, type DaemonOptions } from "./daemon-settings.js";
import { redisPidIn, urlIn } from "./said.js";
import { type Got, key, send, type Sent } from "../http/http-server.js";

/** What a test does to a daemon, wherever that runs. */
export class DaemonClient {
  constructor(
    readonly url: string,
    readonly apiKey: string = key,
  ) {}

  /** An operation of the API, as `POST /browser_pools`. */
  call(operation: string, body?: unknown, headers: Record<string, string> = {}): Promise<Got> {
    const [method = "", path = ""] = operation.split(" ");
    const sent: Sent = {
      method,
      headers: { authorization: `Bearer ${this.apiKey}`, ...headers },
      ...(body !== undefined && { body }),
    };
    return send(this.url + path, sent);
  }

  kernel(options: { baseURL?: string; maxRetries?: number; apiKey?: string } = {}): Kernel {
    return new Kernel({ apiKey: this.apiKey, baseURL: this.url, ...options });
  }

  /** The pool as soon as it looks so. */
  poolWhen(pool: string, looks: (pool: PoolState) => boolean, limitMs = 60_000): Promise<PoolState> {
    return until(
      `pool ${pool}`,
      async () => {
        const { body } = await this.call(`GET /browser_pools/${pool}`);
        return looks(body) ? (body as PoolState) : undefined;
      },
      limitMs,
    );
  }

  browsersOf(pool: string): Promise<readonly PoolBrowser[]> {
    return this.call(`GET /browser_pools/${pool}/browsers`).then(({ body }) => body as PoolBrowser[]);
  }

  /** A pool of small headless browsers, filled. */
  async makePool(config: {
    readonly name: string;
    readonly size?: number;
    readonly [field: string]: unknown;
  }): Promise<PoolState> {
    const { status, text } = await this.#createPool({ size: 1, headless: true, ...config });
    if (status !== 201) throw new Error(`pool ${config.name} was not created: ${text}`);
    return await this.poolWhen(config.name, (pool) => pool.available_count === (config.size ?? 1));
  }

  /** On a busy machine Redis may not answer in time right after a start. Under the key one pool is made. */
  async #createPool(config: object): Promise<Got> {
    const headers = { "idempotency-key": randomUUID() };
    for (let repeats = 0; ; repeats += 1) {
      const got = await this.call("POST /browser_pools", config, headers);
      if (got.body?.code !== "store_unavailable" || repeats === 3) return got;
    }
  }
}

export interface PoolState {
  readonly id: string;
  readonly name?: string;
  readonly available_count: number;
  readonly acquired_count: number;
  readonly launching_count: number;
  readonly resetting_count: number;
  readonly stale_count: number;
  readonly waiting_count: number;
  readonly fill?: {
    readonly reason: string;
    readonly fields?: readonly string[];
    readonly last_error?: string;
  };
  readonly browser_pool_config: Readonly<Record<string, unknown>>;
}
export interface PoolBrowser {
  readonly session_id: string;
  readonly state: string;
  readonly node: string;
  readonly leases_served: number;
  readonly stale: boolean;
  readonly generation: number;
  readonly last_error?: string;
}
export interface Lease {
  readonly session_id: string;
  readonly lease_id: string;
  readonly cdp_ws_url: string;
  readonly webdriver_ws_url: string;
}

/** A daemon in the test's own process, on real Redis and real browsers. */
export class Daemon extends DaemonClient {
  constructor(
    url: string,
    readonly place: DaemonPlace,
    private readonly parts: { log: () => string; stop: () => Promise<void> },
  ) {
    super(url, place.apiKey);
  }

  /** All it has logged so far, at its most talkative. */
  get log(): string {
    return this.parts.log();
  }

  /**
   * Stops it and fails where anything of it is left (processes, displays, directories, cgroups, the private
   * Redis) or its log tells a secret.
   */
  async stop(): Promise<void> {
    await this.parts.stop();
    await assertNothingLeft(this.place, this.log);
    this.place.remove();
  }
}

/** The uids its browsers had, as its log tells. */
export const uidsIn = (log: string): ReadonlySet<number> =>
  new Set([...log.matchAll(/"uid":(\d+)/g)].map(([, uid]) => Number(uid)));

/**
 * An API key, also of those that were made, the cluster secret, the encryption key, or the token of a lease;
 * the log is at its most talkative.
 */
const secretIn = (log: string): boolean =>
  [key, clusterSecret, encryptionKey].some((secret) => log.includes(secret)) ||
  /[0-9a-z]{24}\.[\w-]{43}|rmd_[0-9A-Za-z]{40}/.test(log);

export async function assertNothingLeft(place: DaemonPlace, log: string): Promise<void> {
  if (secretIn(log)) throw new Error(`a secret was logged: ${log.split("\n").find(secretIn)}`);
  const left = await takeCensus(place.scratchDirectory, uidsIn(log));
  if (JSON.stringify(left) !== JSON.stringify(nothing))
    throw new Error(`left behind: ${JSON.stringify(left)}`);
  if (existsSync(join(place.dataDir, "redis", "redis.sock")))
    throw new Error("the private Redis is left behind");
}

/**
 * The whole daemon as it was compiled for this run: as sources it would be hundreds of modules to transform
 * for each test file.
 */
async function loadDaemon(): Promise<Config & Roles & Log> {
  return (await import(join(compiled, "bundled/in-process.js"))) as Config & Roles & Log;
}
type Config = typeof import("../../../src/config/config.js");
type Roles = typeof import("../../../src/daemon/roles.js");
type Log = typeof import("../../../src/observe/log.js");

export async function startDaemon(options: DaemonOptions & { clock?: Clock } = {}): Promise<Daemon> {
  const { makeLog, openConfig, startOf } = await loadDaemon();
  const place = new DaemonPlace(options);
  const opened = openConfig({ packageRoot: place.directory, env: place.environment });
  if (opened.kind === "refused") throw new Error(opened.faults.join("; "));
  const { config } = opened;
  const lines: string[] = [];
  const log = makeLog({ level: "debug" }, { write: (line) => void lines.push(line) });
  const stopping = new AbortController();
  const stops = await startOf(config)({
    log,
    clock: options.clock ?? systemClock,
    stopping: stopping.signal,
    hurry: new AbortController().signal,
    fail: (error) => log.error({ error }, "daemon failed"),
  });
  // When a test fails, the daemon's browsers end with this process, but its Redis would not.
  const killLeft = (): void => killRedis(lines.join(""));
  process.once("exit", killLeft);
  return new Daemon(urlIn(lines.join("")) ?? "", place, {
    log: () => lines.join(""),
    async stop() {
      stopping.abort();
      await stops.run();
      process.off("exit", killLeft);
    },
  });
}

function killRedis(log: string): void {
  const pid = redisPidIn(log);
  if (isLiving(pid)) process.kill(pid, "SIGKILL");
}
