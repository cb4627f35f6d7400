import { afterAll, beforeAll, expect, test } from "vitest";
import { newLeaseId, onDemandPartition, partitionOf, type PoolId } from "../../src/base/ids.js";
import { organizationKey, partitionKey } from "../../src/store/redis/keys.js";
import { Random } from "../simulation/random.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import type { Broken } from "../support/failing.js";
import { age } from "../support/store/age.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { nodeA } from "../support/store/pool-bed.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { claimOf } from "../support/store/store-bed.js";

const most = 8;
const steps = 60;
const headless = { headless: true } as const;

/** Every call fails from one moment on, before or after it was carried out: the process has been killed. */
class Death extends Set<string> implements Broken {
  #left = Infinity;
  get isDead(): boolean {
    return this.#left <= 0;
  }
  after(moments: number): void {
    this.#left = moments;
  }
  override has(_call: string): boolean {
    this.#left -= 1;
    return this.isDead;
  }
  override clear(): void {
    this.#left = Infinity;
  }
}
interface Daemon {
  readonly control: ControlBed;
  readonly death: Death;
}

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());

async function openDaemon(project: string): Promise<Daemon> {
  const death = new Death();
  const isEffectLost = (): boolean => death.isDead;
  const control = await openControlBed(project, {
    server,
    broken: death,
    isEffectLost,
    concurrentSessions: most,
  });
  return { control, death };
}

class World {
  readonly log: string[] = [];
  readonly sessions = new Set<string>();
  readonly #bed: ControlBed["bed"];

  constructor(
    readonly random: Random,
    private readonly daemons: readonly Daemon[],
  ) {
    const [first] = daemons;
    if (!first) throw new Error("there is no daemon");
    this.#bed = first.control.bed;
  }

  /** Several callers at several daemons at once; some of these are killed on the way, and started again. */
  async burst(calls: readonly ((control: ControlBed) => Promise<unknown>)[]): Promise<void> {
    for (const { death } of this.daemons)
      if (this.random.chance(0.3)) death.after(this.random.between(1, 14));
    const open = new Set(calls.keys());
    const all = calls.map(async (call, at) => {
      const daemon = this.random.pick(this.daemons) as Daemon;
      await call(daemon.control).catch(() => {});
      open.delete(at);
    });
    for (let looks = 1; open.size > 0; looks += 1) {
      await this.#launchSome();
      // Whoever waits at a control that was killed is served by nobody; nor who waits for what that one did.
      const stuck = this.daemons.filter(({ death }) => death.isDead || looks % 50 === 0);
      for (const { control } of stuck) await control.clock.advance(60_000);
    }
    await Promise.all(all);
    for (const { death } of this.daemons) death.clear();
  }

  create = async (control: ControlBed): Promise<void> => {
    const keyed = this.random.chance(0.3) ? { idempotencyKey: `key${this.random.below(3)}` } : {};
    const got = await control.createSession(headless, callerOf(keyed));
    this.log.push(`create: ${got.kind === "refused" ? got.code : got.kind}`);
    if (got.kind !== "granted") return;
    this.sessions.add(got.session.browser.id);
    got.settle("delivered");
  };

  end = async (control: ControlBed): Promise<void> => {
    const id = this.random.pick([...this.sessions]);
    if (id === undefined) return;
    const got = await control.remove(id, callerOf());
    this.log.push(`end: ${got.kind}`);
    if (got.kind === "done") this.sessions.delete(id);
  };

  createPool = async (control: ControlBed): Promise<void> => {
    const size = this.random.between(1, 3);
    const got = await control.createPool({ ...headless, size }, callerOf());
    this.log.push(`create pool of ${size}: ${got.kind}`);
  };

  resize = async (control: ControlBed): Promise<void> => {
    const id = this.random.pick(await this.#bed.projects.pools());
    if (id === undefined) return;
    const size = this.random.between(1, 4);
    const got = await control.updatePool(id, { size }, callerOf());
    this.log.push(`resize to ${size}: ${got.kind}`);
  };

  removePool = async (control: ControlBed): Promise<void> => {
    const id = this.random.pick(await this.#bed.projects.pools());
    if (id !== undefined) await control.removePool(id, { force: true });
  };

  async pass(ms: number): Promise<void> {
    await age(this.#bed.redis, "remuda:{*", ms);
    await age(this.#bed.redis, "remuda:*:{*", ms);
    this.log.push(`${ms} ms pass`);
    await this.begin();
    for (const { control } of this.daemons)
      await this.#bed.poolStore.beat(onDemandPartition, control.control);
    await this.#bed.poolStore.reap(onDemandPartition);
    await this.#bed.projects.sweepPools();
    await this.#bed.projects.sweepReservations();
  }

  begin = (): Promise<unknown> => this.#bed.nodes.beat(nodeFacts(nodeA));

  /** What the records say: sessions that live or wait, and the size of each open pool. */
  async held(): Promise<Record<string, number>> {
    const { redis, project } = this.#bed;
    const held: Record<string, number> = {};
    const key = (part: "leases" | "waiterRecords"): string => partitionKey(project, onDemandPartition, part);
    for (const text of await redis.hvals(key("waiterRecords")))
      held[(JSON.parse(text) as { lease: string }).lease] = 1;
    for (const lease of await redis.hkeys(key("leases"))) held[lease] = 1;
    for (const pool of await redis.hkeys(`remuda:{project-${project}}:pools`)) {
      const [state, size] = await redis.hmget(
        partitionKey(project, partitionOf(pool as PoolId), "pool"),
        "state",
        "size",
      );
      if (state === "open") held[pool] = Number(size);
    }
    return held;
  }

  async #launchSome(): Promise<void> {
    const { poolStore, reports } = this.#bed;
    const { browsers } = await poolStore.browsers(onDemandPartition);
    for (const browser of browsers.filter(({ state }) => state === "launching"))
      await (this.random.chance(0.8)
        ? reports.launched(browser.id, claimOf(browser), "{}")
        : reports.launchFailed(browser.id, claimOf(browser), "no display"));
  }
}

const sum = (held: Readonly<Record<string, number>>): number =>
  Object.values(held).reduce((all, size) => all + size, 0);

async function reserved({ bed: { redis } }: ControlBed): Promise<Record<string, number>> {
  const texts = Object.entries(await redis.hgetall(organizationKey("reservations")));
  return Object.fromEntries(texts.map(([owner, text]) => [owner, Number(text.split(" ")[2])]));
}

async function step(world: World): Promise<void> {
  const { random } = world;
  const calls = [
    world.create,
    world.create,
    world.create,
    world.end,
    world.end,
    world.createPool,
    world.resize,
  ];
  await world.begin();
  if (random.chance(0.2)) await world.pass(random.between(500, 60_000));
  else if (random.chance(0.15)) await world.burst([world.removePool]);
  else
    await world.burst(Array.from({ length: random.between(1, 6) }, () => random.pick(calls) ?? world.create));
}

test.each([1, 2, 3])(
  "no burst at several controls, some of which are killed, exceeds the limit, and nothing of it stays unused (seed %i)",
  async (seed) => {
    const random = new Random(seed);
    const daemons = [await openDaemon(`random${seed}`), await openDaemon(`random${seed}`)];
    const world = new World(random, daemons);
    await daemons[0]?.control.bed.redis.flushall();
    const { control } = daemons[0] as Daemon;
    for (let at = 0; at < steps; at += 1) {
      await step(world);
      const held = await world.held();
      expect(sum(held), `step ${at}\n${world.log.join("\n")}`).toBeLessThanOrEqual(most);
    }
    // One look after every deadline: what is reserved is what there is, and all the rest can be had.
    await world.pass(130_000);
    await world.pass(6000);
    const held = await world.held();
    expect(await reserved(control), world.log.join("\n")).toEqual(held);
    const { projects } = control.bed;
    for (let left = most - sum(held); left > 0; left -= 1)
      expect((await projects.reserveSession(newLeaseId())).kind).toBe("reserved");
    expect((await projects.reserveSession(newLeaseId())).kind).toBe("concurrent");
    for (const daemon of daemons) await daemon.control.close();
  },
  120_000,
);
