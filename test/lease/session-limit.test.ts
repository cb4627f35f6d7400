import { afterEach, beforeEach, expect, test } from "vitest";
import { onDemandPartition } from "../../src/base/ids.js";
import { organizationKey } from "../../src/store/redis/keys.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { nodeFacts } from "../support/store/node-facts.js";
import { nodeA } from "../support/store/pool-bed.js";
import { claimOf } from "../support/store/store-bed.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`limit${(count += 1)}`, { concurrentSessions: 1 });
});
afterEach(() => control.close());

const beat = (): Promise<unknown> => control.bed.nodes.beat(nodeFacts(nodeA));
const create = (key?: string) =>
  control.createSession({ headless: true }, callerOf(key === undefined ? {} : { idempotencyKey: key }));
const used = async (): Promise<number> =>
  Number((await control.bed.redis.hget(organizationKey("usage"), "session")) ?? 0);

/** The one browser that is being launched. */
async function launching() {
  const found = async () => {
    const { browsers } = await control.bed.poolStore.browsers(onDemandPartition);
    return browsers.find(({ state }) => state === "launching");
  };
  await expect.poll(found).toBeDefined();
  const browser = await found();
  if (!browser) throw new Error("nothing is launched");
  return { id: browser.id, claim: claimOf(browser) };
}
async function launch(): Promise<void> {
  const { id, claim } = await launching();
  await control.bed.reports.launched(id, claim, "{}");
}

test("there is one session at a time; its end makes room at the reply", async () => {
  await beat();
  const first = create();
  await launching();
  expect(await create()).toMatchObject({
    code: "too_many_sessions",
    message: expect.stringMatching(/^The organization has/),
    retryAfterSeconds: 5,
  });
  await launch();
  const granted = await first;
  if (granted.kind !== "granted") throw new Error(granted.kind);
  expect(await create()).toMatchObject({ code: "too_many_sessions" });
  expect(await control.createPool({ size: 1, headless: true }, callerOf())).toMatchObject({
    code: "limit_exceeded",
    message: expect.stringContaining("the organization's limit of concurrent sessions"),
  });
  await control.remove(granted.session.browser.id, callerOf());
  expect(await used()).toBe(0);
});

test("a launch that fails everywhere gives its place back at the reply", async () => {
  await beat();
  const first = create();
  const { id, claim } = await launching();
  await control.bed.reports.launchFailed(id, claim, "no display");
  expect(await first).toMatchObject({ code: "launch_failed" });
  expect(await used()).toBe(0);
});

test("a launch for which no node has room gives its place back at the reply", async () => {
  expect(await create()).toMatchObject({ code: "capacity_exhausted" });
  expect(await used()).toBe(0);
});

test("a repeat under a key is given what the first was, however full it is", async () => {
  await beat();
  const first = create("once");
  await launching();
  const again = create("once");
  expect((await first).kind).toBe("refused");
  await launch();
  expect((await again).kind).toBe("granted");
  expect((await create("once")).kind).toBe("granted");
  expect(await create("other")).toMatchObject({ code: "too_many_sessions" });
  expect(await used()).toBe(1);
});
