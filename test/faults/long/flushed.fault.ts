import { truncateSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect } from "vitest";
import type { Lease } from "../../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../../support/daemon/daemon-process.js";
import { until } from "../../support/browser/chromium-until.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { type RestartedRedis, startRestartedRedis } from "../../support/store/restarted-redis.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const servers: RestartedRedis[] = [];
// Registered first, so that it runs last: daemons stop while there is Redis.
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});
const bed = useFaultBed();

/** One that keeps nothing: started again, it is empty. */
async function forgetfulRedis(): Promise<RestartedRedis> {
  const server = await startRestartedRedis(["--appendonly", "no"]);
  servers.push(server);
  return server;
}

interface Herd {
  readonly control: DaemonProcess;
  readonly nodes: readonly DaemonProcess[];
  /** Its holder's client is connected. */
  readonly opened: Lease;
  readonly client: RawCdp;
  /** Nobody has come for it yet. */
  readonly unopened: Lease;
  /** One without a pool, its client connected. */
  readonly demanded: Lease;
  readonly demandedClient: RawCdp;
  /** The ids of the pool's browsers. */
  readonly browsers: readonly string[];
}

const size = 6;
/** Each starts a fleet, and stops it. */
const limitMs = 300_000;
const declared = { name: "declared", size: 1, headless: true };

const acquire = async (daemon: DaemonProcess, body: object): Promise<Lease> =>
  (await daemon.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 20, ...body }))
    .body as Lease;

/** What a node has said last of a partition on its disk. */
function journalled({ log }: DaemonProcess, partition: string): { browsers: number; leases: number } {
  const pattern = new RegExp(
    `"partition":"${partition}","browsers":(\\d+),"leases":(\\d+),"msg":"journal written"`,
    "g",
  );
  const [, browsers = 0, leases = 0] = [...log.matchAll(pattern)].at(-1) ?? [];
  return { browsers: Number(browsers), leases: Number(leases) };
}

const partitionOf = (id: string): string => id.slice(0, -12);

async function onDisk(
  { nodes }: Pick<Herd, "nodes">,
  partition: string,
  wanted: { browsers: number; leases: number },
): Promise<void> {
  await until("the journals", async () => {
    const all = nodes.map((node) => journalled(node, partition));
    const sum = (of: "browsers" | "leases"): number => all.reduce((total, each) => total + each[of], 0);
    return sum("browsers") === wanted.browsers && sum("leases") === wanted.leases;
  });
}

/** A pool in its second generation over two nodes, two of its browsers lent; a session without a pool. */
async function openHerd(redisUrl: string): Promise<Herd> {
  const control = await bed.start("control", { pools: [declared] as never }, { redisUrl });
  const nodes = [await bed.start("node", {}, { redisUrl }), await bed.start("node", {}, { redisUrl })];
  await control.makePool({ name: "herd", size, timeout_seconds: 600 });
  await control.poolWhen("declared", ({ available_count }) => available_count === 1);
  const change = { viewport: { width: 900, height: 700 }, discard_all_idle: true };
  expect((await control.call("PATCH /browser_pools/herd", change)).status).toBe(200);
  const pool = await control.poolWhen(
    "herd",
    ({ available_count, stale_count }) => available_count === size && stale_count === 0,
  );
  const opened = await acquire(control, { name: "mine" });
  const client = await connectRaw(opened.cdp_ws_url);
  const unopened = await acquire(control, {});
  const demand = { headless: true, timeout_seconds: 600 };
  const demanded = (await control.call("POST /browsers", demand)).body as Lease;
  const demandedClient = await connectRaw(demanded.cdp_ws_url);
  await onDisk({ nodes }, partitionOf(pool.id), { browsers: size, leases: 2 });
  await onDisk({ nodes }, partitionOf(demanded.session_id), { browsers: 1, leases: 1 });
  const browsers = (await control.browsersOf("herd")).map(({ session_id }) => session_id).toSorted();
  return { control, nodes, opened, client, unopened, demanded, demandedClient, browsers };
}

/** Nothing of it is another than it was. */
async function expectWhole(herd: Herd): Promise<void> {
  const { control, nodes, opened, client, unopened, demanded, demandedClient, browsers } = herd;
  const pool = await control.poolWhen(
    "herd",
    ({ available_count, acquired_count }) => available_count === size - 2 && acquired_count === 2,
  );
  expect(pool.browser_pool_config).toMatchObject({ viewport: { width: 900, height: 700 } });
  const own = await control.browsersOf("herd");
  expect(own.map(({ session_id }) => session_id).toSorted()).toEqual(browsers);
  expect(own.map(({ stale, generation }) => [stale, generation])).toEqual(browsers.map(() => [false, 2]));
  for (const each of [client, demandedClient])
    expect((await each.send("Browser.getVersion")).result).toBeDefined();
  for (const each of [opened, unopened, demanded]) {
    // Each node brings back what it had at its own next beat.
    const found = await until(`session ${each.session_id}`, async () => {
      const answer = await control.call(`GET /browsers/${each.session_id}`);
      return answer.status === 404 ? undefined : answer;
    });
    expect(found).toMatchObject({
      status: 200,
      body: { lease_id: each.lease_id, cdp_ws_url: each.cdp_ws_url },
    });
  }
  expect((await control.call("GET /browsers/mine")).body).toMatchObject({ session_id: opened.session_id });
  const late = await connectRaw(unopened.cdp_ws_url);
  expect((await late.send("Browser.getVersion")).result).toBeDefined();
  for (const { log } of nodes) expect(log).toMatch(/"level":"error"[^\n]*"msg":"Redis was found empty: /);
}

/** Each lease ends as its holder says, and is gone for its client; others are lent. */
async function expectEnds(herd: Herd): Promise<void> {
  const { control, opened, client, unopened, demanded, demandedClient } = herd;
  for (const { session_id, lease_id } of [opened, unopened])
    expect((await control.call("POST /browser_pools/herd/release", { session_id, lease_id })).status).toBe(
      204,
    );
  expect((await client.closed).code).toBe(4410);
  expect((await control.call(`DELETE /browsers/${demanded.session_id}`)).status).toBe(204);
  expect((await demandedClient.closed).code).toBe(4410);
  await control.poolWhen("herd", ({ available_count }) => available_count === size);
  const again = await acquire(control, { name: "mine" });
  expect((await (await connectRaw(again.cdp_ws_url)).send("Browser.getVersion")).result).toBeDefined();
  await control.poolWhen("declared", ({ available_count }) => available_count === 1);
}

fault(
  "Redis forgets everything: pools, browsers and leases of two nodes go on",
  async (tell) => {
    const server = await forgetfulRedis();
    const herd = await openHerd(server.url);
    const declaredId = (await herd.control.call("GET /browser_pools/declared")).body.id as string;
    const demand = { headless: true, timeout_seconds: 30 };
    const brief = (await herd.control.call("POST /browsers", demand)).body as Lease;
    await onDisk(herd, partitionOf(brief.session_id), { browsers: 2, leases: 2 });
    await server.client().flushall();
    const watch = startWatch();
    await expectWhole(herd);
    const recoveryMs = watch.since();
    expect((await herd.control.call("GET /browser_pools/declared")).body).toMatchObject({ id: declaredId });
    await expectEnds(herd);
    // Nobody has come for that one.
    const expired = `"lease":"${brief.lease_id}","msg":"lease expired"`;
    await until("its timeout", () => herd.nodes.some(({ log }) => log.includes(expired)), 90_000);
    tell({ saw: "404 until the nodes' next beat; sockets go on", recoveryMs });
  },
  limitMs,
);

fault(
  "an empty Redis is started in place of one that is killed: the same",
  async (tell) => {
    const server = await forgetfulRedis();
    const herd = await openHerd(server.url);
    await server.restart();
    const watch = startWatch();
    await expectWhole(herd);
    const recoveryMs = watch.since();
    await expectEnds(herd);
    tell({ saw: "503 and 404 until the nodes' next beat; sockets go on", recoveryMs });
  },
  limitMs,
);

fault(
  "a declared pool that no node has had is declared again",
  async (tell) => {
    const server = await forgetfulRedis();
    const control = await bed.start("control", { pools: [declared] as never }, { redisUrl: server.url });
    const idOf = async (): Promise<string | undefined> =>
      (await control.call("GET /browser_pools/declared")).body.id as string | undefined;
    const before = await idOf();
    expect(before).toBeDefined();
    // The control has seen what it has to miss.
    const client = server.client();
    await until("a name", () => client.exists("remuda:{nodes}:dataset"));
    await client.flushall();
    const watch = startWatch();
    const after = await until("the pool", idOf);
    expect(after).not.toBe(before);
    tell({ saw: "404 until node.lost_after_ms", recoveryMs: watch.since() });
  },
  limitMs,
);

const names = ["a", "b", "c", "d"];

/** Raises the timeouts of all pools until the returned function is called, which gives the last. */
function changeAll(control: DaemonProcess, from: number): () => Promise<ReadonlyMap<string, number>> {
  const asked = new Map<string, number>();
  const stopping = new AbortController();
  const change = async (name: string): Promise<void> => {
    for (let timeout = from; !stopping.signal.aborted; timeout += 1) {
      await control.call(`PATCH /browser_pools/${name}`, { timeout_seconds: timeout });
      asked.set(name, timeout);
    }
  };
  const changing = Promise.all(names.map(change));
  return async () => {
    stopping.abort();
    await changing;
    return asked;
  };
}

const writes = ({ log }: DaemonProcess): number => log.split('"msg":"journal written"').length - 1;
const unread = '"msg":"journal entry could not be read"';

fault(
  "a node is killed while it writes its journal, again and again: none of it is torn",
  async (tell) => {
    const server = await forgetfulRedis();
    const control = await bed.start("control", {}, { redisUrl: server.url });
    let node = await bed.start("node", {}, { redisUrl: server.url });
    let log = "";
    const again = async (): Promise<void> => {
      bed.gone(node);
      await node.end("SIGKILL");
      log += node.log;
      node = await spawnDaemon(node.place);
    };
    for (const name of names) await control.makePool({ name, size: 1, timeout_seconds: 600 });
    let asked: ReadonlyMap<string, number> = new Map();
    for (const [kill] of names.entries()) {
      const stop = changeAll(control, 601 + 10_000 * kill);
      await until("more of its entries being written", () => writes(node) > 2 * names.length + kill);
      await again();
      asked = await stop();
      for (const name of names) await control.poolWhen(name, (pool) => pool.available_count === 1);
    }
    await server.restart();
    await again();
    const watch = startWatch();
    for (const name of names) {
      const pool = await control.poolWhen(name, ({ available_count }) => available_count === 1);
      const timeout = pool.browser_pool_config["timeout_seconds"] as number;
      expect(timeout).toBeGreaterThan(600);
      expect(timeout).toBeLessThanOrEqual(asked.get(name) ?? 0);
    }
    const recoveryMs = watch.since();
    expect(log + node.log).not.toContain(unread);
    // A machine that lost its power may leave half a file: that pool alone is lost.
    const { id } = (await control.call("GET /browser_pools/a")).body as { id: string };
    const file = join(node.place.dataDir, "journal", `${partitionOf(id)}.sealed`);
    bed.gone(node);
    await node.end("SIGKILL");
    log += node.log;
    truncateSync(file, 100);
    await server.restart();
    node = await spawnDaemon(node.place);
    await control.poolWhen("b", ({ available_count }) => available_count === 1);
    expect(node.log).toContain(unread);
    expect((await control.call("GET /browser_pools/a")).status).toBe(404);
    tell({ saw: "404 until the node is there again", recoveryMs });
    await node.stop(log);
  },
  limitMs,
);
