import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pause, systemClock } from "../../../src/base/clock.js";
import { privateRedisPathsOf } from "../../../src/store/private/paths.js";
import type { CpuGroup } from "./cpu.js";
import { Line } from "./line.js";
import { redisPidIn, urlIn } from "../../support/daemon/said.js";
import { startHelper } from "./processes.js";

export const apiKey = "a-key-of-the-benches";
const main = join(import.meta.dirname, "../../../src/main.js");
/** `REMUDA_BENCH_NODE=<path>` has daemons run on that Node.js, such as the image's. */
const node = process.env["REMUDA_BENCH_NODE"];
const fillLimitMs = 180_000;
/**
 * How often a filling pool is looked at. Each look costs the daemon and its Redis processor time that
 * launches want too.
 */
const lookEveryMs = 50;

/**
 * The daemon as it is started by `npm start`, role all, in a process of its own, with a data directory that
 * goes with it.
 */
export interface Daemon {
  readonly origin: string;
  readonly pid: number;
  readonly redisPid: number;
  readonly redisSocket: string;
  /** A connection of its own for one client, with the root key unless another is named. */
  open(key?: string): Promise<Line>;
  /** Creates a pool, asking over this line if one is named; resolves when all its browsers are idle. */
  createPool(body: PoolBody, line?: Line): Promise<void>;
  /** Resolves when all browsers of the pool are idle. */
  allIdle(pool: string): Promise<void>;
  deletePool(name: string): Promise<void>;
  stop(): Promise<void>;
}

export interface PoolBody {
  readonly name: string;
  readonly size: number;
  readonly [field: string]: unknown;
}

interface Settings {
  /** This executable is started in place of Chromium. */
  readonly executable?: string;
  /** It runs there, with all it starts. */
  readonly group?: CpuGroup;
  /** Whole sections of its configuration. */
  readonly sections?: Readonly<Record<string, unknown>>;
}

export async function startDaemon({ executable, group, sections }: Settings = {}): Promise<Daemon> {
  const directory = await mkdtemp(join(tmpdir(), "remuda-bench-"));
  const config = join(directory, "config.json");
  const data = join(directory, "data");
  // Room for as many as a bench asks for, no brake on filling, and the benches' own sites open to pages.
  await writeFile(
    config,
    JSON.stringify({
      egress: { private_hosts: ["127.0.0.1"] },
      fill: { default_rate_per_minute: 60_000 },
      log: { format: "json" },
      node: { memory_bytes: 2 ** 40 },
      // A stand-in is a script, and a browser's own root has no programs.
      ...(executable === undefined ? {} : { browser: { readable_paths: ["/bin", "/usr/bin"] } }),
      ...sections,
    }),
  );
  let redisPid = 0;
  const helper = await startHelper({
    file: main,
    ...(node !== undefined && { node }),
    ...(group && { group }),
    environment: {
      REMUDA_CONFIG: config,
      REMUDA_DATA_DIR: data,
      REMUDA_PORT: "0",
      REMUDA_API_KEY: apiKey,
      ...(executable === undefined ? {} : { REMUDA_CHROMIUM: executable }),
    },
    find: (line) => {
      redisPid ||= redisPidIn(line);
      return urlIn(line);
    },
  });
  const asking = await Line.open(helper.said, apiKey);
  return {
    origin: helper.said,
    pid: helper.pid,
    redisPid,
    redisSocket: (await privateRedisPathsOf(data)).socket,
    open: (key = apiKey) => Line.open(helper.said, key),
    createPool: (body, line = asking) => createPool(line, body),
    allIdle: (pool) => allIdle(asking, pool),
    deletePool: async (name) =>
      void (await asking.delete(`/browser_pools/${name}`, JSON.stringify({ force: true }))),
    async stop() {
      asking.close();
      await helper.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function createPool(asking: Line, body: PoolBody): Promise<void> {
  const { status, body: text } = await asking.post(
    "/browser_pools",
    JSON.stringify({ headless: true, ...body }),
  );
  if (status !== 201) throw new Error(`the pool was refused: ${text}`);
  await allIdle(asking, body.name);
}

const allIdle = (asking: Line, pool: string): Promise<void> =>
  until(
    `all browsers of ${pool} idle`,
    async () => {
      const { body } = await asking.get(`/browser_pools/${pool}`);
      const { available_count, browser_pool_config } = JSON.parse(body) as {
        available_count: number;
        browser_pool_config: { size: number };
      };
      return available_count === browser_pool_config.size;
    },
    { everyMs: lookEveryMs },
  );

export async function until(
  what: string,
  isSo: () => Promise<boolean>,
  { everyMs = 10, limitMs = fillLimitMs }: { readonly everyMs?: number; readonly limitMs?: number } = {},
): Promise<void> {
  const started = systemClock.monotonic();
  while (!(await isSo())) {
    if (systemClock.monotonic() - started > limitMs) throw new Error(`${what}: not within ${limitMs} ms`);
    await pause(systemClock, everyMs);
  }
}
