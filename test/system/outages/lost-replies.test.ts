import type Kernel from "@onkernel/sdk";
import { APIConnectionError, APIError } from "@onkernel/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { type Cut, type FaultProxy, openFaultProxy } from "../../support/store/fault-proxy.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";

let daemon: Daemon;
let proxy: FaultProxy;
let direct: Kernel;
let lossy: Kernel;
beforeAll(async () => {
  daemon = await startDaemon();
  proxy = await openFaultProxy(daemon.url);
  direct = daemon.kernel();
  lossy = daemon.kernel({ baseURL: proxy.url });
});
afterAll(async () => {
  await proxy.close();
  await daemon.stop();
});

const cuts: Cut[] = ["before the reply", "as the reply begins", "within the reply"];
const leaseOf = (session: unknown): Lease => session as Lease;
const keyed = (key: string): { headers: Record<string, string> } => ({ headers: { "idempotency-key": key } });
const outcomeOf = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

test("an acquire whose caller goes before the reply keeps no browser: the only one is there for the retry", async () => {
  await daemon.makePool({ name: "only" });
  proxy.cut("POST /only/acquire", "before the reply", 2);
  const lease = leaseOf(await lossy.browserPools.acquire("only", { acquire_timeout_seconds: 20 }));
  expect(await daemon.poolWhen("only", (pool) => pool.acquired_count === 1)).toMatchObject({
    available_count: 0,
  });
  await lossy.browserPools.release("only", { session_id: lease.session_id });
  await daemon.poolWhen("only", (pool) => pool.available_count === 1);
});

test("nor does any of a hundred callers who go as they ask", async () => {
  await daemon.makePool({ name: "gone" });
  const once = daemon.kernel({ baseURL: proxy.url, maxRetries: 0 });
  for (let round = 0; round < 100; round += 1) {
    proxy.cut("POST /gone/acquire", "before the reply", 1);
    expect(await outcomeOf(once.browserPools.acquire("gone", {}))).toBeInstanceOf(APIConnectionError);
    const lease = leaseOf(await direct.browserPools.acquire("gone", { acquire_timeout_seconds: 20 }));
    await direct.browserPools.release("gone", { session_id: lease.session_id });
  }
});

test.each(cuts)(
  "an acquire with an idempotency key that loses its reply (%s) gets the same lease when asked again",
  async (at) => {
    const name = `keyed-${cuts.indexOf(at)}`;
    await daemon.makePool({ name, size: 2 });
    proxy.cut(`POST /${name}/acquire`, at, 1);
    const first = await outcomeOf(lossy.browserPools.acquire(name, {}, keyed(name)));
    const again = leaseOf(await lossy.browserPools.acquire(name, {}, keyed(name)));
    if ("session_id" in (first as object)) expect(leaseOf(first).cdp_ws_url).toBe(again.cdp_ws_url);
    expect((await direct.browserPools.retrieve(name)).acquired_count).toBe(1);
    const client = await connectRaw(again.cdp_ws_url);
    expect((await client.send("Browser.getVersion")).result).toBeDefined();
    await client.close();
  },
);

test.each(cuts)(
  "a release that loses its reply (%s) does not end the lease of the next holder when it is repeated",
  async (at) => {
    const name = `release-${cuts.indexOf(at)}`;
    await daemon.makePool({ name });
    const first = leaseOf(await direct.browserPools.acquire(name, { acquire_timeout_seconds: 20 }));
    const next = direct.browserPools.acquire(name, { acquire_timeout_seconds: 20 });
    await daemon.poolWhen(name, (pool) => pool.waiting_count === 1);
    proxy.cut(`POST /${name}/release`, at);
    const released = lossy.browserPools.release(name, { session_id: first.session_id });
    const second = leaseOf(await next);
    expect(second.session_id).toBe(first.session_id);
    const client = await connectRaw(second.cdp_ws_url);
    expect(await released).toBeNull();
    expect((await client.send("Browser.getVersion")).result).toBeDefined();
    expect(await direct.browsers.retrieve(second.session_id)).toMatchObject({ lease_id: second.lease_id });
    await client.close();
    // A first attempt names nobody's lease but means this one.
    await direct.browserPools.release(name, { session_id: second.session_id });
    await daemon.poolWhen(name, (pool) => pool.available_count === 1);
  },
);

test.each(cuts)(
  "a browser on demand whose creation loses its reply (%s) is the same when asked again under its key",
  async (at) => {
    proxy.cut("POST /browsers", at, 1);
    const key = keyed(`create-${at}`.replaceAll(" ", "-"));
    const body = { headless: true, name: `made-${cuts.indexOf(at)}` };
    await outcomeOf(lossy.browsers.create(body, key));
    const again = await lossy.browsers.create(body, key);
    expect((await direct.browsers.list({ query: body.name })).getPaginatedItems()).toHaveLength(1);
    proxy.cut(`DELETE /${again.session_id}`, at, 1);
    await lossy.browsers.deleteByID(again.session_id);
    expect((await direct.browsers.list({ query: body.name })).getPaginatedItems()).toEqual([]);
  },
);

test("a caller who goes while a browser is launched for it leaves none behind", async () => {
  proxy.cut("POST /browsers", "before the reply", 1);
  await outcomeOf(
    daemon
      .kernel({ baseURL: proxy.url, maxRetries: 0 })
      .browsers.create({ headless: true, name: "unwanted" }),
  );
  const named = await until("the name free again", () =>
    daemon
      .kernel({ maxRetries: 0 })
      .browsers.create({ headless: true, name: "unwanted" })
      .catch(() => undefined),
  );
  await direct.browsers.deleteByID(named.session_id);
  await until("nothing on demand left", async () => {
    const { text } = await daemon.call("GET /metrics");
    const counts = text
      .split("\n")
      .filter((line) => line.startsWith("remuda_pool_browsers") && line.includes("on demand"));
    return counts.every((line) => line.endsWith(" 0"));
  });
});

test("a lease whose delivered reply was lost on the way ends by its inactivity, and only then", async () => {
  await daemon.makePool({ name: "lapse", timeout_seconds: 10 });
  proxy.cut("POST /lapse/acquire", "as the reply begins", 1);
  const once = daemon.kernel({ baseURL: proxy.url, maxRetries: 0 });
  const lostAt = performance.now();
  expect(await outcomeOf(once.browserPools.acquire("lapse", {}))).toBeInstanceOf(APIConnectionError);
  expect((await direct.browserPools.retrieve("lapse")).acquired_count).toBe(1);
  await daemon.poolWhen("lapse", (pool) => pool.acquired_count === 0);
  expect(performance.now() - lostAt).toBeGreaterThan(9900);
  await daemon.poolWhen("lapse", (pool) => pool.available_count === 1);
});

/** Mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

test("while replies are dropped at random, no holder loses its lease and in the end none is left", async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = randomFrom(seed);
  await daemon.makePool({ name: "storm", size: 3 });
  const hurried = daemon.kernel({ baseURL: proxy.url, maxRetries: 0 });
  let cycles = 0;
  const cutSome = (operation: string): void => {
    if (random() < 0.5) proxy.cut(operation, cuts[Math.floor(random() * 3)] ?? "before the reply");
  };
  // A refusal may be cut in its body as well: then its status came, and nothing else.
  const isLost = (error: unknown): boolean =>
    error instanceof APIConnectionError ||
    error instanceof TypeError ||
    error instanceof SyntaxError ||
    (error instanceof APIError && error.error === undefined);
  const persist = async <Value>(work: () => Promise<Value>, tries = 20): Promise<Value> =>
    await work().catch((error: unknown) => {
      if (!isLost(error) || tries === 0) throw error;
      return persist(work, tries - 1);
    });
  const holder = async (who: number): Promise<void> => {
    for (let turn = 0; turn < 8; turn += 1) {
      cutSome("POST /storm/acquire");
      const key = keyed(`storm-${who}-${turn}`);
      const lease = leaseOf(
        await persist(() => hurried.browserPools.acquire("storm", { acquire_timeout_seconds: 50 }, key)),
      );
      const client = await connectRaw(lease.cdp_ws_url);
      let isOver = false;
      void client.closed.then(() => (isOver = true));
      expect((await client.send("Browser.getVersion")).result).toBeDefined();
      expect(isOver, `seed ${seed}, holder ${who}, turn ${turn}`).toBe(false);
      cutSome("POST /storm/release");
      const named = { session_id: lease.session_id, lease_id: lease.lease_id };
      // The repeat of a release that was heard may come when the browser has a new holder.
      await persist(() => hurried.browserPools.release("storm", named));
      expect((await client.closed).code).toBe(4410);
      cycles += 1;
    }
  };
  await Promise.all([0, 1, 2, 3, 4].map(holder));
  expect(cycles).toBe(40);
  await daemon.poolWhen(
    "storm",
    (pool) => pool.available_count === 3 && pool.acquired_count === 0 && pool.waiting_count === 0,
  );
});
