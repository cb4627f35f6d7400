import { afterEach, beforeEach, expect, test } from "vitest";
import { newLeaseId, newProxyId } from "../../src/base/ids.js";
import type { SessionPatch } from "../../src/spec/bodies.js";
import { makeFill } from "../../src/pool/fill.js";
import type { PoolSpec } from "../../src/spec/launch-template.js";
import type { Session } from "../../src/pool/session.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { type Held, nodeA, PoolBed } from "../support/store/pool-bed.js";
import { claimOf } from "../support/store/store-bed.js";

let control: ControlBed;
let count = 0;
beforeEach(async () => {
  control = await openControlBed(`sessions${(count += 1)}`);
});
afterEach(() => control.close());

const retry = () => callerOf({ retryCount: 1 });
const holderOf = async (name: string) => (await control.bed.projects.findName("session", name))?.owner;

/** A pool that the project knows, filled as the daemon fills it. */
async function filled(size = 1, over: Partial<PoolSpec> = {}): Promise<PoolBed> {
  const { bed } = control;
  const pool = await PoolBed.create(bed, { size, name: "herd", ...over });
  await bed.projects.addPool(pool.id);
  await bed.projects.openPool(pool.id);
  await bed.nodes.beat({
    id: nodeA,
    host: "h",
    port: 1,
    memoryBytes: 2 ** 40,
    maxBrowsers: 10,
    isDraining: false,
    canLaunch: true,
    engines: ["chromium"],
  });
  await makeFill({
    poolStore: bed.poolStore,
    nodes: bed.nodes,
    jobs: { add: async () => {} },
    random: () => 0,
    recycle: { maxAgeMs: null, jitterRatio: 0 },
  })(pool.partition);
  for (const browser of await pool.browsers()) await bed.reports.launched(browser.id, claimOf(browser), "{}");
  return pool;
}

async function lend(
  pool: PoolBed,
  body: { name?: string; tags?: Record<string, string> } = {},
): Promise<Held> {
  const lent = await control.acquire(pool.id, body, callerOf());
  const browser = lent.kind === "granted" ? lent.session.browser : undefined;
  if (!browser?.lease) throw new Error(`not granted: ${lent.kind}`);
  return { browser, id: browser.id, lease: browser.lease.id };
}

async function patched(ref: string, patch: SessionPatch): Promise<Session> {
  const outcome = await control.updateSession(ref, patch, callerOf());
  if (outcome.kind !== "done") throw new Error(JSON.stringify(outcome));
  return outcome.value;
}

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

test("a session names its proxy as it is called now", async () => {
  const id = newProxyId();
  const record = {
    protocol: "http",
    host: "proxy.example",
    port: 3128,
    hasPassword: false,
    hasCaBundle: false,
    bypassHosts: [],
  } as const;
  await control.bed.proxies.create({ id, record, name: "out", most: 10 });
  const held = await lend(await filled(1, { proxy_id: id }));
  const shown = async () => {
    const got = await control.getSession(held.id, { includeDeleted: false });
    return got.kind === "done" && got.value.kind === "session"
      ? [got.value.session.launch.proxy_id, got.value.session.proxyName]
      : got;
  };
  expect(await shown()).toEqual([id, "out"]);
  await control.bed.proxies.rename(id, "away");
  expect(await shown()).toEqual([id, "away"]);
  await control.bed.proxies.remove(id);
  expect(await shown()).toEqual([id, undefined]);
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
    const marked = { ...before, lease: { ...before.lease, touched: true } };
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

test("a network that comes with a viewport is made ready with it, and asked for once all the rest is noted", async () => {
  const pool = await filled();
  const { id, lease } = await lend(pool);
  const noted: unknown[] = [];
  control.whileNodeWorks(async () => {
    const { lease: held } = await pool.record(id);
    noted.push([held?.name, held?.networkWanted?.revision]);
    if (held?.networkWanted)
      await control.bed.reports.applied({
        browser: id,
        lease,
        revision: held.networkWanted.revision,
        outcome: "applied",
      });
  });
  const patch = {
    name: "all",
    viewport: { width: 640, height: 480 },
    network: { allowed_hosts: ["a.example"] },
  };
  expect((await patched(id, patch)).browser.lease).toMatchObject({
    name: "all",
    viewport: expect.stringContaining("640"),
    network: { revision: expect.any(Number) },
  });
  expect(control.asked).toMatchObject([
    { kind: "change", viewport: { width: 640, height: 480 }, network: { allowedHosts: '["a.example"]' } },
    { kind: "network", revision: noted.flat()[3] },
  ]);
  expect(noted).toEqual([
    [undefined, undefined],
    ["all", expect.any(Number)],
  ]);
  expect((await pool.record(id)).lease).toMatchObject({ network: { allowedHosts: '["a.example"]' } });
});

test("a network is asked of the node after the record says so, before anything else is written, and shown once it is in force", async () => {
  const pool = await filled();
  const { id, lease } = await lend(pool);
  control.answerOfNode("silent");
  const silent = await control.updateSession(
    id,
    { name: "other", network: { allowed_hosts: [" A.example ", "a.example"] } },
    callerOf(),
  );
  expect(silent).toMatchObject({
    kind: "refused",
    code: "node_silent",
    message: expect.stringContaining("not in force yet"),
  });
  const { lease: asked } = await pool.record(id);
  expect(asked).toMatchObject({ networkWanted: { allowedHosts: '["a.example"]' } });
  const revision = asked?.networkWanted?.revision ?? 0;
  expect(control.asked).toMatchObject([{ kind: "network", revision, change: { revision } }]);
  expect([asked?.name, asked?.network]).toEqual([undefined, undefined]);
  await control.bed.reports.applied({ browser: id, lease, revision, outcome: "applied" });
  control.answerOfNode("done");
  expect((await patched(id, { name: "other" })).browser.lease).toMatchObject({
    name: "other",
    network: { revision, allowedHosts: '["a.example"]' },
  });
});

test.each(["applied", "touch"])(
  "a network that is in force is told as such where Redis goes away then (%s), and the repeat is harmless",
  async (call) => {
    const pool = await filled();
    const { id } = await lend(pool);
    control.whileNodeWorks(async () => void control.broken.add(call));
    const patch = { name: `late-${call.toLowerCase()}`, network: { allowed_hosts: ["a.example"] } };
    expect(await control.updateSession(id, patch, callerOf())).toMatchObject({
      kind: "refused",
      code: "store_unavailable",
      details: [{ code: "network_in_force" }],
      message: expect.stringContaining("in force"),
    });
    control.whileNodeWorks(async () => {});
    control.broken.clear();
    expect((await patched(id, patch)).browser.lease).toMatchObject({
      name: patch.name,
      network: { allowedHosts: '["a.example"]' },
    });
  },
);

test("an allowlist does not come beside a policy of WebRTC's own addresses", async () => {
  const { id } = await lend(await filled(1, { browser_policy: { WebRtcUdpPortRange: "1-2" } }));
  const refused = await control.updateSession(id, { network: { allowed_hosts: ["a.example"] } }, callerOf());
  expect(refused).toMatchObject({
    code: "bad_request",
    details: [
      { message: "browser_policy.WebRtcUdpPortRange: cannot be combined with network.allowed_hosts" },
    ],
  });
  expect(control.asked).toEqual([]);
  expect(await control.updateSession(id, { network: { allowed_hosts: null } }, callerOf())).toMatchObject({
    kind: "done",
  });
});

test("a network its node cannot put in force is a conflict", async () => {
  const { id } = await lend(await filled());
  control.answerOfNode("failed");
  expect(await control.updateSession(id, { network: { allowed_hosts: null } }, callerOf())).toMatchObject({
    kind: "refused",
    code: "conflict",
  });
  expect(await control.updateSession(id, { proxy: { id: "none" } }, callerOf())).toMatchObject({
    kind: "refused",
    code: "bad_request",
  });
});

test("a start page has to be within the list that will be in force", async () => {
  const pool = await filled(1, { network: { allowed_hosts: ["a.example"] } });
  expect(await control.acquire(pool.id, { start_url: "https://b.example/" }, callerOf())).toMatchObject({
    kind: "refused",
    code: "bad_request",
  });
  const { id, lease } = await lend(pool);
  const refused = {
    kind: "refused",
    code: "bad_request",
    details: [{ message: expect.stringContaining("start_url") }],
  };
  expect(await control.updateSession(id, { start_url: "https://b.example/" }, callerOf())).toMatchObject(
    refused,
  );
  expect(
    await control.updateSession(
      id,
      { start_url: "https://a.example/", network: { allowed_hosts: ["b.example"] } },
      callerOf(),
    ),
  ).toMatchObject(refused);
  expect(control.asked).toEqual([]);
  await patched(id, { start_url: "https://b.example/", network: { allowed_hosts: ["b.example"] } });
  const revision = (await pool.record(id)).lease?.networkWanted?.revision ?? 0;
  await control.bed.reports.applied({ browser: id, lease, revision, outcome: "applied" });
  await patched(id, { start_url: "https://b.example/again" });
  expect(await control.updateSession(id, { start_url: "https://a.example/" }, callerOf())).toMatchObject(
    refused,
  );
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

test("operations that name another lease than the present one change nothing", async () => {
  const pool = await filled();
  const earlier = await lend(pool);
  await pool.release(earlier);
  const present = await lend(pool);
  const late = callerOf({ lease: earlier.lease });
  expect(await control.updateSession(present.id, { name: "late" }, late)).toMatchObject({
    code: "lease_superseded",
  });
  expect(await control.remove(present.id, late)).toMatchObject({ code: "lease_superseded" });
  expect(
    await control.release(pool.id, { session_id: present.id }, callerOf({ lease: newLeaseId() })),
  ).toMatchObject({ code: "lease_superseded" });
  // What is released is released.
  expect(await control.release(pool.id, { session_id: present.id }, late)).toMatchObject({ kind: "done" });
  expect((await pool.record(present.id)).lease?.id).toBe(present.lease);
});

test("a release is done once: its repeat, by whatever reference to the pool, is no error and ends nothing", async () => {
  const pool = await filled();
  const held = await lend(pool);
  expect(
    await control.release(pool.id, { session_id: held.id, reuse: false }, callerOf({ lease: held.lease })),
  ).toMatchObject({ kind: "done" });
  expect(await control.release(pool.id, { session_id: held.id }, retry())).toMatchObject({ kind: "done" });
  await pool.clear();
  expect(await control.release(pool.id, { session_id: held.id }, retry())).toMatchObject({ kind: "done" });
  expect(
    await control.release(pool.id, { session_id: held.id }, callerOf({ lease: held.lease })),
  ).toMatchObject({ kind: "done" });
  expect(
    await control.release(
      pool.id,
      { session_id: held.id },
      callerOf({ lease: "0123456789abcdef01234567" as typeof held.lease }),
    ),
  ).toMatchObject({ code: "lease_superseded" });
  expect(await control.release("nowhere", { session_id: held.id }, callerOf())).toMatchObject({
    code: "pool_not_found",
  });
  expect(await control.release(pool.id, { session_id: "nothing" }, callerOf())).toMatchObject({
    code: "browser_not_found",
  });
});

test("a DELETE ends the session; only its repeat by the client's own retry is no error", async () => {
  const pool = await filled();
  const held = await lend(pool, { name: "one" });
  expect(await control.remove("one", callerOf())).toMatchObject({ kind: "done" });
  for (const ref of [held.id, "one"]) {
    expect(await control.remove(ref, retry())).toMatchObject({ kind: "done" });
    expect(await control.remove(ref, callerOf())).toMatchObject({ code: "browser_not_found" });
  }
  await pool.clear();
  for (const ref of [held.id, "one"])
    expect(await control.remove(ref, retry())).toMatchObject({ kind: "done" });
  expect(await control.remove("other", retry())).toMatchObject({ code: "browser_not_found" });
});

test("an idle browser of a pool is no session", async () => {
  const pool = await filled();
  const [idle] = await pool.browsers();
  const id = idle?.id ?? "";
  expect(await control.getSession(id, { includeDeleted: true })).toMatchObject({ code: "browser_not_found" });
  expect(await control.updateSession(id, {}, callerOf())).toMatchObject({ code: "browser_not_found" });
  expect(await control.remove(id, callerOf())).toMatchObject({ code: "browser_not_found" });
  expect(await control.listSessions({ limit: 20, offset: 0, status: "all" })).toMatchObject({ items: [] });
});

test("a session that is over is shown only where that is asked for: the last of a name, an id before a name", async () => {
  const pool = await filled(2);
  const first = await lend(pool, { name: "one" });
  await control.remove(first.id, callerOf());
  await pool.age(1000);
  const second = await lend(pool, { name: "one" });
  await control.remove(second.id, callerOf());
  expect(await control.getSession("one", { includeDeleted: false })).toMatchObject({
    code: "browser_not_found",
  });
  expect(await control.getSession("one", { includeDeleted: true })).toMatchObject({
    value: { kind: "deleted", tombstone: { id: second.id, reason: "deleted" } },
  });
  expect(await control.getSession(first.id, { includeDeleted: true })).toMatchObject({
    value: { tombstone: { id: first.id } },
  });
});

test("pages of a list are disjoint and complete, whatever was made at the same instant; filters are joined", async () => {
  const pool = await filled(5);
  for (let i = 0; i < 5; i += 1)
    await lend(pool, { name: `session-${i}`, tags: { odd: String(i % 2), all: "yes" } });
  const seen: string[] = [];
  for (let offset = 0; offset < 6; offset += 2) {
    const { items } = await control.listSessions({ limit: 2, offset, status: "active" });
    seen.push(...items.map((item) => (item.kind === "session" ? item.session.browser.id : "")));
  }
  expect(new Set(seen).size).toBe(5);
  const named = async (query: object) =>
    (await control.listSessions({ limit: 20, offset: 0, status: "active", ...query })).items
      .map((item) => (item.kind === "session" ? item.session.browser.lease?.name : ""))
      .toSorted();
  expect(await named({ tags: { odd: "1" } })).toEqual(["session-1", "session-3"]);
  expect(await named({ tags: { odd: "1", all: "no" } })).toEqual([]);
  expect(await named({ query: "SESSION-3" })).toEqual(["session-3"]);
  expect(await named({ query: "HeR" })).toHaveLength(5);
  expect(await named({ query: pool.id })).toHaveLength(5);
  expect(await named({ region: "us-west" })).toEqual([]);
});

test("a session that ends while it is listed is left out", async () => {
  const pool = await filled();
  await pool.lend();
  control.bed.poolStore.findLaunchConfig = async () => undefined;
  expect(await control.listSessions({ limit: 20, offset: 0, status: "active" })).toMatchObject({ items: [] });
});
