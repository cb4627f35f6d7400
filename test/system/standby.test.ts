import { isDeepStrictEqual } from "node:util";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { openSite } from "../support/browser/chromium-site.js";
import { until } from "../support/browser/chromium-until.js";
import { type Daemon, type DaemonClient, startDaemon } from "../support/daemon/daemon.js";
import { Fleet } from "../support/daemon/fleet.js";
import { getJson } from "../support/gateway/gateway-bed.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { openRedisProxy } from "../support/store/redis-proxy.js";
import { startRedis } from "../support/store/redis.js";

type Session = Record<string, unknown> & {
  readonly session_id: string;
  readonly lease_id: string;
  readonly created_at: string;
  readonly cdp_ws_url: string;
};
const shape = { headless: true, count: 2 };
const body = { headless: true, timeout_seconds: 90, tags: { team: "x" } };

/** Its beats are seldom late, however busy the machine is: what a late node has is not lent. */
const patient = { beat_period_ms: 10_000, lost_after_ms: 60_000 };

/** Stopped with the test, which fails where anything of it is left. */
async function started(
  { node = {}, ...file }: { readonly node?: object; readonly [section: string]: unknown },
  redisUrl?: string,
): Promise<Daemon> {
  const settings = { ...file, node: { ...patient, ...node } };
  const daemon = await startDaemon({ file: settings, ...(redisUrl !== undefined && { redisUrl }) });
  onTestFinished(() => daemon.stop());
  return daemon;
}
async function create(client: DaemonClient, over: object = {}, headers = {}): Promise<Session> {
  const { status, text, body: session } = await client.call("POST /browsers", { ...body, ...over }, headers);
  if (status !== 200) throw new Error(`not created: ${status} ${text}`);
  return session as Session;
}
/** The browsers that have been launched by now, as the log tells. */
const launchedIn = (log: string): readonly string[] =>
  [...log.matchAll(/"browser":"([0-9a-z]+)"[^\n]*"msg":"browser launched"/g)].map(([, id = ""]) => id);
const launchedAtLeast = (daemon: { readonly log: string }, count: number): Promise<unknown> =>
  until(`${count} launched`, async () => launchedIn(daemon.log).length >= count);
const browsersIn = async (client: DaemonClient): Promise<number> =>
  ((await client.call("GET /nodes")).body as { browsers: number }[]).reduce(
    (sum, one) => sum + one.browsers,
    0,
  );

/** What an answer says, without what is each session's own: ids, tokens and instants. */
const likeness = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value)
      .replaceAll(/[0-9a-z]{24}\.[\w-]{43}/g, "token")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "instant")
      .replaceAll(/"(uptime_ms|uid)":\d+/g, '"$1":0')
      .replaceAll(/[0-9A-F]{32}/g, "target")
      .replaceAll(/[0-9a-z]{24}/g, "id"),
  );
const discovered = async ({ cdp_ws_url: url }: Session, path: string): Promise<unknown> => {
  const { status, body: said } = await getJson(url.replace(/^ws/, "http").replace("/cdp?", `/cdp${path}?`));
  return likeness({ status, said });
};

/** What a page of it sees, in the page that is open and then in a new one. */
async function seenIn(client: RawCdp, url: string): Promise<unknown> {
  const ask = async (method: string, params?: object): Promise<Record<string, unknown>> =>
    (await client.send(method, params)).result ?? {};
  const { targetInfos } = await ask("Target.getTargets");
  const seen = [];
  for (const isNew of [false, true]) {
    const { targetId } = isNew ? await ask("Target.createTarget", { url }) : {};
    const page = await client.attach(targetId as string | undefined);
    if (!isNew) await client.send("Page.navigate", { url }, page);
    await until(
      "page",
      async () => (await client.evaluate("location.href + document.readyState", page)) === `${url}complete`,
    );
    seen.push(
      await client.evaluate(
        `JSON.stringify([navigator.userAgent, navigator.webdriver, navigator.languages, innerWidth, innerHeight,
           screen.width, screen.height, devicePixelRatio, document.cookie, localStorage.length,
           navigator.hardwareConcurrency, Intl.DateTimeFormat().resolvedOptions().timeZone])`,
        page,
      ),
    );
  }
  const { cookies } = await ask("Storage.getCookies");
  return likeness({ seen, cookies, targets: targetInfos });
}

test("a session that stood by is like one that was launched, in all but the time it took", async () => {
  const site = await openSite();
  onTestFinished(() => site.close());
  const daemon = await started({ standby: [{ ...shape, count: 1 }] });
  await launchedAtLeast(daemon, 1);
  expect((await daemon.call("GET /browsers")).body).toEqual([]);
  expect((await daemon.call("GET /browser_pools")).body).toEqual([]);
  const [stood = ""] = launchedIn(daemon.log);
  const before = Date.now();
  const both = await Promise.all([create(daemon), create(daemon)]);
  const first = both.find(({ session_id: id }) => id === stood);
  const launched = both.find(({ session_id: id }) => id !== stood);
  if (!first || !launched) throw new Error(`it was not lent once: ${JSON.stringify([stood, both])}`);
  expect(Date.parse(first.created_at)).toBeGreaterThanOrEqual(before);
  expect(likeness(first)).toEqual(likeness(launched));
  for (const path of ["/json/version", "/json/list"])
    // Chromium says the title of a page a little later than that there is one, of either.
    await expect
      .poll(() => Promise.all([discovered(first, path), discovered(launched, path)]))
      .toSatisfy(areAlike);

  const clients = [await connectRaw(first.cdp_ws_url), await connectRaw(launched.cdp_ws_url)] as const;
  const url = `${site.origin}/page`;
  expect(await seenIn(clients[0], url)).toEqual(await seenIn(clients[1], url));
  // A node tells of what was used a little later.
  await expect.poll(() => Promise.all([used(daemon, first), used(daemon, launched)])).toSatisfy(areAlike);
  const viewport = { width: 700, height: 500 };
  for (const { session_id: id } of both)
    expect((await daemon.call(`PATCH /browsers/${id}`, { viewport })).status).toBe(200);
  // What was used goes on being told each second.
  await expect
    .poll(async () => ((await daemon.call("GET /browsers")).body as Session[]).map(likeness))
    .toSatisfy((all: unknown[]) => all.length === 2 && areAlike(all));

  for (const { session_id: id } of both)
    expect((await daemon.call(`DELETE /browsers/${id}`)).status).toBe(204);
  for (const { closed } of clients) expect((await closed).code).toBe(4410);
  expect(await discovered(first, "/json/version")).toEqual(await discovered(launched, "/json/version"));
  const [one, two, ...more] = (await daemon.call("GET /browsers?status=deleted")).body as Session[];
  expect(likeness({ ...one, usage: null })).toEqual(likeness({ ...two, usage: null }));
  expect(more).toEqual([]);
  // Another has taken its place.
  await until("as many as before", async () => (await browsersIn(daemon)) === 1);
});

const areAlike = ([stoodBy, newly]: unknown[]): boolean => isDeepStrictEqual(stoodBy, newly);

/** What the session says once its page's requests are counted. */
async function used(daemon: Daemon, { session_id: id }: Session): Promise<unknown> {
  const found = async () =>
    (await daemon.call(`GET /browsers/${id}`)).body as { usage: { requests: number; denied: number } };
  await until("usage", async () => (await found()).usage.requests > 0);
  const { usage, ...rest } = await found();
  return likeness({ ...rest, denied: usage.denied, requests: usage.requests });
}

test("its start page is opened, its telemetry captured and its key remembered; callers at once share none", async () => {
  const site = await openSite();
  onTestFinished(() => site.close());
  const daemon = await started({ standby: [{ ...shape, count: 3 }] });
  await launchedAtLeast(daemon, 3);
  const stood = launchedIn(daemon.log);
  const over = {
    start_url: `${site.origin}/page`,
    telemetry: { enabled: true, browser: { page: { enabled: true } } },
  };
  const headers = { "idempotency-key": "one" };
  const [one, two, three] = await Promise.all([
    create(daemon, over, headers),
    create(daemon),
    create(daemon, { name: "mine" }),
  ]);
  const ids = [one, two, three].map(({ session_id: id }) => id);
  expect(ids.toSorted()).toEqual(stood.toSorted());
  expect((await create(daemon, over, headers)).lease_id).toBe(one.lease_id);
  expect(one).toMatchObject({ ...over, telemetry: { enabled: true } });
  const client = await connectRaw(one.cdp_ws_url);
  await until("start page", async () =>
    JSON.stringify((await client.send("Target.getTargets")).result).includes(`"url":"${over.start_url}"`),
  );
  await client.close();
  await until("events", async () => {
    const { body: events } = await daemon.call(`GET /browsers/${one.session_id}/telemetry/events`);
    return JSON.stringify(events).includes("page_");
  });
  expect((await daemon.call("GET /browsers/mine")).body).toMatchObject({ session_id: three.session_id });
});

test("where there is no room beside them they go, and come back when there is", async () => {
  const daemon = await started({ standby: [shape], node: { max_browsers: 2 } });
  await launchedAtLeast(daemon, 2);
  const stood = launchedIn(daemon.log);
  const first = await create(daemon, { stealth: true });
  await daemon.makePool({ name: "herd" });
  expect(stood).not.toContain(first.session_id);
  expect(await daemon.call("POST /browsers", body)).toMatchObject({ status: 529 });
  expect(await browsersIn(daemon)).toBe(2);
  const { body: scaling } = await daemon.call("GET /scaling");
  expect(scaling).toMatchObject({ browsers: { idle: 1, unplaceable: 0 } });
  await daemon.call("DELETE /browser_pools/herd?force=true");
  await daemon.call(`DELETE /browsers/${first.session_id}`);
  await launchedAtLeast(daemon, 6);
  await create(daemon);
  expect(daemon.log).not.toContain("holds as many browsers as it may");
});

let fleet: Fleet | undefined;
// Before the test is finished, which ends what is left with force.
afterEach(async () => {
  await fleet?.close();
  fleet = undefined;
});

test("a draining node and a lost one have none that is lent", async () => {
  fleet = await Fleet.open();
  // A node that is taken for late or lost because the machine is busy has neither.
  const node = { beat_period_ms: 1000, lost_after_ms: 8000 };
  const a = await fleet.node("a", { node });
  const b = await fleet.node("b", { node });
  const control = await fleet.control({ standby: [shape], node, acquire: { control_lost_after_ms: 10_000 } });
  const count = (): number => [a, b].flatMap(({ daemon }) => launchedIn(daemon.log)).length;
  await until("one on each", () => count() === 2);
  expect(launchedIn(a.daemon.log)).toHaveLength(1);
  expect((await control.call("POST /nodes/a/drain", { limit_seconds: 300 })).status).toBe(200);
  const [first, second] = [await create(control), await create(control)];
  expect([first.session_id, second.session_id].filter((id) => launchedIn(a.daemon.log).includes(id))).toEqual(
    [],
  );
  await control.call("DELETE /nodes/a/drain");
  // Whatever takes its place goes where fewest are.
  await create(control);
  await until("again on a", async () => launchedIn(a.daemon.log).length >= 2);
  await fleet.kill(a.daemon);
  await until("a is lost", async () => ((await control.call("GET /nodes")).body as unknown[]).length === 1);
  const last = await create(control);
  // What a node has written arrives here after what its control has answered.
  await until("it is on b", () => launchedIn(b.daemon.log).includes(last.session_id));
});

test("a project has its own; another's sessions and the default project's are launched", async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const projects = { enabled: true };
  const before = await startDaemon({ file: { projects }, redisUrl: redis.url });
  const made = await before.call("POST /org/projects", { name: "other" });
  await before.stop();
  const { id } = made.body as { id: string };
  const standby = [{ ...shape, project: id }];
  const daemon = await started({ projects, standby }, redis.url);
  await launchedAtLeast(daemon, 2);
  const stood = launchedIn(daemon.log);
  expect(stood.every((browser) => browser.startsWith(id))).toBe(true);
  const within = { "x-kernel-project-id": id };
  const foreign = await create(daemon);
  const own = await create(daemon, {}, within);
  expect(stood).toContain(own.session_id);
  expect(stood).not.toContain(foreign.session_id);
  expect((await daemon.call(`GET /browsers/${own.session_id}`)).status).toBe(404);
  expect((await daemon.call(`GET /browsers/${own.session_id}`, undefined, within)).status).toBe(200);
  await daemon.call(`DELETE /browsers/${own.session_id}`, undefined, within);
  await daemon.call(`DELETE /browsers/${foreign.session_id}`);
  // A session that is over counts until its browser has gone; those that stand by do not.
  await until("it may be archived", async () => {
    const { status } = await daemon.call(`PATCH /org/projects/${id}`, { status: "archived" });
    expect([200, 409]).toContain(status);
    return status === 200;
  });
  await until("none is left", async () => (await browsersIn(daemon)) === 0);
});

test("a project in which browsers are launched to stand by, and nothing else, is archived each time", async () => {
  fleet = await Fleet.open();
  const projects = { enabled: true };
  const before = await fleet.control({ projects });
  const { id } = (await before.call("POST /org/projects", { name: "other" })).body as { id: string };
  fleet.forget(before);
  await before.stop();
  const { daemon: node } = await fleet.node("a", { projects });
  const proxy = await openRedisProxy(fleet.redis.url);
  onTestFinished(() => proxy.close());
  const control = await fleet.control({ projects, standby: [{ ...shape, project: id }] }, proxy.url);
  // A launch may end between any two of the looks that the control has at the project.
  proxy.delay(20);
  const change = async (status: string): Promise<number> =>
    (await control.call(`PATCH /org/projects/${id}`, { status })).status;
  const archived: number[] = [];
  // On a busy machine few launches have ended by the twentieth time.
  while (archived.length < 20 || launchedIn(node.log).length <= 5) {
    await until("active", async () => (await change("active")) === 200);
    // Another while later each time.
    for (let look = 0; look < archived.length % 10; look += 1) await control.call(`GET /org/projects/${id}`);
    archived.push(await change("archived"));
  }
  expect(new Set(archived)).toEqual(new Set([200]));
  proxy.delay(0);
});
