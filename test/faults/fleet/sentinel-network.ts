import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { until } from "../../support/browser/chromium-until.js";
import { freePort } from "../../support/free-port.js";
import { newDirectory } from "../../support/killed-runs.js";
import { redisServer } from "../../support/store/redis-server.js";
import type { FleetNetwork, Machine } from "./network.js";
import { openRestartableRedis, type PlacedRedis } from "./restartable-redis.js";
import { canHaveNamespaces, type CabledMachine, openSwitch, type Switch } from "./switch.js";

/** Three sentinels, each on a machine of its own; the first two have a Redis beside them. */
export interface SentinelNetwork extends FleetNetwork {
  /** The first primary, of which `redis` is the other name. */
  readonly primary: PlacedRedis;
  readonly replica: PlacedRedis;
  /** The machine of the first primary and of a sentinel is cut off from all others; or stands still. */
  cutPrimary(): Promise<void>;
  restorePrimary(): Promise<void>;
  /** As a machine of the fleet moves, where it has a cable. */
  movePrimary(side: "this" | "other"): void;
  /** The replica has all that the primary has. */
  caughtUp(): Promise<void>;
  /** Resolves when a Redis follows the other. */
  follows(redis: PlacedRedis): Promise<void>;
}

/** The default is 30 s; less than this, and a busy machine is taken for a dead one. */
export const downAfterMs = 2000;

interface Place {
  readonly machine?: CabledMachine;
  readonly through: readonly string[];
  readonly host: string;
  readonly port: number;
  readonly sentinelPort: number;
}

async function placeOn(net: Switch | undefined): Promise<Place> {
  if (!net) {
    const [port, sentinelPort] = [await freePort(), await freePort()];
    return { through: [], host: "127.0.0.1", port, sentinelPort };
  }
  const machine = await net.join();
  return { machine, through: machine.through, host: machine.address, port: 6379, sentinelPort: 26_379 };
}

/** Sentinels write into their own configuration what they learn. */
function startSentinel(folder: string, { through, host, sentinelPort }: Place, primary: Place): ChildProcess {
  const file = join(folder, `sentinel-${sentinelPort}-${host}.conf`);
  const lines = [
    `port ${sentinelPort}`,
    `bind ${host}`,
    "protected-mode no",
    `dir ${folder}`,
    `sentinel monitor herd ${primary.host} ${primary.port} 2`,
    `sentinel down-after-milliseconds herd ${downAfterMs}`,
    "sentinel failover-timeout herd 6000",
  ];
  writeFileSync(file, lines.join("\n"));
  const [program = "", ...args] = [...through, ...redisServer(file, "--sentinel")];
  return spawn(program, args, { stdio: "ignore" });
}

/** They know the replica and each other. */
async function agree({ host, sentinelPort }: Place): Promise<void> {
  const asked = new Redis(sentinelPort, host, { retryStrategy: () => 20, maxRetriesPerRequest: null });
  asked.on("error", () => {});
  await until("sentinels that know each other", async () => {
    const hasQuorum = await asked.call("SENTINEL", "CKQUORUM", "herd").then(
      () => true,
      () => false,
    );
    const replicas = (await asked.call("SENTINEL", "REPLICAS", "herd")) as unknown[];
    const others = (await asked.call("SENTINEL", "SENTINELS", "herd")) as unknown[];
    return hasQuorum && replicas.length === 1 && others.length === 2;
  });
  asked.disconnect();
}

async function asking<Value>(redis: PlacedRedis, ask: (client: Redis) => Promise<Value>): Promise<Value> {
  const client = redis.client();
  client.on("error", () => {});
  try {
    return await ask(client);
  } finally {
    client.disconnect();
  }
}

const follows = (redis: PlacedRedis): Promise<void> =>
  asking(redis, async (client) => {
    const isReplica = async (): Promise<boolean> =>
      /role:slave[^]*master_link_status:up/.test(await client.info("replication"));
    await until("a replica", isReplica, 60_000);
  });

/** Where namespaces are not granted all are on loopback, and what is cut off stands still (SIGSTOP). */
export async function openSentinelNetwork(): Promise<SentinelNetwork> {
  const net = canHaveNamespaces() ? await openSwitch() : undefined;
  const [first, second, third] = [await placeOn(net), await placeOn(net), await placeOn(net)] as const;
  const folder = newDirectory("sentinels");
  const primary = await openRestartableRedis(first);
  const more = ["--replicaof", first.host, String(first.port)];
  const replica = await openRestartableRedis({ ...second, more });
  await follows(replica);
  const sentinels = [first, second, third].map((place) => startSentinel(folder, place, first));
  await agree(third);
  const hosts = [first, second, third].map(({ host, sentinelPort }) => `${host}:${sentinelPort}`);
  const redisUrl = `redis+sentinel://${hosts.join(",")}/herd`;
  const signalFirst = (signal: NodeJS.Signals): void => {
    primary.signal(signal);
    sentinels[0]?.kill(signal);
  };
  return {
    kind: net ? "network namespaces" : "processes on loopback",
    redis: primary,
    primary,
    replica,
    follows,
    cutPrimary: async () => (first.machine ? await first.machine.cut() : signalFirst("SIGSTOP")),
    restorePrimary: async () => (first.machine ? await first.machine.restore() : signalFirst("SIGCONT")),
    movePrimary: (side) => first.machine?.move(side),
    caughtUp: () =>
      asking(primary, async (client) => {
        // WAIT is for what its own connection has written last.
        await client.set("caught-up", "1");
        await until("the replica caught up", async () => (await client.wait(1, 1000)) === 1);
      }),
    join: async () => (net ? await joinCabled(net, redisUrl) : onLoopback(redisUrl)),
    async close() {
      for (const child of sentinels) {
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      }
      await replica.close();
      await primary.close();
      await net?.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function joinCabled(net: Switch, redisUrl: string): Promise<Machine> {
  const { address, ...machine } = await net.join();
  return { ...machine, redisUrl, settings: { server: { host: address }, node: {} } };
}

function onLoopback(redisUrl: string): Machine {
  const refuse = async (): Promise<never> => {
    throw new Error("a process on loopback has no cable");
  };
  const settings = { server: {}, node: {} };
  return { through: [], redisUrl, settings, cut: refuse, restore: refuse, delay: refuse };
}
