import { expect, onTestFinished } from "vitest";
import { type BrowserId, defaultProject, partitionOf, type PoolId } from "../../../src/base/ids.js";
import { partitionKey } from "../../../src/store/redis/keys.js";
import { until } from "../../support/browser/chromium-until.js";
import type { DaemonProcess } from "../../support/daemon/daemon-process.js";
import type { Lease, PoolState } from "../../support/daemon/daemon.js";
import { type FakeChromium, makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import { refusedUpgrade } from "../../support/gateway/gateway-bed.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { type ReplicatedCluster, startReplicatedCluster } from "../../support/store/redis-cluster.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const size = 4;

interface Opened {
  readonly lease: Lease;
  readonly client: RawCdp;
}
/** A pool on one of the masters, and leases that were given before that could forget and after. */
interface Herd {
  readonly name: string;
  readonly unopened: Lease;
  readonly earlier: Opened;
  readonly later: Opened;
}

interface Setting {
  readonly cluster: ReplicatedCluster;
  readonly control: DaemonProcess;
  readonly node: DaemonProcess;
}

async function open(failing: number): Promise<Setting> {
  const cluster = await startReplicatedCluster(failing);
  onTestFinished(() => cluster.stop());
  const fake: FakeChromium = await makeFakeChromium();
  onTestFinished(() => fake.remove());
  const settings = { redis: { cluster: true }, browser: { ...standIn(fake).browser } };
  const through = { redisUrl: cluster.url };
  const control = await bed.start("control", settings, through);
  const node = await bed.start("node", settings, through);
  return { cluster, control, node };
}

/** The master that keeps what is under a hash tag. */
async function masterOf({ cluster }: Setting, tag: string): Promise<number> {
  const client = cluster.client(0);
  const slot = Number(await client.cluster("KEYSLOT", `{${tag}}`));
  client.disconnect();
  return Math.floor(slot / Math.ceil(16_384 / 3));
}

async function poolOn(setting: Setting, name: string, isMeant: (master: number) => boolean): Promise<void> {
  const { control } = setting;
  await until("a pool on a master", async () => {
    const { id } = (await control.call("POST /browser_pools", { name, size, headless: true }))
      .body as PoolState;
    if (isMeant(await masterOf(setting, partitionOf(id as PoolId)))) return true;
    await control.call(`DELETE /browser_pools/${id}`, { force: true });
    return false;
  });
  await control.poolWhen(name, (pool) => pool.available_count === size);
}

async function acquire({ control }: Setting, pool: string, name?: string): Promise<Lease> {
  const asked = { acquire_timeout_seconds: 20, ...(name !== undefined && { name }) };
  const { status, body, text } = await control.call(`POST /browser_pools/${pool}/acquire`, asked);
  if (status !== 200) throw new Error(`acquire: ${status} ${text}`);
  return body as Lease;
}
async function openedOf(setting: Setting, pool: string, name?: string): Promise<Opened> {
  const lease = await acquire(setting, pool, name);
  return { lease, client: await connectRaw(lease.cdp_ws_url) };
}

/** All are lent but one, which is idle; the last lease is one that the failing master will forget. */
async function makeHerds(setting: Setting, failing: number): Promise<{ here: Herd; there: Herd }> {
  await poolOn(setting, "here", (master) => master === failing);
  await poolOn(setting, "there", (master) => master !== failing);
  const lent = async (name: string) => ({
    name,
    unopened: await acquire(setting, name),
    earlier: await openedOf(setting, name),
  });
  const [here, there] = [await lent("here"), await lent("there")];
  await setting.cluster.detach();
  return {
    here: { ...here, later: await openedOf(setting, "here", "later-here") },
    there: { ...there, later: await openedOf(setting, "there", "later-there") },
  };
}

/** The leases that clients have opened are what they were, and the pool has as many browsers as it is to. */
async function expectSound(
  { control }: Setting,
  { name, earlier, later }: Herd,
  others: number,
): Promise<void> {
  await control.poolWhen(
    name,
    (pool) => pool.acquired_count === 2 + others && pool.available_count === size - 2 - others,
  );
  for (const { lease, client } of [earlier, later]) {
    const seen = await control.call(`GET /browsers/${lease.session_id}`);
    expect(seen).toMatchObject({ status: 200, body: { lease_id: lease.lease_id } });
    expect((await client.send("Browser.getVersion")).result).toBeDefined();
  }
  const ids = (await control.browsersOf(name)).map(({ session_id: id }) => id);
  expect([ids.length, new Set(ids).size]).toEqual([size, size]);
}

/** What is lent next is nobody's. */
async function expectFree(setting: Setting, { name, unopened, earlier, later }: Herd): Promise<void> {
  const taken = [unopened, earlier.lease, later.lease].map(({ session_id: id }) => id);
  const next = await acquire(setting, name);
  expect(taken).not.toContain(next.session_id);
  const { session_id } = next;
  expect((await setting.control.call(`POST /browser_pools/${name}/release`, { session_id })).status).toBe(
    204,
  );
}

async function endLeases({ control }: Setting, { name, earlier, later }: Herd): Promise<void> {
  for (const { lease, client } of [earlier, later]) {
    const { session_id } = lease;
    const released = await control.call(`POST /browser_pools/${name}/release`, { session_id });
    expect(released.status).toBe(204);
    expect((await client.closed).code).toBe(4410);
  }
}

/** Seconds until the pool lends again; others than 503 and 204 are no answers to that. */
async function lendsAgain({ control }: Setting, { name }: Herd): Promise<void> {
  await until("a lease", async () => {
    const asked = { acquire_timeout_seconds: 1 };
    const { status, body } = await control.call(`POST /browser_pools/${name}/acquire`, asked);
    expect([200, 204, 503]).toContain(status);
    if (status !== 200) return false;
    const { session_id } = body;
    return (await control.call(`POST /browser_pools/${name}/release`, { session_id })).status === 204;
  });
}

/** The replica has not the lease that was given last. */
async function expectForgotten({ cluster }: Setting, { later: { lease } }: Herd): Promise<void> {
  const replica = cluster.client(3);
  await replica.readonly();
  const leases = partitionKey(defaultProject, partitionOf(lease.session_id as BrowserId), "leases");
  expect(await replica.hlen(leases)).toBeGreaterThan(0);
  expect(await replica.hexists(leases, lease.lease_id)).toBe(0);
  replica.disconnect();
}

/** Where the project's own master has lost them, names of sessions are gone; pools have theirs again. */
async function expectNames({ control, node }: Setting, master: number): Promise<void> {
  const hasLost = master === 2;
  for (const name of ["later-here", "later-there"])
    expect((await control.call(`GET /browsers/${name}`)).status).toBe(hasLost ? 404 : 200);
  await control.poolWhen("late", (pool) => pool.available_count === size);
  const all = (await control.call("GET /browser_pools")).body as PoolState[];
  expect(all.map(({ name }) => name).toSorted()).toEqual(["here", "late", "there"]);
  expect(node.log.includes("pool listed again")).toBe(hasLost);
}

const kept = [
  { master: 0, what: "API keys and the audit log" },
  { master: 1, what: "beats, ticks and the epoch" },
  { master: 2, what: "names of the project and queues of jobs" },
];

for (const { master, what } of kept)
  fault(
    `a master of a Redis Cluster is killed (SIGKILL), and its replica has not what was written last: that of ${what}`,
    async (tell) => {
      const setting = await open(master);
      const { control, node, cluster } = setting;
      const { here, there } = await makeHerds(setting, master);
      await expectForgotten(setting, here);
      await poolOn(setting, "late", (at) => at !== master);
      const watch = startWatch();
      await cluster.failOver();
      const promotedMs = watch.since();
      await lendsAgain(setting, here);
      await lendsAgain(setting, there);
      const recoveryMs = watch.since();
      // A lease of the pool that has forgotten nothing is as good as before, opened or not.
      await expectSound(setting, here, 0);
      await expectSound(setting, there, 1);
      expect(await refusedUpgrade(here.unopened.cdp_ws_url)).toMatchObject({
        status: 410,
        body: { message: expect.stringContaining("unconfirmed") },
      });
      await (await connectRaw(there.unopened.cdp_ws_url)).close();
      for (const herd of [here, there]) await expectFree(setting, herd);
      await expectNames(setting, master);
      for (const herd of [here, there]) await endLeases(setting, herd);
      expect(node.log).toContain("node registered in another epoch of Redis");
      expect(control.log).not.toContain('"node lost"');
      // Only what has the records of nodes tells of its failover by the metric.
      expect(control.log.includes("another epoch of Redis has begun")).toBe(master === 1);
      tell({
        saw: `503, then 204 until a node has registered; leases went on, of that master's pool one that nobody had opened 410 unconfirmed, of others none; the replica was there after ${(promotedMs / 1000).toFixed(1)} s`,
        recoveryMs,
      });
    },
    240_000,
  );
