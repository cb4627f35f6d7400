import { systemClock } from "../../src/base/clock.js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BrowserId, partitionOf, type PoolId, type ProfileId } from "../../src/base/ids.js";
import type { SessionCreate } from "../../src/spec/bodies.js";
import { makeRefresh, makeRefreshPartition } from "../../src/pool/refresh.js";
import type { Session } from "../../src/pool/session.js";
import { makeMaintenance } from "../../src/pool/maintenance.js";
import { partitionKey } from "../../src/store/redis/keys.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { PoolBed } from "../support/store/pool-bed.js";
import { aProfile, save } from "../support/node/registered.js";
import { claimOf } from "../support/store/store-bed.js";
import {
  acquireFrom,
  beatOfNode,
  createSession,
  filledPool,
  launchAll,
} from "../support/daemon/control-pools.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";

let control: ControlBed;
let count = 0;
let login: ProfileId;
beforeEach(async () => {
  control = await openControlBed(`profile-refresh${(count += 1)}`);
  login = await aProfile(control.bed, "login");
  await beatOfNode(control);
});
afterEach(() => control.close());

const filled = (over: Partial<PoolSpec> = {}): Promise<PoolBed> => filledPool(control, { size: 1, ...over });
const lend = (pool: PoolBed): Promise<Session> => acquireFrom(control, pool);
const session = (body: SessionCreate): Promise<Session> => createSession(control, body);
const recordOf = async (id: BrowserId) => (await control.bed.poolStore.findBrowser(id))?.browser;

const saving = { profile: { name: "login", save_changes: true } };

const states = async (pool: PoolBed) => (await pool.browsers()).map(({ state }) => state).toSorted();
const from = (refresh: boolean) => ({
  size: 2,
  profile: { name: "login" },
  profile_id: login,
  refresh_on_profile_update: refresh,
});

test("a save flushes the idle browsers of pools that ask for it and start from this profile, and of no others", async () => {
  const other = await aProfile(control.bed, "other");
  const asking = await filled(from(true));
  const held = await lend(asking);
  const others = [
    await filled(from(false)),
    await filled({ ...from(true), profile_id: other }),
    await filled({ size: 2, refresh_on_profile_update: true }),
  ];
  await asking.age(5);
  await save(control.bed, login);
  const { poolStore, projects, profiles } = control.bed;
  await makeRefresh({ poolStore, projects, profiles })(login);
  expect(await states(asking)).toEqual(["leased", "retiring"]);
  expect((await recordOf(held.browser.id))?.state).toBe("leased");
  for (const pool of others) expect(await states(pool)).toEqual(["idle", "idle"]);
});

test("a pool whose record cannot be read holds up no other", async () => {
  const pools = [await filled(from(true)), await filled(from(true)), await filled(from(true))];
  for (const pool of pools) await pool.age(5);
  await save(control.bed, login);
  const [sick = "" as PoolId] = await control.bed.projects.pools();
  const spoilt = partitionOf(sick);
  await control.bed.redis.set(partitionKey(control.bed.project, spoilt, "pool"), "no record");
  await expect(makeRefresh(control.bed)(login)).rejects.toThrow("WRONGTYPE");
  const well = pools.filter(({ partition }) => partition !== spoilt);
  expect(await Promise.all(well.map(states))).toEqual([
    ["retiring", "retiring"],
    ["retiring", "retiring"],
  ]);
});

test("what was claimed after the save stays, however often it is told; a profile that was never saved flushes nothing", async () => {
  const pool = await filled(from(true));
  const refresh = makeRefresh(control.bed);
  await refresh(login);
  expect(await states(pool)).toEqual(["idle", "idle"]);
  await pool.age(5);
  await save(control.bed, login);
  await refresh(login);
  expect(await states(pool)).toEqual(["retiring", "retiring"]);
  await pool.clear();
  await launchAll(control, pool);
  const before = (await pool.browsers()).map(({ id }) => id).toSorted();
  expect(before).toHaveLength(2);
  await refresh(login);
  await makeRefreshPartition(control.bed)(pool.partition);
  expect((await pool.browsers()).map(({ id, state }) => [id, state]).toSorted()).toEqual(
    before.map((id) => [id, "idle"]),
  );
});

test("browsers from before the pool followed a profile stay in service, until that is saved again", async () => {
  const [bare, deaf] = [await filled({ size: 2 }), await filled(from(false))];
  for (const pool of [bare, deaf]) await pool.age(5);
  await save(control.bed, login);
  expect(await control.updatePool(bare.id, { profile: { name: "login" } }, callerOf())).toMatchObject({
    kind: "done",
    value: { spec: { refresh_on_profile_update: true } },
  });
  expect(await control.updatePool(deaf.id, { refresh_on_profile_update: true }, callerOf())).toMatchObject({
    kind: "done",
  });
  const tick = makeRefreshPartition(control.bed);
  for (const pool of [bare, deaf]) await tick(pool.partition);
  expect([await states(bare), await states(deaf)]).toEqual([
    ["idle", "idle"],
    ["idle", "idle"],
  ]);
  await save(control.bed, login);
  for (const pool of [bare, deaf]) await tick(pool.partition);
  expect([await states(bare), await states(deaf)]).toEqual([
    ["retiring", "retiring"],
    ["retiring", "retiring"],
  ]);
});

test("a save whose word was lost is found by the recycle tick, also for what was launching meanwhile, and for a pool of an earlier release", async () => {
  const [asking, silent, old] = [
    await filled(from(true)),
    await filled(from(false)),
    await filled(from(true)),
  ];
  await Promise.all([asking.update({ size: 3 }), control.bed.redis.hdel(old.key("pool"), "follows")]);
  const [late] = await asking.claim(1);
  for (const pool of [asking, silent, old]) await pool.age(5);
  await save(control.bed, login);
  const maintenance = makeMaintenance({
    ...control.bed,
    projects: control.bed.allProjects,
    jobs: { add: async (more) => void control.bed.jobs.push(...more) },
    clock: systemClock,
    log: silentLog,
    fill: async () => {},
    refresh: makeRefreshPartition(control.bed),
    share: () => true,
    queues: { drop: async () => {}, keep: async () => {} },
    maxLeases: null,
    listensMs: async () => 0,
    lostAfterMs: { node: 1, control: 1 },
  });
  await maintenance.recycle();
  expect([await states(asking), await states(silent), await states(old)]).toEqual([
    ["launching", "retiring", "retiring"],
    ["idle", "idle"],
    ["retiring", "retiring"],
  ]);
  if (late) await control.bed.reports.launched(late.id, claimOf(late), "{}");
  expect(await states(asking)).toEqual(["idle", "retiring", "retiring"]);
  await maintenance.recycle();
  expect(await states(asking)).toEqual(["retiring", "retiring", "retiring"]);
});

test("a partition that is no pool has nothing to be refreshed", async () => {
  const { browser } = await session(saving);
  await makeRefreshPartition(control.bed)(partitionOf(browser.id));
  expect((await recordOf(browser.id))?.state).toBe("leased");
});
