import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { ticksKey } from "../../src/store/redis/keys.js";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import type { DaemonProcess } from "../support/daemon/daemon-process.js";
import { connectRaw, type RawCdp } from "../support/gateway/raw-cdp.js";
import { type RedisPair, startRedisPair } from "../support/store/redis-pair.js";
import { openRedisProxy, type RedisProxy } from "../support/store/redis-proxy.js";
import { useFaultBed } from "../support/faults/bed.js";
import { fault, startWatch } from "../support/faults/fault.js";

const bed = useFaultBed();
/** Longer than a busy node is silent. */
const lostAfterMs = 8000;
/** Half of it is the longest gap after which a control's listening begins anew. */
const patientControl = { control_lost_after_ms: 10_000 };

/** A primary with a replica, and a way to it for each of the daemons that are named. */
async function openWays<Name extends string>(...names: readonly Name[]) {
  const folder = await mkdtemp(join(tmpdir(), "remuda-ways-"));
  const pair = await startRedisPair();
  const made = await Promise.all(
    names.map(async (name) => [name, await openRedisProxy(pair.primary.port, join(folder, `${name}.sock`))]),
  );
  const ways = Object.fromEntries(made) as Record<Name, RedisProxy>;
  onTestFinished(async () => {
    for (const name of names) await ways[name].close();
    await pair.stop();
    await rm(folder, { recursive: true });
  });
  return { pair, ways };
}

/** A lease and its client, which no control relays. */
interface Held {
  readonly lease: Lease;
  readonly client: RawCdp;
}

/** Resolves once a sweep has run, begun when a node that has not beaten in this epoch counts as lost. */
async function untilSwept({ replica }: RedisPair): Promise<void> {
  const redis = replica.client();
  const sweptAt = async (): Promise<number> => {
    const [since, at] = await redis.hmget(ticksKey, "listensSince", "sweep");
    return Number(at) - Number(since) > lostAfterMs ? Number(at) : 0;
  };
  const first = await until("a sweep that may have begun earlier", sweptAt);
  await until("the next", async () => (await sweptAt()) > first);
}

async function hold(control: DaemonProcess, nodes: ReadonlyMap<string, DaemonProcess>) {
  const held = new Map<string, Held>();
  for (const _ of nodes) {
    const { status, body } = await control.call("POST /browser_pools/herd/acquire", {
      acquire_timeout_seconds: 30,
    });
    expect(status).toBe(200);
    const lease = body as Lease;
    const browser = (await control.browsersOf("herd")).find((one) => one.session_id === lease.session_id);
    const at = nodes.get(browser?.node ?? "");
    if (!browser || !at) throw new Error(`no node has ${lease.session_id}`);
    const url = lease.cdp_ws_url.replace(new URL(control.url).host, new URL(at.url).host);
    held.set(browser.node, { lease, client: await connectRaw(url) });
  }
  return held;
}

fault(
  "a control that took a node for lost loses Redis, which fails over and knows it living",
  async (tell) => {
    const { pair, ways } = await openWays("control", "far", "near");
    const patient = { lost_after_ms: lostAfterMs, isolated_limit_seconds: 120 };
    const control = await bed.start(
      "control",
      { acquire: patientControl, node: patient },
      { redisUrl: ways.control.url },
    );
    const nodes = new Map<string, DaemonProcess>();
    for (const id of ["far", "near"] as const)
      nodes.set(id, await bed.start("node", { node: { id, ...patient } }, { redisUrl: ways[id].url }));
    await control.makePool({ name: "herd", size: 2 });
    const held = await hold(control, nodes);
    const [far, near] = [held.get("far"), held.get("near")];
    if (!far || !near) throw new Error("the leases are on one node");
    await pair.caughtUp();
    await pair.replica.client().replicaof("NO", "ONE");

    const from = control.log.length;
    await ways.far.cut();
    await until("the node lost", () => /"node":"far"[^\n]*"node lost"/.test(control.log.slice(from)));
    await ways.near.cut();
    const { session_id } = near.lease;
    expect((await control.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
    await ways.control.cut();
    // The control tells a node directly what Redis may not have brought it; what it decided before, first.
    expect(await near.client.closed).toMatchObject({ code: 4410 });

    const watch = startWatch();
    for (const way of Object.values(ways)) {
      way.move(pair.replica.port);
      await way.restore();
    }
    const page = `GET /browsers/${far.lease.session_id}`;
    await until("its lease goes on", async () => (await control.call(page)).status === 200);
    const answer = async (): Promise<unknown> =>
      await far.client.evaluate("6 * 7", await far.client.attach());
    expect(await Promise.race([answer(), far.client.closed])).toBe(42);
    const recoveryMs = watch.since();
    // Who is lost is looked for again only now.
    await untilSwept(pair);
    expect((await control.call(page)).status).toBe(200);
    expect(await Promise.race([answer(), far.client.closed])).toBe(42);
    tell({ saw: "its client goes on, and its lease in the new primary", recoveryMs });
  },
);
