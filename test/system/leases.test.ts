import { join } from "node:path";
import { connect } from "puppeteer-core";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openSite, type Site } from "../support/browser/chromium-site.js";
import { until } from "../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../support/daemon/daemon.js";
import { getJson, refusedUpgrade } from "../support/gateway/gateway-bed.js";
import { connectBidi } from "../support/gateway/raw-bidi.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { whyRetired } from "../support/store/redis-look.js";

let daemon: Daemon;
let site: Site;
beforeAll(async () => {
  [daemon, site] = await Promise.all([startDaemon(), openSite()]);
});
afterAll(async () => {
  await site.close();
  await daemon.stop();
});

async function acquire(pool: string, body: object = {}): Promise<Lease> {
  const asked = { acquire_timeout_seconds: 50, ...body };
  const got = await daemon.call(`POST /browser_pools/${pool}/acquire`, asked);
  expect(got.status, got.text).toBe(200);
  return got.body as Lease;
}
const release = async (pool: string, lease: Lease, body: object = {}): Promise<number> =>
  (await daemon.call(`POST /browser_pools/${pool}/release`, { session_id: lease.session_id, ...body }))
    .status;
const statusOf = async (session: string): Promise<number> =>
  (await daemon.call(`GET /browsers/${session}`)).status;
const jsonUrl = (lease: Lease, path = "/json/version"): string =>
  lease.cdp_ws_url.replace(/^ws/, "http").replace("/cdp?", `/cdp${path}?`);

async function open(client: RawCdp, url: string): Promise<string> {
  const page = await client.attach();
  await client.send("Page.navigate", { url }, page);
  await until(
    `${url} loaded`,
    async () =>
      (await client.evaluate("location.href + document.readyState", page)) === `${new URL(url).href}complete`,
  );
  return page;
}

test("a released lease is fenced: its sockets are cut, its URL answers 410, and the next holder is not disturbed", async () => {
  await daemon.makePool({ name: "fence" });
  const old = await acquire("fence");
  const clients = [await connectRaw(old.cdp_ws_url), await connectRaw(old.cdp_ws_url)];
  expect((await getJson(jsonUrl(old))).status).toBe(200);
  expect(await release("fence", old)).toBe(204);
  for (const { closed } of clients) expect((await closed).code).toBe(4410);
  expect(await getJson(jsonUrl(old))).toMatchObject({ status: 410, body: { code: "browser_gone" } });
  const next = await acquire("fence");
  expect(next.session_id).toBe(old.session_id);
  const client = await connectRaw(next.cdp_ws_url);
  expect(await refusedUpgrade(old.cdp_ws_url)).toMatchObject({ status: 410, body: { code: "browser_gone" } });
  for (const path of ["/json", "/json/", "/json/list", "/json/list/", "/json/version/"]) {
    expect((await getJson(jsonUrl(old, path))).status).toBe(410);
    expect((await getJson(jsonUrl(next, path))).status).toBe(200);
  }
  const foreign = `${old.lease_id.slice(0, -2)}zz`;
  expect([
    await release("fence", old, { lease_id: old.lease_id }),
    await release("fence", old, { lease_id: foreign }),
  ]).toEqual([204, 409]);
  expect(await client.evaluate("6 * 7", await client.attach())).toBe(42);
  await client.close();
});

test("a URL without the lease's token opens nothing", async () => {
  await daemon.makePool({ name: "token", size: 2 });
  const [mine, theirs] = [await acquire("token"), await acquire("token")];
  const tokenOf = (lease: Lease): string => new URL(lease.cdp_ws_url).searchParams.get("token") ?? "";
  const forged = [
    mine.cdp_ws_url.split("?")[0] ?? "",
    mine.cdp_ws_url.replace(tokenOf(mine), tokenOf(theirs)),
    mine.cdp_ws_url.slice(0, -1),
    mine.cdp_ws_url.replace(mine.lease_id, theirs.lease_id),
    mine.cdp_ws_url.replace(mine.session_id, theirs.session_id),
  ];
  for (const url of forged)
    expect(await refusedUpgrade(url)).toMatchObject({ status: 401, body: { code: "unauthorized" } });
});

test("a lease is driven by WebDriver BiDi too, and fenced there as well", async () => {
  await daemon.makePool({ name: "bidi" });
  const lease = await acquire("bidi");
  const client = await connectBidi(lease.webdriver_ws_url);
  expect(await client.evaluate(await client.begin(), "6 * 7")).toBe(42);
  const { origin, pathname, searchParams } = new URL(lease.webdriver_ws_url.replace(/^ws/, "http"));
  const status = origin + pathname.replace(/\/session$/, "/status");
  const authorization = `Basic ${Buffer.from(`lease:${searchParams.get("token")}`).toString("base64")}`;
  const ask = async (): Promise<unknown> => (await fetch(status, { headers: { authorization } })).json();
  expect(await ask()).toMatchObject({ value: { ready: true } });
  expect(await release("bidi", lease)).toBe(204);
  expect((await client.closed).code).toBe(4410);
  expect(await refusedUpgrade(lease.webdriver_ws_url)).toMatchObject({ status: 410 });
  expect(await ask()).toMatchObject({ code: "browser_gone", value: { error: "invalid session id" } });
});

test("a lease that nobody opened is free again at its release, and releasing twice is releasing", async () => {
  await daemon.makePool({ name: "unopened" });
  const lease = await acquire("unopened");
  expect(await release("unopened", lease)).toBe(204);
  expect((await daemon.call("GET /browser_pools/unopened")).body).toMatchObject({
    available_count: 1,
    resetting_count: 0,
    acquired_count: 0,
  });
  expect([
    await release("unopened", lease),
    await release("unopened", lease, { lease_id: lease.lease_id }),
  ]).toEqual([204, 204]);
});

/** The lease of a browser that was used and released, and the one after it. */
async function handOn(pool: string, reuse: boolean): Promise<{ lease: Lease; next: Lease }> {
  const lease = await acquire(pool, { name: `${pool}-lease`, tags: { team: "a" } });
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await open(client, site.origin);
  await client.evaluate("localStorage.left = 'kept'; document.cookie = 'left=kept'", page);
  await client.send("Target.createTarget", { url: "about:blank" });
  expect(await release(pool, lease, { reuse })).toBe(204);
  return { lease, next: await acquire(pool) };
}
/** A browser whose reset has failed, as one that takes too long, is replaced, and rightly. */
async function handOnReset(pool: string, roundsLeft = 3): ReturnType<typeof handOn> {
  const round = await handOn(pool, true);
  const { lease, next } = round;
  if (next.session_id === lease.session_id || roundsLeft === 1) return round;
  const why = await whyRetired(join(daemon.place.dataDir, "redis/redis.sock"), lease.session_id);
  expect(why).toBe("reset_failed");
  expect(await release(pool, next)).toBe(204);
  return await handOnReset(pool, roundsLeft - 1);
}

const reuses = [
  { reset: "none", reuse: true, isSame: true, kept: "kept" },
  { reset: "state", reuse: true, isSame: true, kept: null },
  { reset: "relaunch", reuse: true, isSame: false, kept: null },
  { reset: "none", reuse: false, isSame: false, kept: null },
];
test.each(reuses)(
  "with reset_on_release $reset and reuse $reuse the next holder finds what it says",
  async ({ reset, reuse, isSame, kept }) => {
    const name = `reuse-${reset}-${reuse}`;
    await daemon.makePool({ name, reset_on_release: reset });
    const { lease, next } = await (reset === "state" ? handOnReset(name) : handOn(name, reuse));
    expect(next.session_id === lease.session_id).toBe(isSame);
    expect(next).not.toHaveProperty("name");
    expect(next).not.toHaveProperty("tags");
    const after = await connectRaw(next.cdp_ws_url);
    const { result } = await after.send("Target.getTargets");
    const pages = (result?.targetInfos as { type: string }[] | undefined)?.filter(
      ({ type }) => type === "page",
    );
    expect(pages).toHaveLength(kept === null ? 1 : 2);
    const found = await open(after, site.origin);
    expect(await after.evaluate("localStorage.left ?? null", found)).toBe(kept);
    expect(await after.evaluate("document.cookie", found)).toBe(kept === null ? "" : "left=kept");
    await after.close();
    await daemon.poolWhen(name, (pool) => pool.available_count + pool.acquired_count === 1);
  },
  400_000,
);

/** Chromium answers before the page has the size that it was given. */
const expectSize = (client: RawCdp, page: string, size: string): Promise<void> =>
  expect.poll(() => client.evaluate("[innerWidth, innerHeight].join()", page)).toBe(size);

test("name, tags, viewport and page of a lease are changed, and only for that lease", async () => {
  await daemon.makePool({ name: "patch", viewport: { width: 1000, height: 700 } });
  const lease = await acquire("patch", { name: "before", tags: { a: "1" } });
  const headers = { "x-remuda-lease-id": lease.lease_id };
  const changed = await daemon.call(
    "PATCH /browsers/before",
    {
      name: "after",
      tags: { b: "2" },
      viewport: { width: 640, height: 480 },
      start_url: `${site.origin}/page`,
    },
    headers,
  );
  expect(changed).toMatchObject({
    status: 200,
    body: {
      name: "after",
      tags: { b: "2" },
      viewport: { width: 640, height: 480 },
      start_url: `${site.origin}/page`,
    },
  });
  expect([await statusOf("before"), await statusOf("after")]).toEqual([404, 200]);
  const client = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  await until("the page opened", async () => (await client.evaluate("location.pathname", page)) === "/page");
  await expectSize(client, page, "640,480");
  expect(await daemon.call("PATCH /browsers/after", { tags: {}, name: "" }, headers)).toMatchObject({
    status: 200,
  });
  expect((await daemon.call(`GET /browsers/${lease.session_id}`)).body).not.toHaveProperty("name");
  await release("patch", lease);
  const next = await acquire("patch");
  expect(next).toMatchObject({ session_id: lease.session_id, viewport: { width: 1000, height: 700 } });
  const after = await connectRaw(next.cdp_ws_url);
  await expectSize(after, await after.attach(), "1000,700");
  await after.close();
});

test("an acquire's start page is on its way before the first client is let in, and is that lease's alone", async () => {
  await daemon.makePool({ name: "start" });
  for (const path of ["/one", "/two"]) {
    const lease = await acquire("start", { start_url: site.origin + path });
    expect(lease).toMatchObject({ start_url: site.origin + path });
    const client = await connectRaw(lease.cdp_ws_url);
    const page = await client.attach();
    await until(`${path} opened`, async () => (await client.evaluate("location.pathname", page)) === path);
    await release("start", lease);
    await client.closed;
  }
  expect(await acquire("start")).not.toHaveProperty("start_url");
});

test("an idle browser of a pool is no session; a leased one is, until it is deleted", async () => {
  await daemon.makePool({ name: "visible" });
  const idle = (await daemon.browsersOf("visible"))[0]?.session_id ?? "";
  for (const operation of ["GET", "DELETE"])
    expect((await daemon.call(`${operation} /browsers/${idle}`)).status).toBe(404);
  expect((await daemon.call(`PATCH /browsers/${idle}`, { name: "mine" })).status).toBe(404);
  const lease = await acquire("visible", { name: "seen" });
  expect(lease.session_id).toBe(idle);
  const listed = (await daemon.call("GET /browsers?query=visible")).body as Lease[];
  expect(listed.map(({ session_id }) => session_id)).toEqual([idle]);
  const client = await connectRaw(lease.cdp_ws_url);
  expect((await daemon.call("DELETE /browsers/seen")).status).toBe(204);
  await client.closed;
  expect(await statusOf(idle)).toBe(404);
  expect(await refusedUpgrade(lease.cdp_ws_url)).toMatchObject({
    status: 410,
    body: { message: expect.stringContaining("deleted") },
  });
  expect((await daemon.call(`GET /browsers/${idle}?include_deleted=true`)).body).toMatchObject({
    session_id: idle,
    name: "seen",
    reason: "deleted",
    usage_status: "ready",
    pool: { name: "visible" },
  });
  expect(
    ((await daemon.call("GET /browsers?status=deleted&query=visible")).body as Lease[]).map(
      ({ session_id }) => session_id,
    ),
  ).toEqual([idle]);
  await daemon.poolWhen("visible", (pool) => pool.available_count === 1);
});

test("clients that close the browser or its last page only disconnect themselves; the session goes on", async () => {
  await daemon.makePool({ name: "closing" });
  const lease = await acquire("closing");
  const one = await chromium.connectOverCDP(lease.cdp_ws_url);
  await one.contexts()[0]?.pages()[0]?.close();
  await one.close();
  const two = await connect({ browserWSEndpoint: lease.cdp_ws_url });
  const [page] = await two.pages();
  await page?.goto(site.origin);
  expect(await page?.title()).toBe("site");
  await two.close();
  expect(await statusOf(lease.session_id)).toBe(200);
  const three = await connectRaw(lease.cdp_ws_url);
  expect(await three.evaluate("6 * 7", await three.attach())).toBe(42);
  await three.close();
});
