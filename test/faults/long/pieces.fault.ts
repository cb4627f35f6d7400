import { afterEach, beforeEach, expect } from "vitest";
import { makeLightChromium } from "../../bench/support/light-chromium.js";
import { standIn } from "../../support/browser/chromium-fake.js";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { DaemonPlace } from "../../support/daemon/daemon-settings.js";
import { Fleet } from "../../support/daemon/fleet.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { type CutProxy, openCutProxy } from "../../support/store/cut-proxy.js";
import { type RestartedRedis, startRestartedRedis } from "../../support/store/restarted-redis.js";
import { fault, startWatch } from "../../support/faults/fault.js";

/** More than one script retires (20), so that a flush of all that is idle takes two. */
const size = 25;
const limitMs = 900_000;

let fleet: Fleet;
let redis: RestartedRedis;
let proxy: CutProxy;
let light: Awaited<ReturnType<typeof makeLightChromium>>;
let controls: DaemonProcess[];
let held: (Lease & { readonly client: RawCdp; readonly node: string })[];

/** Two controls, three nodes, and a pool over them of which a browser of each node is lent and in use. */
beforeEach(async () => {
  light = await makeLightChromium();
  redis = await startRestartedRedis(["--appendfsync", "always"]);
  fleet = await Fleet.open();
  proxy = await openCutProxy(redis.url);
  controls = [await fleet.control({}, redis.url), await fleet.control({}, redis.url)];
  const direct = { max_browsers: size, hand_out_own_address: true };
  for (const id of ["a", "b", "c"])
    await fleet.node(id, { ...standIn(light as never), node: direct, redisUrl: redis.url });
  held = [];
  await makeHerd();
}, limitMs);
afterEach(async () => {
  for (const { client } of held) await client.close();
  await proxy.close();
  await fleet.close();
  await redis.stop();
  await light.remove();
});

const at = (place: number): DaemonProcess => controls[place] as DaemonProcess;

async function makeHerd(): Promise<void> {
  const spec = { name: "herd", size, headless: true, timeout_seconds: 600 };
  expect((await at(0).call("POST /browser_pools", spec)).status).toBe(201);
  await at(0).poolWhen("herd", ({ available_count }) => available_count === size, 180_000);
  for (const { client } of held.splice(0)) await client.close();
  const spare: Lease[] = [];
  while (held.length < 3) {
    const lease = (await at(0).call("POST /browser_pools/herd/acquire", {})).body as Lease;
    const found = (await at(0).browsersOf("herd")).find(({ session_id: id }) => id === lease.session_id);
    const node = found?.node ?? "";
    if (held.some((other) => other.node === node)) spare.push(lease);
    else held.push({ ...lease, node, client: await connectRaw(lease.cdp_ws_url) });
  }
  for (const { session_id } of spare)
    expect((await at(0).call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
  // So many are idle that a flush takes two pieces.
  await at(0).poolWhen("herd", ({ available_count }) => available_count === size - 3, 180_000);
}

const idsOf = async (...states: readonly string[]): Promise<readonly string[]> =>
  (await at(1).browsersOf("herd"))
    .filter(({ state }) => states.length === 0 || states.includes(state))
    .map(({ session_id }) => session_id);

/** Every lease is its holder's, who goes on, and the pool has as many as it is to have, none twice. */
async function expectSound(wanted: number): Promise<void> {
  await at(1).poolWhen(
    "herd",
    (pool) => pool.acquired_count === held.length && pool.available_count === wanted - held.length,
    180_000,
  );
  await until("nothing but those", async () => (await idsOf()).length === wanted, 180_000);
  const ids = await idsOf();
  expect(new Set(ids).size).toBe(ids.length);
  expect([...(await idsOf("leased"))].toSorted()).toEqual(
    held.map(({ session_id }) => session_id).toSorted(),
  );
  for (const { session_id: id, lease_id, client } of held) {
    expect(await at(1).call(`GET /browsers/${id}`)).toMatchObject({ status: 200, body: { lease_id } });
    expect((await client.send("Browser.getVersion")).result).toBeDefined();
  }
}

/** The scripts that decide, each of which ends the first 20, and the one that ends the others. */
const pieces = ["flush", "update-pool", "delete-pool", "retire-left"];

/** A control is asked, and dies as soon as Redis has carried out so many pieces of that. */
async function diesAfter(nth: number, operation: string, body: object): Promise<void> {
  const dying = await spawnDaemon(new DaemonPlace({ role: "control", redisUrl: proxy.url }));
  const cut = proxy.cutAfter(nth, pieces);
  const lost = dying.call(operation, body).then(
    () => "answered",
    () => "lost",
  );
  await cut;
  await dying.end("SIGKILL");
  expect(await lost).toBe("lost");
  dying.place.remove();
  proxy.restore();
}

/** Nothing of a pool is in Redis any more, and no browser on any node. */
async function expectNothingLeft(): Promise<void> {
  const client = redis.client();
  await until("nothing left of the pool", async () => {
    const keys = await client.keys("remuda:*");
    return !keys.some((key) => /:(browsers|idle|discarded|leases|nodeIndex)$/.test(key));
  });
  const rooms = await client.keys("remuda:*:room");
  await until("no room taken", async () => (await client.exists(...rooms, "none")) === 0);
  client.disconnect();
}

fault(
  "two controls change, flush and delete one pool at once, while callers acquire",
  async (tell) => {
    const granted: Lease[] = [];
    const statuses = new Map<string, number>();
    const ask = async (control: DaemonProcess, operation: string, body: object): Promise<void> => {
      const got = await control.call(operation, body);
      const what = `${operation.split(" ")[0]} ${got.status}`;
      statuses.set(what, (statuses.get(what) ?? 0) + 1);
      if (operation.endsWith("acquire") && got.status === 200) granted.push(got.body as Lease);
      expect([200, 204, 404, 409]).toContain(got.status);
    };
    const pool = "/browser_pools/herd";
    await Promise.all(
      controls.flatMap((control, place) => [
        ...Array.from({ length: 5 }, () =>
          ask(control, `POST ${pool}/acquire`, { acquire_timeout_seconds: 1 }),
        ),
        ask(control, `POST ${pool}/flush`, {}),
        ask(control, `PATCH ${pool}`, { size: 6 + place }),
        ask(control, `PATCH ${pool}`, { kiosk_mode: place === 0, discard_all_idle: true }),
        ask(control, `POST ${pool}/flush`, {}),
      ]),
    );
    const ids = granted.map(({ session_id }) => session_id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { session_id } of granted)
      expect((await at(0).call(`POST ${pool}/release`, { session_id })).status).toBe(204);
    await at(0).call(`PATCH ${pool}`, { size });
    await expectSound(size);
    await Promise.all(
      controls.flatMap((control) => [
        ask(control, `POST ${pool}/flush`, {}),
        ask(control, `DELETE ${pool}`, { force: true }),
        ask(control, `PATCH ${pool}`, { size: 9 }),
      ]),
    );
    const watch = startWatch();
    for (const { client } of held.splice(0)) await client.closed;
    await expectNothingLeft();
    expect((await at(1).call(`GET ${pool}`)).status).toBe(404);
    tell({
      saw: [...statuses].map(([what, count]) => `${count} × ${what}`).join(", "),
      recoveryMs: watch.since(),
    });
  },
  limitMs,
);

interface Cut {
  readonly what: string;
  /** After how many pieces: the first decides, and ends 20 of those that are idle. */
  readonly after: number;
  readonly operation: string;
  body(): object;
  /** How many of those that were idle are left, beside those that are lent. */
  readonly spared: number;
}
const flush = { operation: "POST /browser_pools/herd/flush", body: () => ({}), spared: 0 };
const change = "PATCH /browser_pools/herd";
const cuts: readonly Cut[] = [
  { what: "the first piece of a flush", after: 1, ...flush },
  { what: "two pieces of a flush", after: 2, ...flush },
  {
    what: "the first piece of a change that discards",
    after: 1,
    operation: change,
    body: () => ({ kiosk_mode: true, discard_all_idle: true }),
    spared: 0,
  },
  {
    what: "the first piece of a change to a smaller size",
    after: 1,
    operation: change,
    body: () => ({ size: held.length + 1 }),
    spared: 1,
  },
];

for (const { what, after, operation, body, spared } of cuts)
  fault(
    `a control dies after ${what}`,
    async (tell) => {
      const idle = await idsOf("idle");
      await diesAfter(after, operation, body());
      const watch = startWatch();
      await expectSound(spared === 0 ? size : held.length + spared);
      const recoveryMs = watch.since();
      const now = new Set(await idsOf());
      expect(idle.filter((id) => now.has(id))).toHaveLength(spared);
      tell({
        saw: "no answer; another control finished it, no lease ended, and counts are right",
        recoveryMs,
      });
    },
    limitMs,
  );

fault(
  "a control dies after the first piece of a deletion by force",
  async (tell) => {
    await diesAfter(1, "DELETE /browser_pools/herd", { force: true });
    const watch = startWatch();
    await until("it is gone", async () => (await at(1).call("GET /browser_pools/herd")).status === 404);
    const repeated = await at(1).call("DELETE /browser_pools/herd", { force: true });
    expect([204, 404]).toContain(repeated.status);
    for (const { client } of held.splice(0)) await client.closed;
    await expectNothingLeft();
    tell({
      saw: `no answer, its repeat ${repeated.status}; another control finished it, and nothing is left`,
      recoveryMs: watch.since(),
    });
  },
  limitMs,
);

fault(
  "a node drains while its pool is flushed",
  async (tell) => {
    const idle = await idsOf("idle");
    const [flushed, drained] = await Promise.all([
      at(0).call("POST /browser_pools/herd/flush", {}),
      at(1).call("POST /nodes/b/drain", { limit_seconds: 600 }),
    ]);
    expect([flushed.status, drained.status]).toEqual([204, 200]);
    const watch = startWatch();
    // What is lent there comes to nobody again, so others are warmed in its place while its leases go on.
    const leaving = held.filter(({ node }) => node === "b");
    expect(leaving).toHaveLength(1);
    await expectSound(size + leaving.length);
    const recoveryMs = watch.since();
    const now = await at(1).browsersOf("herd");
    expect(now.filter(({ session_id }) => idle.includes(session_id))).toEqual([]);
    const onNode = now.filter(({ node }) => node === "b").map(({ session_id }) => session_id);
    expect(onNode.toSorted()).toEqual(leaving.map(({ session_id }) => session_id).toSorted());
    for (const { session_id, lease_id, client } of leaving) {
      const given = { session_id, lease_id };
      expect((await at(0).call("POST /browser_pools/herd/release", given)).status).toBe(204);
      await client.closed;
    }
    held = held.filter(({ node }) => node !== "b");
    await expectSound(size);
    tell({
      saw: "204 and 200; all idle ones replaced on other nodes, leases went on, and as many as before when those of the node had ended",
      recoveryMs,
    });
  },
  limitMs,
);

fault(
  "Redis is killed between two pieces of a flush, and started again",
  async (tell) => {
    const idle = await idsOf("idle");
    const flushing = await spawnDaemon(new DaemonPlace({ role: "control", redisUrl: proxy.url }));
    const cut = proxy.cutAfter(1);
    const answer = flushing.call("POST /browser_pools/herd/flush", {}).then(({ status }) => status);
    await cut;
    await redis.restart();
    proxy.restore();
    const watch = startWatch();
    expect([204, 503]).toContain(await answer);
    await expectSound(size);
    const recoveryMs = watch.since();
    const now = new Set(await idsOf());
    expect(idle.filter((id) => now.has(id))).toEqual([]);
    await flushing.stop();
    tell({ saw: `${await answer} for the flush; it was finished, and no lease lost`, recoveryMs });
  },
  limitMs,
);
