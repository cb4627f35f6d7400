import type { AnyRecord } from "../support/store/store-bed.js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BrowserId, type ProfileId } from "../../src/base/ids.js";
import type { SessionCreate, SessionPatch } from "../../src/spec/bodies.js";
import type { Session } from "../../src/pool/session.js";
import { until } from "../support/browser/chromium-until.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { PoolBed } from "../support/store/pool-bed.js";
import { aProfile } from "../support/node/registered.js";
import {
  acquireFrom,
  beatOfNode,
  createSession,
  filledPool,
  reportGone,
} from "../support/daemon/control-pools.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";

let control: ControlBed;
let count = 0;
let login: ProfileId;
beforeEach(async () => {
  control = await openControlBed(`profiles${(count += 1)}`);
  login = await aProfile(control.bed, "login");
  await beatOfNode(control);
});
afterEach(() => control.close());

const filled = (over: Partial<PoolSpec> = {}): Promise<PoolBed> => filledPool(control, { size: 1, ...over });
const lend = (pool: PoolBed): Promise<Session> => acquireFrom(control, pool);
const session = (body: SessionCreate): Promise<Session> => createSession(control, body);
const recordOf = async (id: BrowserId): Promise<AnyRecord | undefined> =>
  (await control.bed.poolStore.findBrowser(id))?.browser;

async function shown(ref: string): Promise<Session> {
  const got = await control.getSession(ref, { includeDeleted: false });
  if (got.kind !== "done" || got.value.kind !== "session") throw new Error(JSON.stringify(got));
  return got.value.session;
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
  await reportGone(control, browser.id);
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
