import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { until } from "../browser/chromium-until.js";
import { freePort } from "../free-port.js";
import { openRedisProxy, type RedisProxy } from "./redis-proxy.js";
import { redisServer } from "./redis-server.js";

/** A Redis Cluster of three masters, each behind a proxy that it gives out as its own address. */
export interface RedisCluster {
  readonly url: string;
  readonly proxies: readonly RedisProxy[];
  /** A client of one master alone, to be disconnected by who asked for it. */
  client(master: number): Redis;
  /** Sends one master a signal such as SIGSTOP, under which it answers nothing, and SIGCONT. */
  signal(master: number, signal: NodeJS.Signals): void;
  stop(): Promise<void>;
}

/** A cluster in which one master has a replica. */
export interface ReplicatedCluster extends RedisCluster {
  /** What that master acknowledges from now on will be lost. */
  detach(): Promise<void>;
  /** It ends by SIGKILL. Resolves when the replica has taken its place. */
  failOver(): Promise<void>;
}

interface Member {
  readonly port: number;
  readonly bus: number;
  readonly child: ChildProcess;
  readonly proxy: RedisProxy;
  readonly client: Redis;
}

const slots = 16_384;
const members = 3;

async function startMember(folder: string, more: readonly string[]): Promise<Member> {
  const [port, bus, front] = [await freePort(), await freePort(), await freePort()];
  const [program = "", ...words] = redisServer(
    "--port",
    `${port}`,
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--dir",
    folder,
    "--cluster-enabled",
    "yes",
    "--cluster-port",
    `${bus}`,
    "--cluster-config-file",
    `${port}.conf`,
    "--cluster-announce-ip",
    "127.0.0.1",
    "--cluster-announce-port",
    `${front}`,
    "--cluster-announce-bus-port",
    `${bus}`,
    ...more,
  );
  const child = spawn(program, words, { stdio: "ignore" });
  const client = new Redis(port, { retryStrategy: () => 20, maxRetriesPerRequest: 1500 });
  client.on("error", () => {});
  await client.ping();
  return { port, bus, child, client, proxy: await openRedisProxy(port, front) };
}

/** `more`: further settings of each, as `--user …`. */
export async function startRedisCluster(more: readonly string[] = []): Promise<RedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), "remuda-cluster-"));
  const all = await startMasters(folder, more);
  for (const { client } of all) client.disconnect();
  return clusterOf(all, folder);
}

/** A replica takes over that long after its master has fallen silent, and a little more. */
const nodeTimeoutMs = 2000;

export async function startReplicatedCluster(master: number): Promise<ReplicatedCluster> {
  const folder = await mkdtemp(join(tmpdir(), "remuda-cluster-"));
  // One that has lost its master for long is to take over as well.
  const more = ["--cluster-node-timeout", `${nodeTimeoutMs}`, "--cluster-replica-validity-factor", "0"];
  const all = await startMasters(folder, more);
  const [first, failing] = [all[0], all[master]];
  if (!first || !failing) throw new Error(`there is no master ${master}`);
  const replica = await startMember(folder, more);
  await replica.client.call("CLUSTER", "MEET", "127.0.0.1", `${first.port}`, `${first.bus}`);
  const id = String(await failing.client.call("CLUSTER", "MYID"));
  const isDone = (asked: Promise<unknown>): Promise<boolean> =>
    asked.then(
      () => true,
      () => false,
    );
  await until("a replica", () => isDone(replica.client.call("CLUSTER", "REPLICATE", id)));
  await until("replication", async () =>
    (await replica.client.info("replication")).includes("master_link_status:up"),
  );
  for (const { client } of all) if (client !== failing.client) client.disconnect();
  const cluster = clusterOf([...all, replica], folder);
  return {
    ...cluster,
    async detach() {
      const written = await offsetOf(failing.client, "master_repl_offset");
      await until(
        "the replica caught up",
        async () => (await offsetOf(replica.client, "slave_repl_offset")) >= written,
      );
      // A master that asks for no password refuses who gives one.
      await replica.client.config("SET", "masterauth", "not-asked-for");
      await failing.client.call("CLIENT", "KILL", "TYPE", "replica");
      await until("the replica cut off", async () =>
        (await replica.client.info("replication")).includes("master_link_status:down"),
      );
    },
    async failOver() {
      failing.client.disconnect();
      failing.child.kill("SIGKILL");
      await until("the replica in its place", async () => {
        const [info, role] = await Promise.all([
          replica.client.call("CLUSTER", "INFO"),
          replica.client.info("replication"),
        ]);
        return String(info).includes("cluster_state:ok") && role.includes("role:master");
      });
    },
    async stop() {
      for (const { client } of [failing, replica]) client.disconnect();
      await cluster.stop();
    },
  };
}

const offsetOf = async (redis: Redis, name: string): Promise<number> =>
  Number(new RegExp(`${name}:(\\d+)`).exec(await redis.info("replication"))?.[1]);

async function startMasters(folder: string, more: readonly string[]): Promise<readonly Member[]> {
  const all = await Promise.all(Array.from({ length: members }, () => startMember(folder, more)));
  const share = Math.ceil(slots / members);
  for (const [at, { client, port, bus }] of all.entries()) {
    await client.call(
      "CLUSTER",
      "ADDSLOTSRANGE",
      `${at * share}`,
      `${Math.min((at + 1) * share, slots) - 1}`,
    );
    const others = all.filter((other) => other.port !== port);
    await Promise.all(
      others.map((other) => other.client.call("CLUSTER", "MEET", "127.0.0.1", `${port}`, `${bus}`)),
    );
  }
  await until(
    "a cluster",
    async () => {
      const infos = await Promise.all(
        all.map(async ({ client }) => String(await client.call("CLUSTER", "INFO"))),
      );
      return infos.every(
        (info) => info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${members}`),
      );
    },
    60_000,
  );
  return all;
}

function clusterOf(all: readonly Member[], folder: string): RedisCluster {
  const [first] = all;
  return {
    url: first?.proxy.url ?? "",
    proxies: all.map(({ proxy }) => proxy),
    client: (master) => new Redis(all[master]?.port ?? 0),
    signal: (master, signal) => void all[master]?.child.kill(signal),
    async stop() {
      for (const { proxy, child } of all) {
        await proxy.close();
        child.kill("SIGKILL");
      }
      await Promise.all(
        all.map(({ child }) =>
          child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined,
        ),
      );
      await rm(folder, { recursive: true, force: true });
    },
  };
}
