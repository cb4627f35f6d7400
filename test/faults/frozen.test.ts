import { Redis } from "ioredis";
import { expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { DaemonClient, Lease } from "../support/daemon/daemon.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import type { Got } from "../support/http/http-server.js";
import { age } from "../support/store/age.js";
import { useFaultBed } from "./bed.js";
import { fault, startWatch } from "./fault.js";

const bed = useFaultBed();
const patient = { node: { id: "far", lost_after_ms: 30_000 } };
const acquire = (control: DaemonClient) =>
  control.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 20 });
/** Callers may be answered 503 while a connection is given up (docs/faults.md), and ask again. */
const answered = (ask: () => Promise<Got>): Promise<Got> =>
  until("an answer", async () => [await ask()].find(({ status }) => status !== 503));

async function start() {
  const control = await bed.start("control", patient);
  const node = await bed.start("node", patient);
  await control.makePool({ name: "herd", size: 2 });
  return { control, node };
}

fault("all Redis connections freeze without being closed", async (tell) => {
  const { control, node } = await start();
  const lease = (await acquire(control)).body as Lease;
  const client = await connectRaw(lease.cdp_ws_url);
  bed.proxy.freeze();
  const watch = startWatch();
  const statuses: number[] = [];
  const next = await until("a lease", async () => {
    const { status, body } = await acquire(control);
    statuses.push(status);
    return status === 200 ? (body as Lease) : undefined;
  });
  const recoveryMs = watch.since();
  expect(new Set(statuses).size).toBeLessThanOrEqual(2);
  expect(
    statuses.every((status) => status === 200 || status === 503),
    String(statuses),
  ).toBe(true);
  // Commands, messages and jobs of the node go again.
  await until(
    "its release",
    async () =>
      (await control.call("POST /browser_pools/herd/release", { session_id: next.session_id, reuse: false }))
        .status === 204,
  );
  await control.poolWhen("herd", (pool) => pool.available_count === 1 && pool.acquired_count === 1);
  expect(
    (await control.call("POST /browser_pools/herd/release", { session_id: lease.session_id })).status,
  ).toBe(204);
  expect((await client.closed).code).toBe(4410);
  await control.poolWhen("herd", (pool) => pool.available_count === 2);
  expect(control.log + node.log).not.toContain("node lost");
  tell({
    saw: statuses.length === 1 ? `one answer late, ${statuses[0]}` : `${statuses.length - 1} × 503`,
    recoveryMs,
  });
});

fault("commands of a connection that was given up arrive late, as when a cut network heals", async (tell) => {
  const control = await bed.start("control", patient);
  await bed.start("node", patient);
  await control.makePool({ name: "herd", size: 2 });
  const take = async (): Promise<Lease> => (await answered(() => acquire(control))).body as Lease;
  const release = ({ session_id }: Lease) =>
    answered(() => control.call("POST /browser_pools/herd/release", { session_id }));
  // Each is asked on the frozen connection, and again on the next.
  bed.proxy.freeze();
  const first = await take();
  await answersForgotten();
  await bed.proxy.thaw();
  await control.poolWhen("herd", (pool) => pool.acquired_count === 1 && pool.available_count === 1);
  bed.proxy.freeze();
  expect((await release(first)).status).toBe(204);
  const others = [await take(), await take()];
  await answersForgotten();
  await bed.proxy.thaw();
  const pool = await control.poolWhen("herd", ({ acquired_count }) => acquired_count === 2);
  expect(pool.available_count).toBe(0);
  for (const other of others) expect((await release(other)).status).toBe(204);
  tell({ saw: "nothing: no lease is granted twice, and none is ended that was not meant" });
});

fault("what is asked arrives at Redis, and no answer comes back", async (tell) => {
  const { control } = await start();
  bed.proxy.freeze("replies");
  const watch = startWatch();
  const lease = (await answered(() => acquire(control))).body as Lease;
  const recoveryMs = watch.since();
  await control.poolWhen("herd", (pool) => pool.acquired_count === 1 && pool.available_count === 1);
  bed.proxy.freeze("replies");
  const { session_id } = lease;
  const released = await answered(() => control.call("POST /browser_pools/herd/release", { session_id }));
  expect(released.status).toBe(204);
  await control.poolWhen("herd", (pool) => pool.available_count === 2);
  tell({ saw: "one answer late; nothing is done twice", recoveryMs });
});

/** Removes the remembered answers, as ten seconds do: a repeat finds the first answer for so long. */
async function answersForgotten(): Promise<void> {
  const redis = new Redis(bed.redis.url);
  await age(redis, "*:answer:*", 11_000);
  redis.disconnect();
}
