import { afterEach, beforeEach, expect } from "vitest";
import { organizationKey } from "../../src/store/redis/keys.js";
import { Random } from "../simulation/random.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import { Fleet } from "../support/daemon/fleet.js";
import { openRedisProxy } from "../support/store/redis-proxy.js";
import { ageKeys } from "../support/store/age.js";
import { fault, startWatch } from "../support/faults/fault.js";

const most = { pooled: 8, project: 6 };
const file = {
  projects: { enabled: true },
  limits: { pooled_sessions: most.pooled, concurrent_sessions: 9 },
};
let fleet: Fleet;
let controls: DaemonProcess[];
let redis: ReturnType<Fleet["redis"]["client"]>;
let projects: readonly string[];
beforeEach(async () => {
  fleet = await Fleet.open();
  redis = fleet.redis.client();
  controls = [await fleet.control(file), await fleet.control(file)];
  const { body } = await at(0).call("POST /org/projects", { name: "narrow" });
  projects = ["default", String(body.id)];
  await at(0).call(`PATCH /org/projects/${body.id}/limits`, { max_concurrent_sessions: most.project });
});
afterEach(async () => {
  redis.disconnect();
  await fleet.close();
});

function at(place: number): DaemonProcess {
  const control = controls[place];
  if (!control) throw new Error(`there is no control ${place}`);
  return control;
}
const there = (project: string) => ({ "x-kernel-project-id": project });

interface KnownPool {
  readonly project: string;
  readonly id: string;
  readonly size: number;
}
async function allPools(control: DaemonProcess): Promise<readonly KnownPool[]> {
  const found = await Promise.all(
    projects.map(async (project) => {
      const { body } = await control.call("GET /browser_pools?limit=100", undefined, there(project));
      return (body as { id: string; browser_pool_config: { size: number } }[]).map(
        ({ id, browser_pool_config: { size } }) => ({ project, id, size }),
      );
    }),
  );
  return found.flat();
}
const sizeOf = (pools: readonly KnownPool[]): number => pools.reduce((sum, { size }) => sum + size, 0);

/** What one caller does, at random: more pools and larger ones than there may be. */
function anyChange(random: Random, pools: readonly KnownPool[], control: DaemonProcess): Promise<unknown> {
  const pool = random.pick(pools);
  const project = random.pick(projects) ?? "default";
  if (pool === undefined || random.chance(0.5)) {
    const body = { size: random.between(1, 4), headless: true, fill_rate_per_minute: 0 };
    return control.call("POST /browser_pools", body, there(project));
  }
  const path = `/browser_pools/${pool.id}`;
  return random.chance(0.7)
    ? control.call(`PATCH ${path}`, { size: random.between(1, 5) }, there(pool.project))
    : control.call(`DELETE ${path}`, {}, there(pool.project));
}

/** Changes at both controls at once, in the middle of which the first is killed. */
async function contend(random: Random): Promise<void> {
  const pools = await allPools(at(1));
  const wanted = random.between(1, 16);
  let answered = 0;
  let killed: Promise<void> | undefined;
  const settle = (): void => {
    answered += 1;
    if (answered === wanted) killed = fleet.kill(at(0));
  };
  await Promise.all(
    Array.from({ length: 32 }, (_, place) =>
      anyChange(random, pools, at(place % 2)).then(
        async () => {
          settle();
          await expectWithin();
        },
        // Whoever asked the killed one has no answer.
        () => undefined,
      ),
    ),
  );
  await killed;
}

/** Whatever is reserved at this moment is within the limits. */
async function expectWithin(): Promise<void> {
  const usage = await redis.hgetall(organizationKey("usage"));
  expect(Number(usage["pool"] ?? 0)).toBeLessThanOrEqual(most.pooled);
  expect(Number(usage[`pool ${projects[1]}`] ?? 0)).toBeLessThanOrEqual(most.project);
}

/** Makes the deadlines of what was reserved pass. */
async function passDeadlines(): Promise<void> {
  const keys = await redis.keys("remuda:*");
  await ageKeys(
    redis,
    keys.filter((key) => /:(reservations|pools|names)$/.test(key)),
    121_000,
  );
}

const reserved = async (): Promise<number> =>
  Number((await redis.hget(organizationKey("usage"), "pool")) ?? 0);

/** What is reserved beyond what there is comes to be given back. */
async function expectGivenBack(control: DaemonProcess, message: string): Promise<void> {
  await expect
    .poll(async () => (await reserved()) - sizeOf(await allPools(control)), { timeout: 30_000, message })
    .toBe(0);
}

/** Takes all there is, one after the other: nothing of the limit may be left unused. */
async function takeAll(control: DaemonProcess): Promise<void> {
  const one = { size: 1, headless: true, fill_rate_per_minute: 0 };
  let left = most.pooled - sizeOf(await allPools(control));
  for (; left > 0; left -= 1)
    expect(await control.call("POST /browser_pools", one)).toMatchObject({ status: 201 });
  expect(await control.call("POST /browser_pools", one)).toMatchObject({
    status: 403,
    body: { code: "limit_exceeded" },
  });
}

fault(
  "a control dies (SIGKILL) amid changes that the limits of pools bind, at random moments",
  async (tell) => {
    const seed = Number(process.env["SIMULATION_SEED"] ?? Math.floor(Math.random() * 1e6));
    const random = new Random(seed);
    let recoveryMs = 0;
    for (let round = 0; round < 4; round += 1) {
      await contend(random);
      const before = at(0);
      const [pools, other] = [await allPools(at(1)), at(1)];
      expect(sizeOf(pools), `seed ${seed}`).toBeLessThanOrEqual(most.pooled);
      await passDeadlines();
      const watch = startWatch();
      await expectGivenBack(other, `seed ${seed}: what is reserved beyond what there is`);
      recoveryMs = Math.max(recoveryMs, watch.since());
      await takeAll(other);
      await expectWithin();
      for (const { project, id } of (await allPools(other)).filter(() => random.chance(0.6)))
        await other.call(`DELETE /browser_pools/${id}`, {}, there(project));
      controls[0] = await fleet.again(before);
    }
    tell({ saw: "403 beyond the limit, or no answer; never over it, and all of it used after", recoveryMs });
  },
  300_000,
);

/**
 * A control is killed once it has reserved a size, before that is in the pool's record, which has this width
 * of a viewport.
 */
async function killedBeforeTheRecord(operation: string, body: object, width: number): Promise<void> {
  const proxy = await openRedisProxy(fleet.redis.url);
  const dying = await fleet.control(file, proxy.url);
  const atTheRecord = proxy.freezeAt(`"width":${width}`);
  const unanswered = dying
    .call(operation, { ...body, viewport: { width, height: 700 } })
    .catch(() => undefined);
  await atTheRecord;
  await fleet.kill(dying);
  await unanswered;
  await proxy.close();
}

fault(
  "controls die (SIGKILL) between reserving the size of a pool and recording it, in a creation and in a change",
  async (tell) => {
    const pool = { headless: true, fill_rate_per_minute: 0 };
    const { body } = await at(1).call("POST /browser_pools", { ...pool, size: 1 });
    await killedBeforeTheRecord(`PATCH /browser_pools/${body.id}`, { size: 4 }, 1111);
    await killedBeforeTheRecord("POST /browser_pools", { ...pool, size: 3 }, 1112);
    expect([await reserved(), sizeOf(await allPools(at(1)))]).toEqual([7, 1]);
    // What nobody has is held until then.
    expect(await at(1).call("POST /browser_pools", { ...pool, size: 2 })).toMatchObject({ status: 403 });
    await passDeadlines();
    const watch = startWatch();
    await expectGivenBack(at(1), "what two controls had reserved and not recorded");
    expect(await reserved()).toBe(1);
    tell({ saw: "403 for what is held; after two minutes all of it may be used", recoveryMs: watch.since() });
    await takeAll(at(1));
  },
  300_000,
);
