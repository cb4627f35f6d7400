import { systemClock } from "../../src/base/clock.js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BrowserId, partitionOf, type ProfileId } from "../../src/base/ids.js";
import type { SessionCreate, SessionPatch } from "../../src/spec/bodies.js";
import { makeFill } from "../../src/pool/fill.js";
import { makeRefresh, makeRefreshPartition } from "../../src/pool/refresh.js";
import type { Session } from "../../src/pool/session.js";
import { makeMaintenance } from "../../src/pool/maintenance.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";
import { aProfile, save } from "../support/node/registered.js";
import { claimOf } from "../support/store/store-bed.js";

let control: ControlBed;
let count = 0;
let login: ProfileId;
beforeEach(async () => {
  control = await openControlBed(`profiles${(count += 1)}`);
  login = await aProfile(control.bed, "login");
  await control.bed.nodes.beat({
    id: nodeA,
    host: "h",
    port: 1,
    memoryBytes: 2 ** 40,
    maxBrowsers: 20,
    isDraining: false,
    canLaunch: true,
    engines: ["chromium"],
  });
});
afterEach(() => control.close());

async function launchAll(pool: PoolBed): Promise<void> {
  const { poolStore, nodes, reports } = control.bed;
  await makeFill({
    poolStore,
    nodes,
    jobs: { add: async () => {} },
    random: () => 0,
    recycle: { maxAgeMs: null, jitterRatio: 0 },
  })(pool.partition);
  for (const browser of await pool.browsers())
    if (browser.state === "launching") await reports.launched(browser.id, claimOf(browser), "{}");
}

/** A pool that the project knows, filled as the daemon fills it. */
async function filled(over: Parameters<typeof PoolBed.create>[1] = {}): Promise<PoolBed> {
  const pool = await PoolBed.create(control.bed, { size: 1, ...over });
  await control.bed.projects.addPool(pool.id);
  await control.bed.projects.openPool(pool.id);
  await launchAll(pool);
  return pool;
}

async function lend(pool: PoolBed): Promise<Session> {
  const lent = await control.acquire(pool.id, {}, callerOf());
  if (lent.kind !== "granted") throw new Error(`not granted: ${lent.kind}`);
  return lent.session;
}

/** A session on demand, launched by nobody. */
async function session(body: SessionCreate): Promise<Session> {
  const known = control.bed.jobs.length;
  const outcome = control.createSession({ headless: true, ...body }, callerOf());
  await until("the launch", () => control.bed.jobs.length > known);
  const job = control.bed.jobs.at(-1);
  if (job) await control.bed.reports.launched(job.browser, job.claim, "{}");
  const lent = await outcome;
  if (lent.kind !== "granted") throw new Error(JSON.stringify(lent));
  return lent.session;
}

const recordOf = async (id: BrowserId) => (await control.bed.poolStore.findBrowser(id))?.browser;
async function shown(ref: string): Promise<Session> {
  const got = await control.getSession(ref, { includeDeleted: false });
  if (got.kind !== "done" || got.value.kind !== "session") throw new Error(JSON.stringify(got));
  return got.value.session;
}
/** As a node does when it has ended the browser, and saved before. */
async function gone(id: BrowserId): Promise<void> {
  const browser = await recordOf(id);
  if (browser) await control.bed.reports.gone(id, claimOf(browser));
}
const patch = (ref: string, body: SessionPatch, over: Parameters<typeof callerOf>[0] = {}) =>
  control.updateSession(ref, body, callerOf(over));

test.each([
  [undefined, false],
  [false, false],
  [true, true],
])(
  "a session with a profile shows it as it is now; save_changes %s saves: %s",
  async (saveChanges, saves) => {
    const { browser, profile, launch } = await session({
      profile: { name: "login", ...(saveChanges !== undefined && { save_changes: saveChanges }) },
    });
    expect(launch.profile_id).toBe(login);
    expect(profile).toMatchObject({ id: login, save: saves, facts: { id: login, name: "login" } });
    await control.bed.profiles.rename(login, "account");
    expect((await shown(browser.id)).profile).toMatchObject({ save: saves, facts: { name: "account" } });
    await control.bed.profiles.remove(login);
    expect((await shown(browser.id)).profile).toEqual({ id: login, save: saves });
  },
);

test("a pool's browsers show its profile and never save it; a session without one shows none", async () => {
  const pool = await filled({ profile: { name: "login" }, profile_id: login });
  expect((await lend(pool)).profile).toMatchObject({ id: login, save: false });
  expect((await lend(await filled())).profile).toBeUndefined();
});

test("lists find sessions by their profile's name now and by its id, however it came to them", async () => {
  const launched = await session({ profile: { id: login } });
  const pooled = await lend(await filled({ profile: { name: "login" }, profile_id: login }));
  const attached = await lend(await filled());
  await session({ profile: { id: await aProfile(control.bed, "other") } });
  expect(await patch(attached.browser.id, { profile: { name: "login" } })).toMatchObject({ kind: "done" });
  const found = async (query: string) =>
    (await control.listSessions({ limit: 20, offset: 0, status: "all", query })).items
      .map((item) => (item.kind === "session" ? item.session.browser.id : item.tombstone.id))
      .toSorted();
  const all = [launched, pooled, attached].map(({ browser }) => browser.id).toSorted();
  expect(await found(login)).toEqual(all);
  expect(await found("LOG")).toEqual(all);
  await control.bed.profiles.rename(login, "account");
  expect([await found("log"), await found("account")]).toEqual([[], all]);
  for (const id of all) await control.remove(id, callerOf());
  expect([await found(login), await found("account"), await found("log")]).toEqual([all, all, []]);
});

test("a PATCH attaches a profile where none is loaded: its node is asked, then the lease says so, and nobody else gets the browser", async () => {
  const pool = await filled();
  const { browser } = await lend(pool);
  const during: unknown[] = [];
  control.whileNodeWorks(async ({ id }) => during.push((await recordOf(id))?.lease));
  expect(
    await patch(browser.id, { profile: { name: "login", save_changes: true }, name: "mine" }),
  ).toMatchObject({
    kind: "done",
    value: {
      profile: { id: login, save: true, facts: { name: "login" } },
      browser: { lease: { name: "mine" } },
    },
  });
  expect(control.asked).toEqual([{ kind: "change", profile: { id: login, save: true } }]);
  expect(during).toMatchObject([{ altered: true, touched: true }]);
  expect(during[0]).not.toHaveProperty("profile");
  expect((await shown("mine")).profile).toMatchObject({ id: login, save: true });
  const released = control.release(pool.id, { session_id: browser.id }, callerOf());
  await until("the end", async () => (await recordOf(browser.id))?.state === "retiring");
  await gone(browser.id);
  await control.clock.advance(50);
  expect(await released).toMatchObject({ kind: "done" });
});

test("profile, viewport and network are one question, all or nothing; the start page comes last, which a restart would take back", async () => {
  const { browser } = await lend(await filled());
  await patch(browser.id, {
    start_url: "https://a.example/",
    viewport: { width: 5, height: 5 },
    profile: { id: login },
    network: { allowed_hosts: ["a.example"] },
  });
  expect(control.asked).toMatchObject([
    { kind: "change", profile: { save: false }, viewport: { width: 5 }, network: {} },
    { kind: "network" },
    { kind: "navigate" },
  ]);
});

test.each([
  ["launched from one", async () => await session({ profile: { name: "login" } })],
  [
    "leased from a pool with one",
    async () => await lend(await filled({ profile: { name: "login" }, profile_id: login })),
  ],
  [
    "given one before",
    async () => {
      const given = await lend(await filled());
      await patch(given.browser.id, { profile: { name: "login" } });
      return given;
    },
  ],
])(
  "where the browser was %s, another or the same is a conflict that no retry cures, and nothing changes",
  async (_, make) => {
    const { browser } = await make();
    const other = await aProfile(control.bed, "other");
    const [before, asked] = [await recordOf(browser.id), control.asked.length];
    for (const profile of [{ id: other }, { name: "login" }, { name: "login", save_changes: true }]) {
      expect(await patch(browser.id, { profile, name: "two" })).toMatchObject({
        kind: "refused",
        code: "profile_loaded",
      });
    }
    expect([await recordOf(browser.id), control.asked.length]).toEqual([before, asked]);
    expect(await control.bed.projects.findName("session", "two")).toBeUndefined();
  },
);

test("the official client's own retry of a PATCH that was made is no conflict, and asks nothing again", async () => {
  const { browser } = await lend(await filled());
  await patch(browser.id, { profile: { name: "login" } });
  expect(await patch(browser.id, { profile: { id: login } }, { retryCount: 1 })).toMatchObject({
    kind: "done",
    value: { profile: { id: login } },
  });
  expect(
    await patch(browser.id, { profile: { id: login, save_changes: true } }, { retryCount: 1 }),
  ).toMatchObject({ code: "profile_loaded" });
  expect(control.asked).toHaveLength(1);
});

test.each([
  ["failed", "launch_failed", "The archive is damaged"],
  ["silent", "node_silent", undefined],
] as const)(
  "a profile its node does not attach (%s) is not shown, the rest of the PATCH not made, and nobody else gets the browser",
  async (answer, code, text) => {
    const pool = await filled();
    const { browser } = await lend(pool);
    control.answerOfNode(answer, text);
    expect(await patch(browser.id, { profile: { name: "login" }, name: "two" })).toMatchObject({
      kind: "refused",
      code,
      ...(text && { message: text }),
    });
    const now = await shown(browser.id);
    expect([now.profile, now.browser.lease?.name]).toEqual([undefined, undefined]);
    expect(await control.bed.projects.findName("session", "two")).toBeUndefined();
    await control.release(pool.id, { session_id: browser.id }, callerOf());
    expect(await recordOf(browser.id)).toMatchObject({ state: "retiring", why: "altered" });
  },
);

test("a session that ends while its node attaches a profile is gone", async () => {
  const { browser } = await lend(await filled());
  control.whileNodeWorks(({ id }) => control.remove(id, callerOf()));
  expect(await patch(browser.id, { profile: { name: "login" } })).toMatchObject({
    kind: "refused",
    code: "browser_not_found",
  });
});

const saving = { profile: { name: "login", save_changes: true } };
/** Time for many looks, and for more answers of Redis than any that is not waited for would take. */
async function passes(id: BrowserId): Promise<void> {
  for (let looks = 0; looks < 20; looks += 1) {
    await recordOf(id);
    await control.clock.advance(50);
  }
}
/** Whether it has settled by now. */
const isSettled = async (work: Promise<unknown>): Promise<boolean> =>
  (await Promise.race([work.then(() => true), new Promise((resolve) => setImmediate(resolve))])) === true;

test("the DELETE of a session that saves answers when its browser is gone, and at the latest after the limit", async () => {
  for (const end of ["gone", "limit"] as const) {
    const { browser } = await session(saving);
    const deleted = control.remove(browser.id, callerOf());
    await until("the end", async () => (await recordOf(browser.id))?.state === "retiring");
    await passes(browser.id);
    expect(await isSettled(deleted)).toBe(false);
    if (end === "gone") await gone(browser.id);
    await until("the answer", async () => {
      await control.clock.advance(end === "gone" ? 50 : 10_000);
      return await isSettled(deleted);
    });
    expect(await deleted).toMatchObject({ kind: "done" });
    expect((await recordOf(browser.id))?.state).toBe(end === "gone" ? undefined : "retiring");
  }
});

test.each([
  ["without a profile", {}],
  ["that does not save", { profile: { name: "login" } }],
])("the DELETE of a session %s waits for nothing", async (_, body) => {
  const { browser } = await session(body);
  expect(await control.remove(browser.id, callerOf())).toMatchObject({ kind: "done" });
  expect((await recordOf(browser.id))?.state).toBe("retiring");
});

test("a caller who goes while its session saves loses nothing; the client's own retry waits for the same save", async () => {
  const { browser } = await session(saving);
  const caller = new AbortController();
  const first = control.remove(browser.id, callerOf({ gone: caller.signal }));
  await until("the end", async () => (await recordOf(browser.id))?.state === "retiring");
  caller.abort();
  expect(await first).toMatchObject({ kind: "done" });
  expect(await recordOf(browser.id)).toMatchObject({ state: "retiring", saving: true });
  const again = control.remove(browser.id, callerOf({ retryCount: 1 }));
  await passes(browser.id);
  expect(await isSettled(again)).toBe(false);
  await gone(browser.id);
  await until("the answer", async () => {
    await control.clock.advance(50);
    return await isSettled(again);
  });
  expect(await again).toMatchObject({ kind: "done" });
});

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
  await launchAll(pool);
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
    jobs: { add: async (more) => void control.bed.jobs.push(...more) },
    clock: systemClock,
    log: silentLog,
    fill: async () => {},
    refresh: makeRefreshPartition(control.bed),
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

test("a home that is no pool has nothing to be refreshed", async () => {
  const { browser } = await session(saving);
  await makeRefreshPartition(control.bed)(partitionOf(browser.id));
  expect((await recordOf(browser.id))?.state).toBe("leased");
});
