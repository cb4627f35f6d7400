import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import {
  type PrivateRedis,
  type PrivateRedisOptions,
  startPrivateRedis,
} from "../../../src/store/private/private-redis.js";
import { compiled } from "../../support/compiled.js";
import { until } from "../../support/browser/chromium-until.js";
import { mountSmallDisk } from "../../support/faults/small-disk.js";
import { isLiving, signalLiving } from "../../support/living.js";
import { redisProgram } from "../../support/store/redis-server.js";

let root: string;
let started: PrivateRedis[] = [];
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "remuda-test-redis-"));
});
afterEach(async () => {
  await Promise.all(started.map((redis) => redis.stop()));
  const leaked = started.filter(({ pid }) => isLiving(pid));
  started = [];
  await rm(root, { recursive: true });
  expect(leaked).toEqual([]);
});

async function start(options: Partial<PrivateRedisOptions> = {}): Promise<PrivateRedis> {
  const redis = await startPrivateRedis({
    dataDir: join(root, "data"),
    executable: redisProgram,
    startLimitMs: 60_000,
    stopLimitMs: 5000,
    environment: { PATH: "/usr/bin:/bin" },
    clock: systemClock,
    onDeath: () => {},
    ...options,
  });
  started.push(redis);
  return redis;
}
async function withClient<T>(redis: PrivateRedis, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis({ path: redis.socket });
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}

test("what was written is there after a stop and a start", async () => {
  const first = await start();
  await withClient(first, (client) => client.set("horse", "grey"));
  await first.stop();
  const second = await start();
  expect(await withClient(second, (client) => client.get("horse"))).toBe("grey");
});

test.runIf(process.getuid?.() === 0)(
  "one whose disk is full is there, and takes changes again once there is room",
  async () => {
    const directory = join(root, "data", "redis");
    await mkdir(directory, { recursive: true });
    const disk = mountSmallDisk(directory, 64);
    try {
      const first = await start();
      // It would remove them at its next start, and has no room to write that down.
      const many = "for i = 1, 100000 do redis.call('SET', i, i, 'PX', 1000) end";
      await withClient(first, (client) => client.set("horse", "grey"));
      await withClient(first, (client) => client.eval(many, 0));
      const overAt = Date.now() + 1000;
      disk.fill();
      signalLiving(first.pid, "SIGKILL");
      await until("its end", () => !isLiving(first.pid));
      await until("the end of their time", () => Date.now() > overAt);
      const second = await start({ startLimitMs: 10_000 });
      expect(await withClient(second, (client) => client.get("horse"))).toBe("grey");
      const change = withClient(second, (client) => client.set("horse", "bay"));
      await expect(change).rejects.toThrow("MISCONF");
      disk.empty();
      await until("a change", () =>
        withClient(second, (client) => client.set("horse", "bay")).catch(() => undefined),
      );
      await second.stop();
    } finally {
      disk.unmount();
    }
  },
);

test("it listens on a socket only its owner may use, and on no port", async () => {
  const redis = await start();
  expect((await stat(redis.socket)).mode & 0o777).toBe(0o700);
  expect((await stat(join(root, "data", "redis"))).mode & 0o777).toBe(0o700);
  const config = await withClient(
    redis,
    (client) => client.config("GET", "port", "maxmemory-policy", "appendonly", "save") as Promise<string[]>,
  );
  expect(config.join(" ")).toContain("port 0");
  expect(config.join(" ")).toContain("noeviction");
  expect(config.join(" ")).toContain("appendonly yes");
});

test("it does not note how long each kind of command took, where it could", async () => {
  const redis = await start();
  const found = await withClient(
    redis,
    (client) => client.config("GET", "latency-tracking") as Promise<string[]>,
  );
  expect([[], ["latency-tracking", "no"]]).toContainEqual(found);
});

test("after the stop nothing of it is left but its data", async () => {
  const redis = await start();
  await redis.stop();
  expect(isLiving(redis.pid)).toBe(false);
  expect(await readdir(join(root, "data", "redis"))).toEqual(["appendonlydir"]);
});

test("a data directory too long for a socket's address gets a socket elsewhere, removed with it", async () => {
  const dataDir = join(root, "long ".repeat(15), "long ".repeat(10));
  const redis = await start({ dataDir });
  expect(redis.socket.length).toBeLessThan(100);
  expect((await stat(join(redis.socket, ".."))).mode & 0o777).toBe(0o700);
  await redis.stop();
  expect(existsSync(join(redis.socket, ".."))).toBe(false);
});

test("its death is told once, with why; a stop is not told", async () => {
  const deaths: string[] = [];
  const died = new Promise<void>((resolve) => {
    const onDeath = (why: string): void => void (deaths.push(why), resolve());
    void start({ onDeath }).then(({ pid }) => process.kill(pid, "SIGKILL"));
  });
  await died;
  const second = await start({ onDeath: (why) => deaths.push(why) });
  await second.stop();
  expect(deaths).toHaveLength(1);
  expect(deaths[0]).toContain("SIGKILL");
});

test("a stop in a hurry ends one that does not answer", async () => {
  const redis = await start({ stopLimitMs: 60_000 });
  process.kill(redis.pid, "SIGSTOP");
  const hurry = new AbortController();
  const stopped = redis.stop(hurry.signal);
  hurry.abort();
  await stopped;
  expect(isLiving(redis.pid)).toBe(false);
});

/** The wait before the SIGKILL, and the longest one after it: a busy machine needs some of that. */
const stopLimitMs = 3000;

test("one that does not stop within its limit is killed", async () => {
  const redis = await start({ stopLimitMs });
  process.kill(redis.pid, "SIGSTOP");
  await redis.stop();
  expect(isLiving(redis.pid)).toBe(false);
});

test("one that cannot read its file says why", async () => {
  await mkdir(join(root, "data", "redis", "appendonlydir"), { recursive: true });
  await writeFile(join(root, "data", "redis", "appendonlydir", "appendonly.aof.manifest"), "nonsense");
  await expect(start()).rejects.toThrow(/ended while starting.*manifest/s);
});

test("an executable that is absent is named", async () => {
  await expect(start({ executable: "no-such-redis" })).rejects.toThrow("no-such-redis");
});

const pathOf = (program: string): string =>
  execFileSync("sh", ["-c", 'command -v "$1"', "sh", program], { encoding: "utf8" }).trim();

async function forkHolder(
  dataDir: string,
  executable = redisProgram,
): Promise<{ holder: ChildProcess; pid: number }> {
  const holder = fork(
    join(import.meta.dirname, "../../support/store/redis-holder.mjs"),
    [compiled, dataDir, executable],
    { stdio: ["ignore", "ignore", "inherit", "ipc"] },
  );
  const [pid] = (await once(holder, "message")) as [number];
  return { holder, pid };
}

test("a killed daemon's Redis ends by itself", async () => {
  const { holder, pid } = await forkHolder(join(root, "data"));
  holder.kill("SIGKILL");
  await expect.poll(() => isLiving(pid)).toBe(false);
});

test.each(["redis-server", "valkey-server"])(
  "a killed daemon's %s that hangs is ended by the next start, and its data is there",
  async (name) => {
    const executable = join(root, name);
    await symlink(pathOf(redisProgram), executable);
    const { holder, pid } = await forkHolder(join(root, "data"), executable);
    onTestFinished(() => signalLiving(pid, "SIGKILL"));
    process.kill(pid, "SIGSTOP");
    holder.kill("SIGKILL");
    await once(holder, "exit");
    const redis = await start({ stopLimitMs });
    expect(isLiving(pid)).toBe(false);
    expect(await withClient(redis, (client) => client.get("horse"))).toBe("bay");
  },
);
