import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { until } from "../browser/chromium-until.js";
import { freePort } from "../free-port.js";
import { redisServer } from "./redis-server.js";
import { asArguments, identities, type Speech, tlsIn } from "./redis-tls.js";

/** One Redis of a pair, on a port of loopback. */
export interface RedisOfPair {
  readonly port: number;
  readonly url: string;
  client(): Redis;
  signal(signal: NodeJS.Signals): void;
}

/** A primary and its replica, with as many sentinels as are asked for. */
export interface RedisPair {
  readonly primary: RedisOfPair;
  readonly replica: RedisOfPair;
  /** What `REDIS_URL` may be where there are sentinels. */
  readonly sentinelUrl: string;
  /** The replica has all that the primary has. */
  caughtUp(): Promise<void>;
  /** The replica becomes the primary, and the primary its replica; nobody but they is told. */
  swap(): Promise<void>;
  /** From now on the sentinels take a primary for down that says nothing for a second. */
  failOverSoon(): Promise<void>;
  /** Whom the sentinels take for the primary. */
  primaryPort(): Promise<number>;
  stop(): Promise<void>;
}

const silent = { stdio: "ignore" } as const;
/** On a busy machine a primary may say nothing for seconds, and is to stay the primary. */
const downAfterMs = 60_000;
const downSoonAfterMs = 1000;

interface PairOptions {
  readonly sentinels?: number;
  readonly speech?: Speech;
  /** Further users of the servers and of the sentinels, in the words of `ACL SETUSER`. */
  readonly users?: { readonly servers: string; readonly sentinels: string };
}

export async function startRedisPair({
  sentinels = 0,
  speech = "clear",
  users,
}: PairOptions = {}): Promise<RedisPair> {
  const isSecure = speech !== "clear";
  const folder = await mkdtemp(join(tmpdir(), "remuda-pair-"));
  const secured = await tlsIn(folder, speech);
  const portLines = (port: number): readonly string[] =>
    isSecure ? ["port 0", `tls-port ${port}`, ...secured] : [`port ${port}`];
  const children: ChildProcess[] = [];
  const clients = new Set<Redis>();
  const run = (...args: string[]): ChildProcess => {
    const [program = "", ...words] = redisServer(...args);
    const child = spawn(program, words, { ...silent, cwd: folder });
    children.push(child);
    return child;
  };
  const clientAt = (port: number): Redis => {
    const client = new Redis(port, {
      retryStrategy: () => 20,
      maxRetriesPerRequest: 1500,
      ...(speech !== "clear" && { tls: identities[speech] }),
    });
    client.on("error", () => {});
    clients.add(client);
    return client;
  };
  const start = async (...more: string[]): Promise<RedisOfPair> => {
    const port = await freePort();
    const child = run(
      ...asArguments(portLines(port)),
      "--bind",
      "127.0.0.1",
      "--dbfilename",
      `${port}.rdb`,
      "--save",
      "",
      "--repl-diskless-sync-delay",
      "0",
      ...asArguments(users ? [`user ${users.servers}`] : []),
      ...more,
    );
    await clientAt(port).ping();
    return {
      port,
      url: `redis${isSecure ? "s" : ""}://127.0.0.1:${port}`,
      client: () => clientAt(port),
      signal: (signal) => void child.kill(signal),
    };
  };
  const primary = await start();
  const replica = await start("--replicaof", "127.0.0.1", `${primary.port}`);
  const ports = await Promise.all(
    Array.from({ length: sentinels }, async (_, at) => {
      const [port, file] = [await freePort(), join(folder, `sentinel-${at}.conf`)];
      await writeFile(
        file,
        [
          ...portLines(port),
          "bind 127.0.0.1",
          `sentinel monitor herd 127.0.0.1 ${primary.port} ${Math.floor(sentinels / 2) + 1}`,
          `sentinel down-after-milliseconds herd ${downAfterMs}`,
          "sentinel failover-timeout herd 4000",
          ...(users ? [`user ${users.sentinels}`] : []),
        ].join("\n"),
      );
      run(file, "--sentinel");
      return port;
    }),
  );
  const [at, to] = [clientAt(primary.port), clientAt(replica.port)];
  const caughtUp = async (): Promise<void> => {
    // WAIT is for what its own connection has written last.
    await at.set("pair:caught-up", "1");
    await until("the replica caught up", async () => (await at.wait(1, 1000)) === 1);
  };
  await until("replication", async () => (await to.info("replication")).includes("master_link_status:up"));
  const told = ports.map((port) => clientAt(port));
  const [asked] = told;
  if (asked) {
    await until("the sentinels know the replica and each other", async () => {
      const [state] = (await asked.call("SENTINEL", "CKQUORUM", "herd").then(
        () => [true],
        () => [false],
      )) as [boolean];
      return state && ((await asked.call("SENTINEL", "REPLICAS", "herd")) as unknown[]).length === 1;
    });
  }
  return {
    primary,
    replica,
    caughtUp,
    sentinelUrl: `redis${isSecure ? "s" : ""}+sentinel://${ports.map((port) => `127.0.0.1:${port}`).join(",")}/herd`,
    async swap() {
      await to.replicaof("NO", "ONE");
      await at.replicaof("127.0.0.1", replica.port);
    },
    async failOverSoon() {
      for (const sentinel of told)
        await sentinel.call("SENTINEL", "SET", "herd", "down-after-milliseconds", downSoonAfterMs);
    },
    async primaryPort() {
      if (!asked) throw new Error("there are no sentinels");
      const [, port] = (await asked.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "herd")) as [string, string];
      return Number(port);
    },
    async stop() {
      for (const client of clients) client.disconnect();
      for (const child of children) child.kill("SIGKILL");
      await Promise.all(
        children.map((child) =>
          child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined,
        ),
      );
      await rm(folder, { recursive: true, force: true });
    },
  };
}
