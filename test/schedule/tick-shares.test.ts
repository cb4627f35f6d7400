import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { newControlId, newPoolId, partitionOf } from "../../src/base/ids.js";
import { tickControlsKey } from "../../src/store/redis/keys.js";
import { until } from "../support/browser/chromium-until.js";
import { compiled } from "../support/compiled.js";
import { startRedis } from "../support/store/redis.js";

const partitions = Array.from({ length: 40 }, () => partitionOf(newPoolId()));
const limitMs = 100_000;

interface Running {
  readonly id: string;
  readonly child: ChildProcess;
}

async function startControl(url: string): Promise<Running> {
  const id = newControlId();
  const program = join(import.meta.dirname, "../support/store/control-of-shares.mjs");
  const child = spawn(process.execPath, [program, compiled, url, id, ...partitions], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return { id, child };
}

/** Who visits each partition from now on, each being visited three times and more. */
async function visitorsOf(redis: Redis): Promise<readonly (readonly string[])[]> {
  await redis.del("visits", ...partitions.map((partition) => `visitors:${partition}`));
  await until(
    "visits of all partitions",
    async () => {
      const visits = await redis.hmget("visits", ...partitions);
      return visits.every((count) => Number(count) >= 3);
    },
    limitMs,
  );
  return await Promise.all(partitions.map((partition) => redis.smembers(`visitors:${partition}`)));
}

/** These and no others share the partitions, each of which is one's. */
async function expectSharedBy(redis: Redis, controls: readonly Running[]): Promise<void> {
  const ids = controls.map(({ id }) => id).toSorted();
  await until(
    "those controls",
    async () => (await redis.zrange(tickControlsKey, "0", "-1")).toSorted().join() === ids.join(),
    limitMs,
  );
  // Each has to hear of it before what is another's now is left alone.
  await until(
    "shares",
    async () => {
      const visitors = await visitorsOf(redis);
      const found = [...new Set(visitors.flat())].toSorted();
      return visitors.every((all) => all.length === 1) && found.join() === ids.join();
    },
    limitMs,
  );
}

test("each partition has its ticks at one control; those of one that is killed, stops or stands still go to the others", async () => {
  const server = await startRedis();
  onTestFinished(() => server.stop());
  const redis = server.client();
  onTestFinished(() => redis.disconnect());
  const [first, second, third, fourth] = [
    await startControl(server.url),
    await startControl(server.url),
    await startControl(server.url),
    await startControl(server.url),
  ];
  await expectSharedBy(redis, [first, second, third, fourth]);
  first.child.kill("SIGKILL");
  await expectSharedBy(redis, [second, third, fourth]);
  second.child.kill("SIGSTOP");
  await expectSharedBy(redis, [third, fourth]);
  third.child.kill("SIGTERM");
  await expectSharedBy(redis, [fourth]);
  const wokenAt = Date.now();
  second.child.kill("SIGCONT");
  await expectSharedBy(redis, [second, fourth]);
  // One that stood still has visited nothing before it was among the controls again. It may have been about a
  // visit as it was stopped.
  const late = (await redis.lrange("late", 0, -1)).map((text) => text.split(" "));
  expect(late.filter(([id, begunAt]) => id !== second.id || Number(begunAt) >= wokenAt)).toEqual([]);
}, 600_000);
