import { afterEach, beforeEach, expect, test } from "vitest";
import { RemudaError } from "../../src/base/errors.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { PoolBed } from "../support/store/pool-bed.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`undos${(count += 1)}`);
});
afterEach(() => control.close());

const filled = (): Promise<PoolBed> => PoolBed.filled(control.bed, { size: 1 });
const beat = () => control.clock.advance(1000);

test("while Redis is away few of the acquires that it refused are tried to be taken back, and all of them once it answers", async () => {
  const pool = await filled();
  const { poolStore } = control.bed;
  const withdraw = poolStore.withdraw.bind(poolStore);
  const away = new RemudaError("store_unavailable");
  let giveUp = (): void => {};
  const silence = new Promise<never>((_, reject) => (giveUp = () => reject(away)));
  let tries = 0;
  poolStore.withdraw = () => {
    tries += 1;
    return silence;
  };
  control.broken.add("acquire");
  await Promise.allSettled(Array.from({ length: 200 }, () => control.acquire(pool.id, {}, callerOf())));
  for (let second = 0; second < 3; second += 1) await beat();
  const underWay = tries;
  giveUp();
  await control.grants.idle();
  await beat();
  await control.grants.idle();
  expect([underWay, tries]).toEqual([32, 33]);
  const answers: string[] = [];
  poolStore.withdraw = async (...ask) => {
    const reply = await withdraw(...ask);
    answers.push(reply.kind);
    return reply;
  };
  await beat();
  await control.grants.idle();
  expect(answers).toEqual(Array.from({ length: 200 }, () => "unknown"));
});

test("an acquire of which nothing has left the process is not taken back", async () => {
  const pool = await filled();
  const { poolStore, redis } = control.bed;
  const withdraw = poolStore.withdraw.bind(poolStore);
  let tries = 0;
  poolStore.withdraw = (...ask) => {
    tries += 1;
    return withdraw(...ask);
  };
  redis.disconnect();
  await expect(control.acquire(pool.id, {}, callerOf())).rejects.toThrow("cannot be reached");
  await redis.connect();
  await beat();
  await control.grants.idle();
  expect(tries).toBe(0);
});

test("in a long outage a control keeps no more of what it refused than ten thousand requests", async () => {
  const pool = await filled();
  const { poolStore } = control.bed;
  let tries = 0;
  poolStore.withdraw = async () => {
    tries += 1;
    throw new RemudaError("store_unavailable");
  };
  control.broken.add("acquire");
  await Promise.allSettled(Array.from({ length: 10_100 }, () => control.acquire(pool.id, {}, callerOf())));
  await control.grants.idle();
  tries = 0;
  poolStore.withdraw = async () => {
    tries += 1;
    return { kind: "unknown" };
  };
  await beat();
  await control.grants.idle();
  expect(tries).toBe(10_000);
});
