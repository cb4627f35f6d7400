import { afterEach, beforeEach, expect, test } from "vitest";
import { newRequestId } from "../../src/base/ids.js";
import type { Granted } from "../../src/pool/operations.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { PoolBed } from "../support/store/pool-bed.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`names${(count += 1)}`);
});
afterEach(() => control.close());

const filled = (size = 1): Promise<PoolBed> => PoolBed.filled(control.bed, { size });
const nameHolder = (name: string) => control.bed.projects.findName("session", name);

function grantOf(outcome: { kind: string }): Granted {
  if (outcome.kind !== "granted") throw new Error(`not granted: ${JSON.stringify(outcome)}`);
  return outcome as Granted;
}

test("an acquire under a key whose control died once it had the name has it at its repeat, and nobody else", async () => {
  const pool = await filled();
  const keyed = () => callerOf({ idempotencyKey: "once" });
  control.broken.add("acquire").add("freeName").add("withdraw");
  await expect(control.acquire(pool.id, { name: "mine" }, keyed())).rejects.toThrow("cannot be reached");
  control.broken.clear();
  expect(await control.acquire(pool.id, { name: "mine" }, callerOf())).toMatchObject({ code: "name_taken" });
  const { lease } = grantOf(await control.acquire(pool.id, { name: "mine" }, keyed())).session.browser;
  expect(await nameHolder("mine")).toMatchObject({ owner: lease?.id });
});

test("two acquires under one key at the same time are one lease, which has the name", async () => {
  const pool = await filled();
  const { projects } = control.bed;
  const { reserveName } = projects;
  const again = (): Promise<{ kind: string }> =>
    control.acquire(pool.id, { name: "mine" }, callerOf({ idempotencyKey: "once" }));
  let other: Promise<{ kind: string }> | undefined;
  projects.reserveName = async (ask) => {
    projects.reserveName = reserveName;
    const reserved = await reserveName(ask);
    other = again();
    await other;
    return reserved;
  };
  const [first, second] = [grantOf(await again()), grantOf((await other) ?? { kind: "none" })];
  expect(first.session.browser.lease?.id).toBe(second.session.browser.lease?.id);
  expect(await nameHolder("mine")).toMatchObject({ owner: second.session.browser.lease?.id });
});

test("a repeat whose name cannot be passed on to the lease of its first attempt leaves that to another repeat", async () => {
  const pool = await filled();
  const repeat = () => control.acquire(pool.id, { name: "mine" }, callerOf({ idempotencyKey: "once" }));
  const first = grantOf(await repeat());
  first.settle("lost");
  await control.grants.idle();
  const { projects } = control.bed;
  const owner = first.session.browser.lease?.id ?? "";
  await projects.freeName({ kind: "session", name: "mine", owner });
  const { reserveName } = projects;
  projects.reserveName = async (ask) => {
    if (ask.takesOver) throw new Error("Redis cannot be reached");
    return await reserveName(ask);
  };
  await expect(repeat()).rejects.toThrow("cannot be reached");
  projects.reserveName = reserveName;
  await control.grants.idle();
  expect(await nameHolder("mine")).toBeUndefined();
  await pool.age(11_000);
  await pool.beat(control.control);
  await control.bed.poolStore.reap(pool.partition);
  expect((await pool.counts()).idle).toBe(1);
});

test("an idempotency key is its caller's own: who sends another's is lent a browser of its own", async () => {
  const pool = await filled(2);
  const keyed = callerOf({ idempotencyKey: "guessed" });
  const stranger = { ...keyed, principal: { ...keyed.principal, id: "another" } };
  const lend = async (caller: typeof keyed): Promise<string | undefined> =>
    grantOf(await control.acquire(pool.id, {}, { ...caller, request: newRequestId() })).session.browser.lease
      ?.id;
  const first = await lend(keyed);
  expect(await lend(keyed)).toBe(first);
  expect(await lend(stranger)).not.toBe(first);
});
