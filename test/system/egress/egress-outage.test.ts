import { afterEach, beforeEach, expect, test } from "vitest";
import { openSite, type Site } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { arrivals, askedAt, askForever } from "../../support/egress/egress-traffic.js";
import { stateOf } from "../../support/living.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { openRedisProxy, type RedisProxy } from "../../support/store/redis-proxy.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";

let redis: TestRedis;
let way: RedisProxy;
/** The first is allowed, the second is not or no longer. */
let first: Site;
let second: Site;
beforeEach(async () => {
  [redis, first, second] = await Promise.all([startRedis(), openSite(), openSite()]);
  way = await openRedisProxy(redis.url);
});
afterEach(async () => {
  await way.close();
  await Promise.all([redis.stop(), first.close(), second.close()]);
});

// Whoever is cut off here is not to be taken for lost.
const patient = {
  node: { beat_period_ms: 500, lost_after_ms: 60_000 },
  acquire: { control_beat_period_ms: 500, control_lost_after_ms: 60_000 },
};
const hostOf = ({ origin }: Site): string => new URL(origin).host;

interface Opened {
  readonly lease: Lease;
  readonly client: RawCdp;
  readonly page: string;
}

async function open(
  control: Pick<Daemon, "call">,
  pool: string,
  url: (lease: Lease) => string = ({ cdp_ws_url }) => cdp_ws_url,
): Promise<Opened> {
  const lease = (await control.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 30 }))
    .body as Lease;
  const client = await connectRaw(url(lease));
  const page = await client.attach();
  await askForever(
    client,
    page,
    [first, second].map(({ origin }) => `${origin}/?asked=`),
  );
  await until("the first answer", () => first.requests.length > 0);
  return { lease, client, page };
}
const wait = ({ client, page }: Opened, ms: number): Promise<unknown> =>
  client.evaluate(`new Promise((done) => setTimeout(done, ${ms}))`, page);
const flows = (site: Site): Promise<unknown> => {
  const before = site.requests.length;
  return until("requests again", () => site.requests.length > before + 3);
};

test("a PATCH that the node cannot hear of through Redis is in force all the same, told directly, and the record says so", async () => {
  const control = await startDaemon({ role: "control", redisUrl: redis.url, file: patient });
  const node = await startDaemon({
    role: "node",
    redisUrl: way.url,
    file: { ...patient, drain: { limit_seconds: 0 } },
  });
  await control.makePool({ name: "herd" });
  const opened = await open(control, "herd", ({ cdp_ws_url }) =>
    cdp_ws_url.replace(new URL(control.url).host, new URL(node.url).host),
  );
  await until("the other too", () => second.requests.length > 0);
  await way.cut();
  const patched = await control.call(`PATCH /browsers/${opened.lease.session_id}`, {
    network: { allowed_hosts: [hostOf(first)] },
  });
  expect(patched).toMatchObject({ status: 200, body: { network: { allowed_hosts: [hostOf(first)] } } });
  const arrived = await arrivals(second.requests, async () => {
    await flows(first);
    await wait(opened, 1500);
  });
  expect(arrived).toBe(0);
  expect((await control.call(`GET /browsers/${opened.lease.session_id}`)).body.network.allowed_hosts).toEqual(
    [hostOf(first)],
  );
  const later = await arrivals(second.requests, async () => {
    await way.restore();
    await flows(first);
    await wait(opened, 500);
  });
  expect(later).toBe(0);
  await node.stop();
  await control.stop();
});

test("a node that stands still is told to be silent, and puts the change in force when it wakes up; a strict one lets nothing out before", async () => {
  const control = await startDaemon({ role: "control", redisUrl: redis.url, file: patient });
  const strict = { ...patient, egress: { contact_limit_ms: 4000 }, drain: { limit_seconds: 0 } };
  const node = await spawnDaemon(new DaemonPlace({ role: "node", redisUrl: redis.url, file: strict }));
  await control.makePool({ name: "herd" });
  const { lease, client } = await open(control, "herd", ({ cdp_ws_url }) =>
    cdp_ws_url.replace(new URL(control.url).host, new URL(node.url).host),
  );
  await until("the other too", () => second.requests.length > 0);
  node.signal("SIGSTOP");
  await until("it to stand still", () => stateOf(node.pid) === "T");
  const stoppedAt = Date.now();
  // The site comes to what had reached it before this first.
  await (await fetch(second.origin)).text();
  const before = second.requests.length;
  const patched = await control.call(`PATCH /browsers/${lease.session_id}`, {
    network: { allowed_hosts: [hostOf(first)] },
  });
  expect(patched).toMatchObject({
    status: 503,
    body: { code: "node_silent", message: expect.stringContaining("not in force yet") as string },
  });
  expect(Number(patched.headers.get("retry-after"))).toBeGreaterThan(0);
  // Still the old list: the record never tells of one that is not in force.
  expect((await control.call(`GET /browsers/${lease.session_id}`)).body.network).not.toHaveProperty(
    "allowed_hosts",
  );
  node.signal("SIGCONT");
  await until(
    "it in force",
    async () =>
      (await control.call(`GET /browsers/${lease.session_id}`)).body.network.allowed_hosts !== undefined,
  );
  await flows(first);
  const late = askedAt(second.requests.slice(before));
  expect(late.filter((asked) => asked >= stoppedAt)).toEqual([]);
  // One may have been judged, and not written yet, when the process stopped.
  expect(late.length).toBeLessThan(2);
  await client.close();
  await node.stop();
  await control.stop();
});

test("while Redis is cut off nothing more is open than before, and nothing less", async () => {
  const daemon = await startDaemon({ redisUrl: way.url, file: patient });
  await daemon.makePool({ name: "herd", network: { allowed_hosts: [hostOf(first)] } });
  const opened = await open(daemon, "herd");
  await way.cut();
  await wait(opened, 5000);
  await flows(first);
  await way.restore();
  await flows(first);
  expect(second.requests).toEqual([]);
  expect(daemon.log).not.toContain("egress of browsers shut");
  await daemon.stop();
});

test("a strict node that Redis does not reach closes what is open, until it does", async () => {
  const daemon = await startDaemon({
    redisUrl: way.url,
    file: { ...patient, egress: { contact_limit_ms: 6000 } },
  });
  await daemon.makePool({ name: "herd", network: { allowed_hosts: [hostOf(first)] } });
  const opened = await open(daemon, "herd");
  await way.cut();
  // A short outage costs nobody anything.
  await flows(first);
  await until("the egress shut", () => daemon.log.includes("egress of browsers shut"));
  // What had left before is still on its way to the site, which comes to it before this.
  await (await fetch(first.origin)).text();
  await wait(opened, 200);
  expect(await arrivals(first.requests, () => wait(opened, 500))).toBe(0);
  await way.restore();
  await flows(first);
  expect(second.requests).toEqual([]);
  await daemon.stop();
});

test("a daemon killed and started again while traffic flows: never open", async () => {
  const place = new DaemonPlace({
    file: {
      ...patient,
      pools: [{ name: "herd", size: 1, headless: true, network: { allowed_hosts: [hostOf(first)] } }],
    },
  });
  const killed = await spawnDaemon(place);
  await killed.poolWhen("herd", (pool) => pool.available_count === 1);
  await open(killed, "herd");
  await killed.end("SIGKILL");
  const started = await spawnDaemon(place);
  await started.poolWhen("herd", (pool) => pool.available_count === 1);
  const before = first.requests.length;
  const again = await open(started, "herd");
  await flows(first);
  expect(first.requests.length).toBeGreaterThan(before);
  expect(second.requests).toEqual([]);
  await again.client.close();
  await started.stop(killed.log);
});

test("a node that has to give each browser a namespace and cannot launches nothing, and says why", async () => {
  const place = new DaemonPlace({
    file: { egress: { isolation: "namespace" }, pools: [{ name: "herd", size: 1, headless: true }] },
  });
  // Root as a container has it: without the right to make namespaces.
  const daemon = await spawnDaemon(place, ["setpriv", "--bounding-set", "-sys_admin"]);
  const { fill } = await daemon.poolWhen(
    "herd",
    (pool) => pool.fill?.reason === "capacity" && pool.fill.last_error !== undefined,
  );
  expect(fill?.last_error).toContain("egress.isolation demands a network namespace");
  expect(await daemon.call("GET /readyz")).toMatchObject({
    status: 503,
    body: { message: expect.stringContaining("egress.isolation") },
  });
  expect(await daemon.call("POST /browsers", { headless: true })).toMatchObject({
    status: 529,
    body: { details: [{ message: expect.stringContaining("egress.isolation") }] },
  });
  expect(await daemon.browsersOf("herd")).toEqual([]);
  await daemon.stop();
});
