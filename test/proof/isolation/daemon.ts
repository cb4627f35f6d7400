import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, chown, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { contained, pidIn, rootIn } from "./container.js";
import type { Context } from "./contexts.js";
import { asUser, endOf, isRoot, uidOf } from "./programs.js";
import { filesOf, type Target } from "./victims.js";

/** The user and the isolation with which the daemon runs. */
export interface Tier {
  readonly name: string;
  readonly context?: Context;
}

/** A daemon of this build in a process of its own, and what is to be stolen from it. */
export interface Daemon {
  readonly url: string;
  readonly key: string;
  readonly port: number;
  readonly pid: number;
  readonly uid: number;
  readonly directory: string;
  readonly scratchDirectory: string;
  readonly targets: readonly Target[];
  readonly sockets: readonly string[];
  /** The secret words in its environment. */
  readonly words: string;
  /** An operation of the API; throws where it is refused. */
  call(operation: string, body?: object | FormData): Promise<Record<string, unknown>>;
  /** The bytes that an operation gives. */
  download(path: string): Promise<Buffer>;
  /** Everything it has said. */
  log(): string;
  /** Ends it as nobody should, and resolves when it is gone. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

const main = join(import.meta.dirname, "../../../src/main.js");
const startLimitMs = 60_000;
const stopLimitMs = 60_000;

/** Sections of the configuration file, by their names. */
export type Settings = Readonly<Record<string, object>>;

/** The proof's own site is on the machine's loopback, so that is open to pages. */
const proofSettings = {
  egress: { private_hosts: ["127.0.0.0/8"] },
  fill: { default_rate_per_minute: 6000 },
  node: { memory_bytes: 2 ** 40, storage_watch_period_seconds: 1 },
  browser: { max_scratch_bytes: 2 ** 28 },
};

/**
 * `over`: put over the settings, section by section. `kept`: the directory of a daemon that was killed, to
 * start there again.
 */
export function startDaemon(tier: Tier, over: Settings = {}, kept?: string): Promise<Daemon> {
  const sections = new Set([...Object.keys(proofSettings), ...Object.keys(over)]);
  const all: Settings = { ...proofSettings };
  return startAs(
    tier,
    Object.fromEntries([...sections].map((name) => [name, { ...all[name], ...over[name] }])),
    { kept },
  );
}

interface Place {
  readonly kept?: string | undefined;
  /** In a container as its overlay's pods are, directories of browsers in its own /dev/shm. */
  readonly isPod?: boolean;
}

/** With these settings alone, but for what tells the proof where the daemon is. */
export async function startAs(
  tier: Tier,
  settings: Settings,
  { kept, isPod = false }: Place = {},
): Promise<Daemon> {
  const uid = (tier.context && rootIn(tier.context)) ?? uidOf(tier.name);
  const words = `words-${randomBytes(8).toString("hex")}-daemon`;
  const directory = kept ?? (await mkdtemp(join(tmpdir(), "remuda-prove-")));
  await chmod(directory, 0o755);
  if (isRoot) await chown(directory, uid, uid);
  // Cgroups are named for it, so that it has a name of its own.
  const scratchDirectory = join(isPod ? "/dev/shm" : directory, `s-${directory.slice(-6)}`);
  const config = join(directory, "config.json");
  const { uid_base } = tier.context?.pod?.settings.node ?? {};
  await writeFile(
    config,
    JSON.stringify({
      ...settings,
      log: { format: "json" },
      node: {
        scratch_dir: scratchDirectory,
        // A busy machine starts browsers late.
        launch_limit_seconds: 100,
        ...(uid_base !== undefined && { uid_base }),
        ...settings["node"],
      },
    }),
  );
  const environment = {
    PATH: process.env["PATH"] ?? "",
    HOME: directory,
    REMUDA_CONFIG: config,
    REMUDA_DATA_DIR: join(directory, "data"),
    REMUDA_PORT: "0",
    PROVE_WORDS: words,
  };
  const started = start(await commandOf(tier, { uid, directory, isPod, environment }), environment);
  const close = async (): Promise<void> => {
    started.child.kill("SIGTERM");
    await within(
      systemClock,
      { what: "stopping the daemon", limitMs: stopLimitMs },
      endOf(started.child),
    ).catch(() => started.child.kill("SIGKILL"));
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  };
  try {
    const url = await within(
      systemClock,
      { what: "starting the daemon", limitMs: startLimitMs },
      started.url,
    );
    const pid = tier.context ? await pidIn(directory) : (started.child.pid ?? 0);
    const key = (await readFile(join(directory, "data/api-key"), "utf8")).trim();
    return {
      url,
      key,
      pid,
      uid,
      directory,
      scratchDirectory: isPod ? `/proc/${pid}/root${scratchDirectory}` : scratchDirectory,
      close,
      words,
      log: started.said,
      port: Number(new URL(url).port),
      ...(await belongings(directory)),
      call: (operation, body) => call({ url, key }, operation, body),
      download: async (path) => Buffer.from(await (await ask({ url, key }, `GET ${path}`)).arrayBuffer()),
      async kill() {
        process.kill(pid, "SIGKILL");
        await endOf(started.child);
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function commandOf(
  { context }: Tier,
  {
    uid,
    directory,
    isPod,
    environment,
  }: Pick<Daemon, "uid" | "directory"> & { isPod: boolean; environment: Record<string, string> },
): Promise<string[]> {
  const command = [process.execPath, "--enable-source-maps", main];
  return context
    ? await contained({ context, uid, directory, isPod, command, environment })
    : [...asUser(uid), ...command];
}

function start(
  [program = "", ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
): { child: ChildProcess; url: Promise<string>; said: () => string } {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const url = new Promise<string>((resolve, reject) => {
    child
      .once("error", reject)
      .once("exit", (code) => reject(new Error(`the daemon ended with ${code}: ${said.slice(-1500)}`)));
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        const found = /"url":"(http[^"]+)"[^\n]*"msg":"listening"/.exec(said)?.[1];
        if (found !== undefined) resolve(found);
      });
    }
  });
  url.catch(() => {});
  return { child, url, said: () => said };
}

/** The daemon's own files and sockets that hold what it must keep. */
async function belongings(
  directory: string,
): Promise<{ targets: readonly Target[]; sockets: readonly string[] }> {
  const data = join(directory, "data");
  const log = (await readdir(join(data, "redis/appendonlydir")).catch(() => [])).find((name) =>
    name.includes("incr"),
  );
  const targets = await filesOf({
    "the cluster secret": join(data, "cluster-secret"),
    "the encryption key": join(data, "encryption-key"),
    "the API key": join(data, "api-key"),
    "the configuration": join(directory, "config.json"),
  });
  const redis =
    log === undefined
      ? []
      : [{ what: "Redis's log", path: join(data, "redis/appendonlydir", log), words: "remuda:schema" }];
  return { targets: [...targets, ...redis], sockets: [join(data, "redis/redis.sock")] };
}

async function call(
  of: { url: string; key: string },
  operation: string,
  body?: object | FormData,
): Promise<Record<string, unknown>> {
  const text = await (await ask(of, operation, body)).text();
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}

async function ask(
  { url, key }: { url: string; key: string },
  operation: string,
  body?: object | FormData,
): Promise<Response> {
  const [method = "GET", path = "/"] = operation.split(" ");
  const isForm = body instanceof FormData;
  const headers = {
    authorization: `Bearer ${key}`,
    ...(body && !isForm && { "content-type": "application/json" }),
  };
  const reply = await fetch(url + path, {
    method,
    headers,
    ...(body && { body: isForm ? body : JSON.stringify(body) }),
  });
  if (!reply.ok) throw new Error(`${operation}: ${reply.status} ${(await reply.text()).slice(0, 300)}`);
  return reply;
}
