import Kernel, {
  AuthenticationError,
  BadRequestError,
  ConflictError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
} from "@onkernel/sdk";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSite, type Site } from "../support/browser/chromium-site.js";
import { type Daemon, startDaemon } from "../support/daemon/daemon.js";

let daemon: Daemon;
let site: Site;
let kernel: Kernel;
beforeAll(async () => {
  [daemon, site] = await Promise.all([startDaemon(), openSite()]);
  kernel = daemon.kernel();
});
afterAll(async () => {
  await site.close();
  await daemon.stop();
});

async function titleAt(cdpUrl: string, url: string): Promise<string> {
  const browser = await chromium.connectOverCDP(cdpUrl);
  const page = browser.contexts()[0]?.pages()[0];
  if (!page) throw new Error("the browser has no page");
  await page.goto(url);
  const title = await page.title();
  await browser.close();
  return title;
}

const failed = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no error",
    (error: unknown) => error,
  );

test("a pool is created, a browser acquired, driven, released, and the same session acquired again", async () => {
  const pool = await kernel.browserPools.create({ name: "round", size: 1, headless: true });
  expect(pool).toMatchObject({
    name: "round",
    acquired_count: 0,
    browser_pool_config: { size: 1, headless: true },
  });
  const filled = () => daemon.poolWhen("round", ({ available_count }) => available_count === 1);
  await filled();
  const first = await kernel.browserPools.acquire("round", { acquire_timeout_seconds: 50 });
  expect(await titleAt(first.cdp_ws_url, site.origin)).toBe("site");
  expect(await kernel.browserPools.release("round", { session_id: first.session_id })).toBeNull();
  const second = await kernel.browserPools.acquire(pool.id, { acquire_timeout_seconds: 50 });
  expect(second.session_id).toBe(first.session_id);
  expect(second.cdp_ws_url).not.toBe(first.cdp_ws_url);
  expect(await titleAt(second.cdp_ws_url, site.origin)).toBe("site");
  await expect(titleAt(first.cdp_ws_url, site.origin)).rejects.toThrow("410");
  await kernel.browserPools.release("round", { session_id: second.session_id, reuse: false });
  await filled();
  const third = await kernel.browserPools.acquire("round", { acquire_timeout_seconds: 50 });
  expect(third.session_id).not.toBe(first.session_id);
  await kernel.browserPools.delete("round", { force: true });
});

test("a pool is updated, flushed and deleted, with and without force", async () => {
  await kernel.browserPools.create({ name: "change", size: 1, headless: true });
  const idle = async (): Promise<string> =>
    (await daemon.poolWhen("change", (pool) => pool.available_count === 1),
    await daemon.browsersOf("change")).find(({ state }) => state === "idle")?.session_id ?? "";
  const before = await idle();
  expect(await kernel.browserPools.update("change", { name: "changed", timeout_seconds: 30 })).toMatchObject({
    name: "changed",
    browser_pool_config: { timeout_seconds: 30, size: 1 },
  });
  await kernel.browserPools.update("changed", { name: "change" });
  expect(await idle()).toBe(before);
  expect(await kernel.browserPools.flush("change")).toBeNull();
  await daemon.poolWhen("change", ({ available_count }) => available_count === 1);
  const lease = await kernel.browserPools.acquire("change", { acquire_timeout_seconds: 50 });
  expect(lease.session_id).not.toBe(before);
  expect(lease.timeout_seconds).toBe(30);
  expect(await failed(kernel.browserPools.delete("change"))).toMatchObject({
    status: 400,
    error: { code: "pool_in_use" },
  });
  expect((await kernel.browserPools.retrieve("change")).acquired_count).toBe(1);
  expect(await kernel.browserPools.delete("change", { force: true })).toBeNull();
  expect(await failed(kernel.browserPools.retrieve("change"))).toBeInstanceOf(NotFoundError);
  expect(await failed(kernel.browsers.retrieve(lease.session_id))).toBeInstanceOf(NotFoundError);
});

test("a wait that ends without a browser gives null", async () => {
  await daemon.makePool({ name: "busy" });
  const held = await kernel.browserPools.acquire("busy", { acquire_timeout_seconds: 30 });
  expect(await kernel.browserPools.acquire("busy", { acquire_timeout_seconds: 1 })).toBeNull();
  expect(await kernel.browserPools.acquire("busy", { acquire_timeout_seconds: 0 })).toBeNull();
  await kernel.browserPools.release("busy", { session_id: held.session_id });
  await kernel.browserPools.delete("busy");
});

test("lists are walked page by page, and none is left out or told twice", async () => {
  const names = Array.from({ length: 7 }, (_, at) => `page-${at}`);
  for (const name of names)
    await kernel.browserPools.create({ name, size: 1, fill_rate_per_minute: 0, headless: true });
  const seen: (string | undefined)[] = [];
  for await (const pool of kernel.browserPools.list({ limit: 3, query: "PAGE-" })) seen.push(pool.name);
  expect(seen.toSorted()).toEqual(names);
  for (const name of names) await kernel.browserPools.delete(name);
  expect((await kernel.browserPools.list({ query: "page-" })).getPaginatedItems()).toEqual([]);
});

test("errors come as the client's classes, and what a retry cannot cure is asked once", async () => {
  await kernel.browserPools.create({ name: "taken", size: 1, fill_rate_per_minute: 0, headless: true });
  let asked = 0;
  const counting = new Kernel({
    apiKey: kernel.apiKey,
    baseURL: daemon.url,
    fetch: (...args) => ((asked += 1), fetch(...args)),
  });
  const cases: [() => Promise<unknown>, unknown, string][] = [
    [
      () => counting.browserPools.create({ name: "taken", size: 1, headless: true }),
      ConflictError,
      "name_taken",
    ],
    [() => counting.browserPools.create({ size: 0 }), BadRequestError, "bad_request"],
    [() => counting.browserPools.retrieve("none"), NotFoundError, "pool_not_found"],
    [() => counting.browserPools.acquire("none", {}), NotFoundError, "pool_not_found"],
    [
      () => counting.browserPools.release("taken", { session_id: "0".repeat(24) }),
      NotFoundError,
      "browser_not_found",
    ],
    [() => counting.browsers.retrieve("none"), NotFoundError, "browser_not_found"],
    [() => counting.browsers.create({ gpu: true }), PermissionDeniedError, "insufficient_plan"],
    [() => counting.browsers.create({ gpu: true, headless: true }), BadRequestError, "bad_request"],
    [() => counting.browsers.create({ profile: { name: "p" } }), BadRequestError, "bad_request"],
    [
      () => daemon.kernel({ apiKey: "some_other_key_of_nobody" }).browserPools.list(),
      AuthenticationError,
      "unauthorized",
    ],
  ];
  for (const [work, type, code] of cases) {
    const error = await failed(work());
    expect(error, code).toBeInstanceOf(type);
    expect(error).toMatchObject({ error: { code } });
  }
  expect(asked).toBe(cases.length - 1);
  await kernel.browserPools.delete("taken");
});

test("more waiters than there may be are told to come back", async () => {
  const small = await startDaemon({ file: { acquire: { max_waiters: 1 } } });
  const client = small.kernel({ maxRetries: 0 });
  await client.browserPools.create({ name: "narrow", size: 1, fill_rate_per_minute: 0, headless: true });
  const waiting = client.browserPools.acquire("narrow", { acquire_timeout_seconds: 60 });
  await small.poolWhen("narrow", (pool) => pool.waiting_count === 1);
  expect(await failed(client.browserPools.acquire("narrow", { acquire_timeout_seconds: 3 }))).toBeInstanceOf(
    RateLimitError,
  );
  const stopped = small.stop();
  expect(await waiting).toBeNull();
  await stopped;
});

test("a browser on demand is created, listed, retrieved, updated and deleted", async () => {
  const made = await kernel.browsers.create({
    headless: true,
    timeout_seconds: 60,
    name: "alone",
    tags: { team: "a b" },
    viewport: { width: 800, height: 600 },
  });
  expect(made).toMatchObject({
    name: "alone",
    tags: { team: "a b" },
    headless: true,
    timeout_seconds: 60,
    viewport: { width: 800, height: 600 },
  });
  expect(await titleAt(made.cdp_ws_url, site.origin)).toBe("site");
  expect(
    (await kernel.browsers.list({ tags: { team: "a b" } }))
      .getPaginatedItems()
      .map(({ session_id }) => session_id),
  ).toEqual([made.session_id]);
  expect((await kernel.browsers.list({ query: "ALO" })).getPaginatedItems()).toHaveLength(1);
  expect(await kernel.browsers.retrieve("alone")).toMatchObject({
    session_id: made.session_id,
    cdp_ws_url: made.cdp_ws_url,
  });
  expect(await kernel.browsers.update("alone", { name: "renamed", tags: {} })).toMatchObject({
    name: "renamed",
  });
  expect(await failed(kernel.browsers.retrieve("alone"))).toBeInstanceOf(NotFoundError);
  expect(await kernel.browsers.deleteByID("renamed")).toBeNull();
  expect(await failed(kernel.browsers.retrieve(made.session_id))).toBeInstanceOf(NotFoundError);
  const deleted = (await kernel.browsers.list({ status: "deleted" })).getPaginatedItems();
  expect(deleted[0]).toMatchObject({ session_id: made.session_id, name: "renamed" });
  expect(deleted[0]?.deleted_at).toBeDefined();
});

test("sessions are listed over more than one page", async () => {
  await daemon.makePool({ name: "crowd", size: 4, engine: "headless-shell" });
  const held = await Promise.all(
    Array.from({ length: 4 }, () => kernel.browserPools.acquire("crowd", { acquire_timeout_seconds: 30 })),
  );
  const seen: string[] = [];
  for await (const session of kernel.browsers.list({ limit: 1, query: "crowd" }))
    seen.push(session.session_id);
  expect(seen.toSorted()).toEqual(held.map(({ session_id }) => session_id).toSorted());
  await kernel.browserPools.delete("crowd", { force: true });
});
