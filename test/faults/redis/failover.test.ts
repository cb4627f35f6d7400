import { expect, onTestFinished } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { DaemonClient, Lease } from "../../support/daemon/daemon.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { startRedisPair } from "../../support/store/redis-pair.js";
import { openRedisProxy } from "../../support/store/redis-proxy.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();

/** Asks for a lease again and again; what was answered before there was one. */
async function untilLease(
  daemon: DaemonClient,
  pool: string,
): Promise<{ lease: Lease; refused: readonly number[] }> {
  const refused: number[] = [];
  const lease = await until("a lease", async () => {
    const { status, body } = await daemon.call(`POST /browser_pools/${pool}/acquire`, {
      acquire_timeout_seconds: 5,
    });
    if (status === 200) return body as Lease;
    if (status !== 204) refused.push(status);
    return undefined;
  });
  return { lease, refused };
}

const sawOf = (refused: readonly number[]): string =>
  refused.length === 0 ? "no refusal" : `${refused.length} × ${[...new Set(refused)].join(", ")}`;

fault(
  "Redis is demoted to a replica, stays one for a while, and its address then leads to the new primary",
  async (tell) => {
    const pair = await startRedisPair();
    onTestFinished(() => pair.stop());
    const proxy = await openRedisProxy(pair.primary.port, `${bed.redis.url}.pair`);
    onTestFinished(() => proxy.close());
    const daemon = await bed.start("all", { node: { lost_after_ms: 30_000 } }, { redisUrl: proxy.url });
    await daemon.makePool({ name: "herd", size: 2 });
    const held = (await daemon.call("POST /browser_pools/herd/acquire", { name: "held" })).body as Lease;
    const client = await connectRaw(held.cdp_ws_url);
    await pair.caughtUp();
    await pair.swap();
    for (const [operation, body] of [
      ["POST /browser_pools/herd/acquire", {}],
      ["POST /browsers", { headless: true }],
      ["POST /browser_pools", { size: 1, headless: true }],
      ["DELETE /browsers/held", undefined],
      ["PATCH /browsers/held", { tags: { a: "b" } }],
      ["POST /browser_pools/herd/release", { session_id: held.session_id }],
    ] as const) {
      const { status, body: told, headers } = await daemon.call(operation, body);
      expect([operation, status, told.code, Number(headers.get("retry-after")) > 0]).toEqual([
        operation,
        503,
        "store_unavailable",
        true,
      ]);
    }
    const watch = startWatch();
    proxy.move(pair.replica.port);
    const { refused } = await untilLease(daemon, "herd");
    const recoveryMs = watch.since();
    expect(
      refused.every((status) => status === 503),
      String(refused),
    ).toBe(true);
    expect((await daemon.call("GET /browsers/held")).body).toMatchObject({ lease_id: held.lease_id });
    expect(
      (await daemon.call("POST /browser_pools/herd/release", { session_id: held.session_id })).status,
    ).toBe(204);
    expect((await client.closed).code).toBe(4410);
    await daemon.poolWhen("herd", (pool) => pool.available_count === 1 && pool.acquired_count === 1);
    tell({ saw: `503 store_unavailable while it is a replica, then ${sawOf(refused)}`, recoveryMs });
    await daemon.stop();
    bed.gone(daemon);
  },
);
