import { afterEach, beforeEach, expect, test } from "vitest";
import { newRequestId, partitionOf } from "../../src/base/ids.js";
import type { SessionPatch } from "../../src/spec/bodies.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import type { Session } from "../../src/pool/session.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { type Held, PoolBed } from "../support/store/pool-bed.js";
import { filledPool, lendFrom, patchSession } from "../support/daemon/control-pools.js";
import type { AcquireBody } from "../../src/spec/bodies.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`session-patch${(count += 1)}`);
});
afterEach(() => control.close());

const holderOf = async (name: string) => (await control.bed.projects.findName("session", name))?.owner;

const filled = (size = 1, over: Partial<PoolSpec> = {}): Promise<PoolBed> =>
  filledPool(control, { size, name: "herd", ...over });
const lend = (pool: PoolBed, body: AcquireBody = {}): Promise<Held> => lendFrom(control, pool, body);

const patched = (ref: string, patch: SessionPatch): Promise<Session> => patchSession(control, ref, patch);

test("a PATCH changes what it names: name and tags are replaced and cleared, the rest stays", async () => {
  const { id, lease } = await lend(await filled(), { name: "one", tags: { a: "1" } });
  expect((await patched(id, { name: "two" })).browser.lease).toMatchObject({
    name: "two",
    tags: '{"a":"1"}',
  });
  expect([await holderOf("one"), await holderOf("two")]).toEqual([undefined, lease]);
  expect((await patched("two", { tags: { b: "2" } })).browser.lease).toMatchObject({
    name: "two",
    tags: '{"b":"2"}',
  });
  const cleared = (await patched(id, { name: "", tags: {} })).browser.lease;
  expect([cleared?.name, cleared?.tags, await holderOf("two")]).toEqual([undefined, undefined, undefined]);
  expect(control.asked).toEqual([]);
});

test("a viewport and a start page go to the browser, the viewport first", async () => {
  const { id } = await lend(await filled());
  const { lease } = (
    await patched(id, { viewport: { width: 800, height: 600 }, start_url: "https://a.example/" })
  ).browser;
  expect(control.asked).toEqual([
    { kind: "change", viewport: { width: 800, height: 600 } },
    { kind: "navigate", url: "https://a.example/" },
  ]);
  expect(lease).toMatchObject({
    startUrl: "https://a.example/",
    viewport: '{"width":800,"height":600,"refresh_rate":60}',
  });
});

test.each([
  ["failed", "not_supported"],
  ["silent", "node_silent"],
] as const)(
  "a viewport the browser does not take (%s) changes nothing but the mark that was there before",
  async (answer, code) => {
    const pool = await filled();
    const { id } = await lend(pool, { name: "one" });
    const before = await pool.record(id);
    const mark = { touched: true, registeredAt: expect.any(Number) as number };
    const marked = { ...before, lease: { ...before.lease, ...mark } };
    const during: unknown[] = [];
    control.whileNodeWorks(async () => during.push(await pool.record(id)));
    control.answerOfNode(answer);
    const patch = {
      name: "two",
      start_url: "https://a.example/",
      viewport: { width: 1, height: 1 },
      network: { allowed_hosts: ["a.example"] },
    };
    expect(await control.updateSession(id, patch, callerOf())).toMatchObject({ code });
    expect(await pool.record(id)).toEqual(marked);
    expect(during).toEqual([marked]);
    expect(await holderOf("two")).toBeUndefined();
    expect(control.asked).toHaveLength(1);
  },
);

test("telemetry that its node does not confirm is kept, and nothing else of its PATCH is done", async () => {
  const pool = await filled();
  const { id } = await lend(pool, { name: "one", tags: { a: "1" } });
  const before = await pool.record(id);
  control.answerOfNode("silent");
  const patch = {
    name: "two",
    tags: {},
    start_url: "https://a.example/",
    telemetry: { browser: { page: { enabled: true } } },
  };
  expect(await control.updateSession(id, patch, callerOf())).toMatchObject({ code: "node_silent" });
  const { lease } = await pool.record(id);
  expect(lease?.telemetry).toContain("page");
  const { telemetry: _, telemetryRevision: __, ...rest } = lease ?? {};
  expect(rest).toEqual(before.lease);
  expect([await holderOf("two"), await holderOf("one")]).toEqual([undefined, before.lease?.id]);
  control.answerOfNode("done");
  expect((await patched(id, patch)).browser.lease).toMatchObject({
    name: "two",
    startUrl: "https://a.example/",
    telemetry: lease?.telemetry,
  });
});

test("what the browser has taken before its node says nothing of telemetry is in the record", async () => {
  const pool = await filled();
  const { id } = await lend(pool);
  let questions = 0;
  control.whileNodeWorks(async () => {
    if ((questions += 1) === 2) control.answerOfNode("silent");
  });
  const patch = {
    name: "two",
    viewport: { width: 640, height: 480 },
    telemetry: { browser: { page: { enabled: true } } },
  };
  expect(await control.updateSession(id, patch, callerOf())).toMatchObject({ code: "node_silent" });
  expect(questions).toBe(2);
  const { lease } = await pool.record(id);
  expect(lease?.viewport).toContain("640");
  expect([lease?.name, lease?.telemetry]).toEqual([undefined, expect.stringContaining("page")]);
});

test("telemetry that others change at each merge is refused, and told what the browser has taken before", async () => {
  const { poolStore } = control.bed;
  const { id, lease } = await lend(await filled());
  const findHeld = poolStore.findHeld.bind(poolStore);
  let others = 0;
  const changeByOther = async (): Promise<void> => {
    const held = await findHeld(partitionOf(id), lease);
    const over = held?.browser.lease.telemetryRevision ?? 0;
    const telemetry = { text: '{"enabled":false}', over };
    const change = { set: {}, clear: [], touched: false, telemetry };
    await poolStore.touch(partitionOf(id), { browser: id, lease, change, request: newRequestId() });
    others += 1;
  };
  control.whileNodeWorks(changeByOther);
  poolStore.findHeld = async (...asked) => {
    const held = await findHeld(...asked);
    if (control.asked.length > 0) await changeByOther();
    return held;
  };
  const telemetry = { browser: { page: { enabled: true } } };
  const patch = { name: "two", viewport: { width: 640, height: 480 }, telemetry };
  expect(await control.updateSession(id, patch, callerOf())).toMatchObject({
    code: "conflict",
    details: [{ code: "browser_changed" }],
  });
  expect(others).toBeGreaterThanOrEqual(5);
  poolStore.findHeld = findHeld;
  const { browser } = (await findHeld(partitionOf(id), lease)) ?? {};
  expect(browser?.lease).toMatchObject({ viewport: expect.stringContaining("640") });
  expect([browser?.lease.name, browser?.lease.telemetry]).toEqual([undefined, '{"enabled":false}']);
  expect(await holderOf("two")).toBeUndefined();
});

test("a viewport that the browser has taken is told where Redis goes away then", async () => {
  const { id } = await lend(await filled());
  control.whileNodeWorks(async () => void control.broken.add("touch"));
  expect(
    await control.updateSession(id, { name: "two", viewport: { width: 640, height: 480 } }, callerOf()),
  ).toMatchObject({ code: "store_unavailable", details: [{ code: "browser_changed" }] });
});

test("a viewport that the browser has taken is told where its node does not take the network after it", async () => {
  const { id } = await lend(await filled());
  control.whileNodeWorks(async () => {
    if (control.asked.length === 2) control.answerOfNode("failed");
  });
  const patch = { viewport: { width: 640, height: 480 }, network: { allowed_hosts: ["a.example"] } };
  expect(await control.updateSession(id, patch, callerOf())).toMatchObject({
    code: "conflict",
    details: [{ code: "browser_changed" }],
  });
});

test("what a control that died has touched and not noted is restored before the next holder", async () => {
  const pool = await filled();
  const { id } = await lend(pool);
  control.whileNodeWorks(() => Promise.reject(new Error("the control died")));
  await expect(
    control.updateSession(id, { viewport: { width: 640, height: 480 } }, callerOf()),
  ).rejects.toThrow("died");
  expect(await control.release(pool.id, { session_id: id }, callerOf())).toMatchObject({ kind: "done" });
  expect(await pool.record(id)).toMatchObject({ state: "resetting", mode: "none" });
});

test("a start page that cannot be opened is recorded all the same", async () => {
  const { id } = await lend(await filled());
  control.answerOfNode("silent");
  expect((await patched(id, { start_url: "https://a.example/" })).browser.lease?.startUrl).toBe(
    "https://a.example/",
  );
});

test.each([
  ["a taken name", { name: "taken", tags: {} }, "name_taken"],
  ["a profile that is not there", { profile: { name: "p" }, name: "two" }, "bad_request"],
  ["no profile", { profile: { id: "" } }, "bad_request"],
  ["two choices of a profile", { profile: { id: "a", name: "b" } }, "bad_request"],
  ["an empty proxy", { proxy: {} }, "bad_request"],
  ["two proxies", { proxy: { mode: "direct" as const }, proxy_id: "p" }, "bad_request"],
  ["an empty allowlist", { network: { allowed_hosts: [] } }, "bad_request"],
  ["a file", { start_url: "file:///etc/passwd", name: "two" }, "bad_request"],
])("%s is refused and changes nothing", async (_, patch, code) => {
  const pool = await filled(2);
  const { id } = await lend(pool, { name: "one", tags: { a: "1" } });
  await lend(pool, { name: "taken" });
  const before = await pool.record(id);
  expect(await control.updateSession(id, patch, callerOf())).toMatchObject({ code });
  expect(await pool.record(id)).toEqual(before);
  expect(await holderOf("two")).toBeUndefined();
});

test("two PATCHes to one name: the one that is refused does not take the name from the other", async () => {
  const pool = await filled();
  const { id, lease } = await lend(pool);
  control.answerOfNode("failed");
  const failing = control.updateSession(id, { name: "two", viewport: { width: 1, height: 1 } }, callerOf());
  const [refused] = await Promise.all([failing, control.updateSession(id, { name: "two" }, callerOf())]);
  expect(refused).toMatchObject({ code: "not_supported" });
  expect((await pool.record(id)).lease?.name).toBe("two");
  expect(await holderOf("two")).toBe(lease);
});
