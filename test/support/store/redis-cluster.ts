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
import { asArguments, identities, type Speech, tlsIn } from "./redis-tls.js";

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

/** A cluster in which one master has a replica; what is done, is done to whichever of both serves. */
export interface ReplicatedCluster extends RedisCluster {
  /** What that master acknowledges from now on will be lost. */
  detach(): Promise<void>;
  /** The replica takes its place, asked to, and it becomes the replica: it answers MOVED from then on. */
  handOver(): Promise<void>;
  /** It ends by SIGKILL. Resolves when the replica has taken its place. */
  failOver(): Promise<void>;
}

interface Member {
  readonly port: number;
  readonly bus: number;
  readonly speech: Speech;
  readonly child: ChildProcess;
  readonly proxy: RedisProxy;
  readonly client: Redis;
}

const slots = 16_384;
const members = 3;

/** Where it listens, and what it tells others of that: they come by its proxy. */
const placeLines = (port: number, front: number, speech: Speech): readonly string[] =>
  speech === "clear"
    ? [`port ${port}`, `cluster-announce-port ${front}`]
    : ["port 0", `tls-port ${port}`, "tls-cluster yes", `cluster-announce-tls-port ${front}`];

interface ClientOptions {
  readonly retryStrategy?: () => number;
  readonly maxRetriesPerRequest?: number;
}

const clientOf = (port: number, speech: Speech, more: ClientOptions = {}): Redis =>
  new Redis(port, { ...(speech !== "clear" && { tls: identities[speech] }), ...more });

interface MemberOptions {
  readonly more: readonly string[];
  readonly speech: Speech;
}

async function startMember(folder: string, { more, speech }: MemberOptions): Promise<Member> {
  const [port, bus, front] = [await freePort(), await freePort(), await freePort()];
  const [program = "", ...words] = redisServer(
    ...asArguments([...placeLines(port, front, speech), ...(await tlsIn(folder, speech))]),
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
    "--cluster-announce-bus-port",
    `${bus}`,
    ...more,
  );
  const child = spawn(program, words, { stdio: "ignore" });
  const client = clientOf(port, speech, { retryStrategy: () => 20, maxRetriesPerRequest: 1500 });
  client.on("error", () => {});
  await client.ping();
  return { port, bus, speech, child, client, proxy: await openRedisProxy(port, front) };
}

/** `more`: further settings of each, as `--user …`. */
export async function startRedisCluster(
  more: readonly string[] = [],
  speech: Speech = "clear",
): Promise<RedisCluster> {
  const folder = await mkdtemp(join(tmpdir(), "remuda-cluster-"));
  const all = await startMasters(folder, { more, speech });
  for (const { client } of all) client.disconnect();
  return clusterOf(all, folder);
}

/** Redis 7 gives up a failover that it was asked for after 5 s. */
const givenUpMs = 6000;

/** A replica takes over `nodeTimeoutMs` after its master has fallen silent, and a little more. */
export async function startReplicatedCluster(
  master: number,
  speech: Speech = "clear",
  nodeTimeoutMs = 2000,
): Promise<ReplicatedCluster> {
  const folder = await mkdtemp(join(tmpdir(), "remuda-cluster-"));
  // One that has lost its master for long is to take over as well.
  const more = ["--cluster-node-timeout", `${nodeTimeoutMs}`, "--cluster-replica-validity-factor", "0"];
  const all = await startMasters(folder, { more, speech });
  const [first, failing] = [all[0], all[master]];
  if (!first || !failing) throw new Error(`there is no master ${master}`);
  const replica = await startMember(folder, { more, speech });
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
  let [serving, following] = [failing, replica];
  return {
    ...cluster,
    async handOver() {
      let askedAt = -Infinity;
      await until("the other in its place", async () => {
        if ((await roleOf(following)) === "master") return true;
        if (performance.now() - askedAt < givenUpMs) return false;
        if (await isDone(following.client.call("CLUSTER", "FAILOVER"))) askedAt = performance.now();
        return false;
      });
      await until("it as a replica", async () =>
        (await serving.client.info("replication")).includes("master_link_status:up"),
      );
      [serving, following] = [following, serving];
    },
    async detach() {
      const written = await offsetOf(serving.client, "master_repl_offset");
      await until(
        "the replica caught up",
        async () => (await offsetOf(following.client, "slave_repl_offset")) >= written,
      );
      // A master that asks for no password refuses who gives one.
      await following.client.config("SET", "masterauth", "not-asked-for");
      await serving.client.call("CLIENT", "KILL", "TYPE", "replica");
      await until("the replica cut off", async () =>
        (await following.client.info("replication")).includes("master_link_status:down"),
      );
    },
    async failOver() {
      serving.client.disconnect();
      serving.child.kill("SIGKILL");
      await until("the replica in its place", async () => {
        const [info, role] = await Promise.all([following.client.call("CLUSTER", "INFO"), roleOf(following)]);
        return String(info).includes("cluster_state:ok") && role === "master";
      });
    },
    async stop() {
      for (const { client } of [failing, replica]) client.disconnect();
      await cluster.stop();
    },
  };
}

const roleOf = async ({ client }: Member): Promise<string | undefined> =>
  /^role:(\w+)/m.exec(await client.info("replication"))?.[1];
const offsetOf = async (redis: Redis, name: string): Promise<number> =>
  Number(new RegExp(`${name}:(\\d+)`).exec(await redis.info("replication"))?.[1]);

async function startMasters(folder: string, options: MemberOptions): Promise<readonly Member[]> {
  const all = await Promise.all(Array.from({ length: members }, () => startMember(folder, options)));
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
    url: (first?.proxy.url ?? "").replace("redis:", first?.speech === "clear" ? "redis:" : "rediss:"),
    proxies: all.map(({ proxy }) => proxy),
    client: (master) => clientOf(all[master]?.port ?? 0, all[master]?.speech ?? "clear"),
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
