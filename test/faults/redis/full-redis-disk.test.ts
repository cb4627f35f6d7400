import { afterEach, beforeEach, describe, expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type FakeChromium, makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import type { Lease, PoolState } from "../../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { type DiskRedis, startRedisOnDisk } from "../../support/faults/disk-redis.js";
import { fault, startWatch, type Tell } from "../../support/faults/fault.js";

const size = 4;
/** Longer than a node may be silent: it cannot note that it beats, and nobody takes it for lost. */
const fullForMs = 4000;

let fake: FakeChromium;
let redis: DiskRedis | undefined;
let daemons: DaemonProcess[] = [];
beforeEach(async () => {
  fake = await makeFakeChromium();
  daemons = [];
});
afterEach(async () => {
  for (const daemon of daemons.toReversed()) await daemon.stop();
  await redis?.stop();
  await fake.remove();
});

async function start(role: "control" | "node"): Promise<DaemonProcess> {
  const file = { drain: { limit_seconds: 0 }, ...standIn(fake) };
  const daemon = await spawnDaemon(new DaemonPlace({ role, redisUrl: redis?.url ?? "", file }));
  daemons.push(daemon);
  return daemon;
}

/** A control and a node by a Redis that keeps its data so, with a pool of which one browser is lent. */
async function openBed(keeps: readonly string[]) {
  const store = await startRedisOnDisk(keeps);
  redis = store;
  const [control, node] = [await start("control"), await start("node")];
  await control.makePool({ name: "herd", size });
  const acquire = () => control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 0 });
  const held = (await acquire()).body as Lease;
  const client = await connectRaw(held.cdp_ws_url);
  return { store, control, node, acquire, leases: [held], client };
}
type Bed = Awaited<ReturnType<typeof openBed>>;

/** A pool that launches nothing. */
const empty = (name: string) => ({ name, size: 1, headless: true, fill_rate_per_minute: 0 });

const refusedBy = async (answer: ReturnType<DaemonProcess["call"]>): Promise<boolean> => {
  const { status, body, headers } = await answer;
  if (status < 300) return false;
  expect({ status, code: body?.code }).toEqual({ status: 503, code: "store_unavailable" });
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  return true;
};

interface AskedPools {
  readonly made: readonly string[];
  readonly refused: readonly string[];
}

/** Callers go on asking while the disk is full; gives the pools that were made, and those that were not. */
async function askOnFullDisk({ control, acquire, leases, client }: Bed): Promise<AskedPools> {
  const [made, refused]: [string[], string[]] = [[], []];
  let refusals = 0;
  const since = performance.now();
  for (let asked = 0; refusals === 0 || performance.now() - since < fullForMs; asked += 1) {
    const got = acquire();
    if (await refusedBy(got)) refusals += 1;
    else if ((await got).status === 200) leases.push((await got).body as Lease);
    const name = `pool-${asked}`;
    const isRefused = await refusedBy(control.call("POST /browser_pools", empty(name)));
    (isRefused ? refused : made).push(name);
    expect((await client.send("Browser.getVersion")).result).toBeDefined();
  }
  // What only reads is answered.
  expect((await control.call("GET /browser_pools/herd")).status).toBe(200);
  expect((await control.call(`GET /browsers/${leases[0]?.session_id}`)).status).toBe(200);
  return { made, refused };
}

const isWell =
  ({ leases }: Bed) =>
  (pool: PoolState) =>
    pool.acquired_count === leases.length && pool.available_count === size - leases.length;

/**
 * Each answered lease lives, no pool was half made, and all leases can be given back. A pool whose last step
 * alone was refused is there, and whole.
 */
async function expectNothingLost(bed: Bed, { made, refused }: AskedPools): Promise<void> {
  const { control, client, leases } = bed;
  await control.poolWhen("herd", isWell(bed));
  for (const { session_id: id, lease_id } of leases)
    expect(await control.call(`GET /browsers/${id}`)).toMatchObject({ status: 200, body: { lease_id } });
  expect((await client.send("Browser.getVersion")).result).toBeDefined();
  const names = await namesOfAll(control);
  const more = names.filter((name) => refused.includes(`${name}`));
  expect(names.toSorted()).toEqual(["herd", ...made, ...more].toSorted());
  for (const name of more) expect((await control.call(`DELETE /browser_pools/${name}`)).status).toBe(204);
  await until(
    "these pools and no others",
    async () => (await namesOfAll(control)).length === 1 + made.length,
  );
}

/** As many pools as one page has. */
const pageSize = 100;

/** However many there are: a fast machine makes hundreds before its disk is full. */
async function namesOfAll(control: DaemonProcess): Promise<readonly unknown[]> {
  const names: unknown[] = [];
  for (;;) {
    const query = `limit=${pageSize}&offset=${names.length}`;
    const page = (await control.call(`GET /browser_pools?${query}`)).body as PoolState[];
    names.push(...page.map(({ name }) => name));
    if (page.length < pageSize) return names;
  }
}

async function giveBack({ control, leases }: Bed): Promise<void> {
  for (const { session_id } of leases.splice(0))
    expect((await control.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
  await control.poolWhen("herd", (pool) => pool.available_count === size);
}

/** There is room again by itself, and later Redis is killed and reads what it has kept. */
async function proveRoom(keeps: readonly string[], tell: Tell): Promise<void> {
  const bed = await openBed(keeps);
  const { store, control, node, acquire } = bed;
  store.disk.fill();
  const asked = await askOnFullDisk(bed);
  store.disk.empty();
  const watch = startWatch();
  await until("a change that is taken", async () => {
    const { status } = await control.call("PATCH /browser_pools/herd", { fill_rate_per_minute: 6000 });
    return status === 200;
  });
  const recoveryMs = watch.since();
  await expectNothingLost(bed, asked);
  expect(control.log + node.log).not.toContain('"node lost"');
  const last = await acquire();
  if (last.status === 200) bed.leases.push(last.body as Lease);
  await giveBack(bed);
  tell({ saw: "leases, then 503 store_unavailable; reads and sockets went on", recoveryMs });
}

describe.runIf(process.getuid?.() === 0)("where a disk can be mounted", () => {
  fault("the disk of Redis is full, on which it keeps an append-only file", (tell) =>
    proveRoom(["--save", "", "--appendonly", "yes"], tell),
  );

  fault("the disk of Redis is full, on which it keeps snapshots", (tell) =>
    proveRoom(["--save", "1 1", "--appendonly", "no"], tell),
  );

  fault(
    "the disk of Redis is full, which syncs each write: it ends, and is started where there is room",
    async (tell) => {
      const bed = await openBed(["--save", "", "--appendonly", "yes", "--appendfsync", "always"]);
      const { store, control, acquire, leases, client } = bed;
      store.disk.fill();
      await until("a refusal", async () => {
        const got = acquire();
        if (await refusedBy(got)) return true;
        if ((await got).status === 200) leases.push((await got).body as Lease);
        return false;
      });
      await store.ended();
      expect((await client.send("Browser.getVersion")).result).toBeDefined();
      store.disk.empty();
      await store.start();
      const watch = startWatch();
      await control.poolWhen("herd", isWell(bed));
      const recoveryMs = watch.since();
      await expectNothingLost(bed, { made: [], refused: [] });
      await giveBack(bed);
      tell({ saw: "503 store_unavailable until it is started again; sockets went on", recoveryMs });
    },
  );
});
