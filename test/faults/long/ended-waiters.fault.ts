import { Redis } from "ioredis";
import { expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { DaemonClient, type Lease } from "../../support/daemon/daemon.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();
const patient = {
  acquire: { control_lost_after_ms: 120_000, provisional_seconds: 120 },
  node: { lost_after_ms: 120_000 },
  access: { end_leases_of_deleted_keys: true },
};

/** No control looks for the leases of ended keys any more. */
async function endsForgotten(): Promise<void> {
  const redis = new Redis(bed.redis.url);
  const at = "remuda:{access}:keyEnds";
  expect(await redis.exists(at)).toBe(1);
  await until("the end of the key forgotten", async () => (await redis.exists(at)) === 0, 90_000);
  redis.disconnect();
}

fault(
  "a control stands still (SIGSTOP) until nobody looks for the leases of a key any more",
  async (tell) => {
    const [paused, other] = [await bed.start("control", patient), await bed.start("control", patient)];
    await bed.start("node", patient);
    await other.makePool({ name: "herd", size: 1 });
    const { body } = await other.call("POST /org/api_keys", { name: "made" });
    const holder = new DaemonClient(paused.url, String(body.key));
    const acquire = (by: DaemonClient) =>
      by.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 110 });
    const release = async ({ session_id }: Lease) => {
      expect((await other.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
    };
    // What the paused control reads of the pool is kept there.
    await release((await acquire(holder)).body as Lease);
    const held = (await acquire(other)).body as Lease;
    const answer = acquire(holder).then(
      ({ status }) => status,
      () => "closed",
    );
    await other.poolWhen("herd", ({ waiting_count }) => waiting_count === 1);
    paused.signal("SIGSTOP");
    expect((await other.call(`DELETE /org/api_keys/${body.id}`)).status).toBe(204);
    await endsForgotten();
    await release(held);
    await other.poolWhen("herd", (pool) => pool.acquired_count === 1 && pool.waiting_count === 0);
    paused.signal("SIGCONT");
    const watch = startWatch();
    expect([401, "closed"]).toContain(await answer);
    await other.poolWhen("herd", (pool) => pool.acquired_count === 0 && pool.available_count === 1);
    tell({ saw: "no browser for who waited with it", recoveryMs: watch.since() });
  },
  180_000,
);

fault(
  "a control stands still (SIGSTOP) until its waiters are passed over, one with an ended key",
  async (tell) => {
    const [paused, other] = [await bed.start("control"), await bed.start("control")];
    await bed.start("node");
    await other.makePool({ name: "herd", size: 1 });
    const { body } = await other.call("POST /org/api_keys", { name: "made" });
    const held = (await other.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    const answer = new DaemonClient(paused.url, String(body.key))
      .call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 110 })
      .then(
        ({ status }) => status,
        () => "closed",
      );
    await other.poolWhen("herd", ({ waiting_count }) => waiting_count === 1);
    paused.signal("SIGSTOP");
    expect((await other.call(`DELETE /org/api_keys/${body.id}`)).status).toBe(204);
    await other.poolWhen("herd", ({ waiting_count }) => waiting_count === 0);
    const { session_id } = held;
    expect((await other.call("POST /browser_pools/herd/release", { session_id })).status).toBe(204);
    await other.poolWhen("herd", ({ available_count }) => available_count === 1);
    paused.signal("SIGCONT");
    const watch = startWatch();
    expect([401, "closed"]).toContain(await answer);
    await other.poolWhen("herd", (pool) => pool.available_count === 1 && pool.waiting_count === 0);
    tell({ saw: "no browser for who waited with it", recoveryMs: watch.since() });
  },
);
