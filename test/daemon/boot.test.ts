import { existsSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import type { Log } from "../../src/base/log.js";
import { Stops } from "../../src/base/stops.js";
import { type Config, openConfig } from "../../src/config/config.js";
import { type Role, boot } from "../../src/daemon/boot.js";
import type { ProcessContext } from "../../src/daemon/shutdown.js";
import { isLiving } from "../support/living.js";

let root: string;
let config: Config;
let redisPids: number[];
let faults: unknown[];
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "remuda-test-boot-"));
  await writeFile(join(root, "c.json"), "{}");
  const opened = openConfig({ packageRoot: root, env: { REMUDA_CONFIG: "c.json", PATH: "/usr/bin:/bin" } });
  if (opened.kind === "refused") throw new Error(opened.faults.join());
  config = opened.config;
  redisPids = [];
  faults = [];
});
afterEach(async () => {
  const leaked = redisPids.filter(isLiving);
  await rm(root, { recursive: true });
  expect(leaked).toEqual([]);
});

const note = (fields: object): void => void ("redisPid" in fields && redisPids.push(Number(fields.redisPid)));
const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log };
const lifetime = (): ProcessContext => ({
  log,
  clock: systemClock,
  stopping: new AbortController().signal,
  hurry: new AbortController().signal,
  fail: (error) => faults.push(error),
});
const isReachable = (socket: string): Promise<boolean> =>
  new Promise((resolve) => {
    const connection = connect(socket, () => {
      connection.destroy();
      resolve(true);
    }).on("error", () => resolve(false));
  });

test("the Redis of a role is there from before its start until after its stop", async () => {
  const seen: boolean[] = [];
  const role: Role = async (_, { redisUrl, clock }) => {
    const look = async (): Promise<unknown> => seen.push(await isReachable(redisUrl.reveal()));
    await look();
    const stops = new Stops(clock, 1000);
    stops.add("look", look);
    return stops;
  };
  const stops = await boot(role, config, lifetime());
  await stops.run();
  expect(seen).toEqual([true, true]);
  expect(redisPids.map(isLiving)).toEqual([false]);
  expect(await readdir(join(config.dataDir, "redis"))).toEqual(["appendonlydir"]);
  expect(faults).toEqual([]);
});

const idle: Role = async (_, { clock }) => new Stops(clock, 1000);

test("a second daemon on the same directory is refused with the first's process id, and harms nothing", async () => {
  const first = await boot(idle, config, lifetime());
  await expect(boot(idle, config, lifetime())).rejects.toThrow(
    `${config.dataDir} is in use by process ${process.pid}`,
  );
  expect(redisPids.map(isLiving)).toEqual([true]);
  await first.run();
});

test("the fault of an unusable data directory is one sentence with the setting for another", async () => {
  await writeFile(join(root, "file"), "");
  const dataDir = join(root, "file", "data");
  const fault: unknown = await boot(idle, { ...config, dataDir }, lifetime()).catch(
    (error: unknown) => error,
  );
  expect(fault).toMatchObject({
    name: "CannotStart",
    stack: expect.stringMatching(/^[^\n]*REMUDA_DATA_DIR[^\n]*$/),
  });
});

test("a role that cannot start leaves neither Redis nor lock", async () => {
  const broken: Role = () => Promise.reject(new Error("port in use"));
  await expect(boot(broken, config, lifetime())).rejects.toThrow("port in use");
  expect(redisPids.map(isLiving)).toEqual([false]);
  await (await boot(idle, config, lifetime())).run();
});

test("the death of the private Redis is a fault of the daemon", async () => {
  const stops = await boot(idle, config, lifetime());
  for (const pid of redisPids) process.kill(pid, "SIGKILL");
  await expect.poll(() => faults.length).toBe(1);
  await stops.run();
});

test("a given Redis is used as it is, and none is started", async () => {
  const opened = openConfig({
    packageRoot: root,
    env: { REMUDA_CONFIG: "c.json", REDIS_URL: "redis://elsewhere:1" },
  });
  if (opened.kind === "refused") throw new Error(opened.faults.join());
  const urls: string[] = [];
  const role: Role = async (_, { redisUrl, clock }) => {
    urls.push(redisUrl.reveal());
    return new Stops(clock, 1000);
  };
  await (await boot(role, opened.config, lifetime())).run();
  expect([urls, existsSync(join(opened.config.dataDir, "redis"))]).toEqual([["redis://elsewhere:1"], false]);
});
