import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { chmod, chown, mkdtemp, readFile, rm, writeFile, readdir, readlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kind } from "../arguments.js";
import { startHelper } from "../../bench/support/processes.js";
import { workspaceOf } from "../../support/browser/browser-processes.js";
import { urlIn } from "../../support/daemon/said.js";
import { startRedis } from "../../support/store/redis.js";
import { zipBytes } from "../../support/archive/zip-bytes.js";
import {
  allowedZone,
  type ClientAccess,
  type TestNetwork,
  type BrowserSource,
  type Reach,
} from "./browser-source.js";
import { writeFiles } from "./files.js";
import { isRoot, uidOf } from "../isolation/programs.js";

export type Tier = "proxy" | "namespace";
/** The user as whom the daemon runs; an ordinary one makes network namespaces in user namespaces only. */
export type User = "root" | "ordinary";

/** What a daemon of this build is started as. */
export interface Start {
  readonly tier: Tier;
  readonly user: User;
  /** Takes what it says. */
  readonly logFile?: string;
}

/** A daemon that is asked for browsers. */
export interface Daemon {
  readonly url: string;
  readonly key: string;
  /** What it was told to use; a browser of another is no proof of it. */
  readonly tier?: Tier;
  /** Where its browsers have their directories, if that is on this machine. */
  readonly scratchDirectory?: string;
  ownPorts(): Promise<readonly number[]>;
  close(): Promise<void>;
}

const main = join(import.meta.dirname, "../../../src/main.js");
const key = "rk_key_of_the_proof_of_egress";

/** Daemons that start on this machine meanwhile end what runs under uids of theirs. */
const uidBase = 1_000_000 + 1000 * (process.pid % 100_000);

/**
 * The daemon of this build, in a process of its own, where browsers might look for it: on all addresses, its
 * Redis on a port.
 */
export async function startDaemon(
  { tier, user, logFile }: Start,
  { site, world }: TestNetwork,
): Promise<Daemon> {
  const uid = uidOf(user);
  const directory = await makeOwnedBy(uid, join(tmpdir(), "remuda-prove-"));
  const redisPort = 10_000 + (process.pid % 20_000);
  const redis = await startRedis({ port: redisPort });
  const scratchDirectory = await makeOwnedBy(uid, `/dev/shm/remuda-prove-${process.pid}-`);
  const config = join(directory, "config.json");
  await writeFile(
    config,
    JSON.stringify({
      egress: {
        isolation: tier,
        private_hosts_ceiling: [
          "127.0.0.0/8",
          "::1/128",
          site.host,
          ...(world.node === undefined ? [] : [world.node]),
        ],
      },
      node: {
        scratch_dir: scratchDirectory,
        memory_bytes: 2 ** 40,
        uid_base: uidBase,
        launch_limit_seconds: 100,
      },
      log: { format: "json" },
      fill: { default_rate_per_minute: 6000 },
    }),
  );
  const stopAll = async (helper?: { stop(): Promise<void> }): Promise<void> => {
    await helper?.stop();
    await redis.stop();
    for (const path of [directory, scratchDirectory]) await rm(path, { recursive: true, force: true });
  };
  try {
    const helper = await startHelper({
      file: main,
      ...(uid !== process.getuid?.() && { uid }),
      environment: {
        REMUDA_CONFIG: config,
        HOME: directory,
        REMUDA_DATA_DIR: join(directory, "data"),
        REMUDA_PORT: "0",
        REMUDA_HOST: "0.0.0.0",
        REMUDA_API_KEY: key,
        REDIS_URL: `redis://127.0.0.1:${redisPort}`,
      },
      find(line) {
        if (logFile !== undefined) appendFileSync(logFile, `${line}\n`);
        return urlIn(line);
      },
    });
    return {
      url: helper.said,
      key,
      tier,
      scratchDirectory,
      // Other programs of this machine listen too, and come and go.
      ownPorts: async () => [redisPort, ...(await listeningPorts(helper.pid))],
      close: () => stopAll(helper),
    };
  } catch (error) {
    await stopAll();
    throw error;
  }
}

async function makeOwnedBy(uid: number, prefix: string): Promise<string> {
  const path = await mkdtemp(prefix);
  await chmod(path, 0o755);
  if (isRoot) await chown(path, uid, uid);
  return path;
}

const listening = "0A";

/** TCP ports of this network on which somebody listens. */
async function listeningPorts(pid: number): Promise<number[]> {
  const tables = await Promise.all(
    ["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8").catch(() => "")),
  );
  const open = await openFiles(pid);
  const rows = tables.flatMap((table) =>
    table
      .split("\n")
      .slice(1)
      .map((row) => row.trim().split(/\s+/)),
  );
  const ports = rows
    .filter(([, , , state, , , , , , inode]) => state === listening && open.has(`socket:[${inode}]`))
    .map(([, local = ""]) => parseInt(local.split(":").at(-1) ?? "", 16));
  if (ports.length === 0) throw new Error("no port of the daemon was found");
  return [...new Set(ports)];
}

async function openFiles(pid: number): Promise<Set<string>> {
  const directory = `/proc/${pid}/fd`;
  const found = await Promise.all(
    // One that was closed meanwhile leads nowhere.
    (await readdir(directory)).map((fd) => readlink(join(directory, fd)).catch(() => "")),
  );
  return new Set(found);
}

/** What browsers may reach whose rules are a list. */
const allowedIn = ({ site, secure }: TestNetwork): readonly string[] => [
  ...[site, secure].map(({ host, port }) => `${host}:${port}`),
  `*.${allowedZone}`,
];

const networks = (network: TestNetwork): Readonly<Record<Reach, object>> => {
  const allowed = allowedIn(network);
  const listed = { allowed_hosts: allowed, private_hosts: allowed.filter((host) => !host.startsWith("*.")) };
  return {
    listed,
    proxied: listed,
    opened: {
      private_hosts: [
        "127.0.0.0/8",
        "::1/128",
        ...(network.world.node === undefined ? [] : [network.world.node]),
      ],
    },
  };
};

/** Browsers of a daemon, under rules of the strictest and of the widest kind. */
export function openGuarded(daemon: Daemon, kind: Kind, network: TestNetwork): BrowserSource {
  const call = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const headers = {
      authorization: `Bearer ${daemon.key}`,
      ...(body && { "content-type": "application/json" }),
    };
    const reply = await fetch(daemon.url + path, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text.slice(0, 300)}`);
    return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
  };
  const open = async (reach: Reach): Promise<ClientAccess> => {
    const session = await call("POST", "/browsers", {
      ...kind,
      timeout_seconds: 600,
      memory: kind.headless ? "4GiB" : "8GiB",
      network: networks(network)[reach],
    });
    const id = String(session["session_id"]);
    const tier = isolationOf(session);
    if (daemon.tier !== undefined && tier !== daemon.tier)
      throw new Error(`the browser's network.isolation is ${tier}, not ${daemon.tier}`);
    const { scratchDirectory } = daemon;
    const upload: ClientAccess["upload"] = (files) =>
      writeFiles(join(workspaceOf(scratchDirectory ?? "", id), "uploads"), files);
    const extend: ClientAccess["extend"] = async (files) => {
      const form = new FormData();
      form.append("extensions[0][name]", `e${randomBytes(6).toString("hex")}`);
      const zip = zipBytes(Object.entries(files).map(([name, content]) => ({ name, content })));
      form.append("extensions[0][zip_file]", new Blob([new Uint8Array(zip)]), "extension.zip");
      const reply = await fetch(`${daemon.url}/browsers/${id}/extensions`, {
        method: "POST",
        headers: { authorization: `Bearer ${daemon.key}` },
        body: form,
      });
      // What is refused is refused for what the extension asks for.
      if (reply.status !== 201 && reply.status !== 400)
        throw new Error(
          `POST /browsers/${id}/extensions: ${reply.status} ${(await reply.text()).slice(0, 300)}`,
        );
      return reply.status === 201;
    };
    const permit: ClientAccess["permit"] = async (hosts) => {
      const allowed_hosts = [...allowedIn(network), ...hosts];
      await call("PATCH", `/browsers/${id}`, { network: { allowed_hosts } });
    };
    return {
      cdpUrl: String(session["cdp_ws_url"]),
      bidiUrl: String(session["webdriver_ws_url"]),
      permit,
      ...(kind.engine === "chromium" && { extend }),
      ...(scratchDirectory !== undefined && { upload }),
      // The attempt may have ended it.
      close: () =>
        call("DELETE", `/browsers/${id}`).then(
          () => {},
          () => {},
        ),
    };
  };
  return {
    engine: kind.engine,
    hasUploads: daemon.scratchDirectory !== undefined,
    hasOwnPorts: true,
    hasBidi: true,
    open,
    ownPorts: () => daemon.ownPorts(),
    close: async () => {},
  };
}

function isolationOf({ network }: Record<string, unknown>): string | undefined {
  const isolation = (network as { isolation?: unknown } | undefined)?.isolation;
  return isolation === undefined ? undefined : String(isolation);
}
