import { expect, onTestFinished } from "vitest";
import { openSite } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { askForever } from "../../support/egress/egress-traffic.js";
import { connectRaw } from "../../support/gateway/raw-cdp.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { fault, startWatch } from "../../support/faults/fault.js";

const bed = useFaultBed();

/** The default of `node.expire_period_seconds`, and what the look itself and a busy machine may take. */
const tick = { periodMs: 5000, marginMs: 3000 };

fault(
  "Redis is cut off from everybody for 60 s",
  async (tell) => {
    const site = await openSite();
    onTestFinished(() => site.close());
    // The defaults of everything that decides who is lost.
    const usual = {
      node: { beat_period_ms: 1000, lost_after_ms: 15_000, expire_period_seconds: tick.periodMs / 1000 },
      acquire: { control_beat_period_ms: 1000, control_lost_after_ms: 5000 },
    };
    const control = await bed.start("control", usual);
    const node = await bed.start("node", usual);
    await control.makePool({ name: "herd", size: 3, timeout_seconds: 30 });
    const acquire = async (name: string): Promise<Lease> =>
      (await control.call("POST /browser_pools/herd/acquire", { name })).body as Lease;
    const [used, left] = [await acquire("used"), await acquire("left")];
    const client = await connectRaw(used.cdp_ws_url);
    const page = await client.attach();
    await askForever(client, page, [site.origin]);
    // Whoever leaves is inactive from here on.
    await (await connectRaw(left.cdp_ws_url)).close();
    await until("traffic", () => site.requests.length > 3);
    await bed.proxy.cut();
    const refusals = new Set<string>();
    const cutFor = startWatch();
    let seen = site.requests.length;
    while (cutFor.since() < 60_000) {
      const { status, body, headers } = await control.call("POST /browser_pools/herd/acquire", {});
      refusals.add(`${status} ${String(body.code)}, Retry-After ${headers.get("retry-after")}`);
      expect(
        await client.evaluate("new Promise((resolve) => setTimeout(() => resolve('on'), 2000))", page),
      ).toBe("on");
      expect(site.requests.length).toBeGreaterThan(seen);
      seen = site.requests.length;
    }
    // Sockets are served; that Redis is lost is told beside it.
    for (const daemon of [control, node]) {
      expect(await daemon.call("GET /readyz")).toMatchObject({
        status: 200,
        body: { status: "ready", store: "lost" },
      });
      expect((await daemon.call("GET /metrics")).text).toContain("remuda_store_up 0\n");
    }
    expect([...refusals]).toEqual(["503 store_unavailable, Retry-After 1"]);
    await bed.proxy.restore();
    const watch = startWatch();
    await until("an answer", async () => (await control.call("GET /browser_pools")).status === 200, 20_000);
    const recoveryMs = watch.since();
    // Its 30 s were over long before: one period of the node's look ends it. Who was connected is not
    // inactive.
    await until(
      "the end of what nobody used",
      async () => (await control.call("GET /browsers/left")).status === 404,
      tick.periodMs + tick.marginMs,
    );
    const expiredMs = watch.since();
    expect((await control.call("GET /browsers/used")).body).toMatchObject({ lease_id: used.lease_id });
    expect(await client.evaluate("6 * 7", page)).toBe(42);
    await control.poolWhen("herd", (pool) => pool.available_count === 2 && pool.acquired_count === 1);
    expect(control.log).not.toContain("node lost");
    tell({
      saw: `${[...refusals].join()}; sockets and traffic went on; inactive lease over after ${(expiredMs / 1000).toFixed(1)} s`,
      recoveryMs,
    });
  },
  240_000,
);

fault(
  "a node is without Redis for longer than node.isolated_limit_seconds",
  async (tell) => {
    const file = { node: { id: "far", isolated_limit_seconds: 20, lost_after_ms: 8000 } };
    const control = await bed.start("control", file, { redisUrl: bed.redis.url });
    const node = await bed.start("node", file);
    await control.makePool({ name: "herd", size: 1 });
    const held = (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    const client = await connectRaw(
      held.cdp_ws_url.replace(new URL(control.url).host, new URL(node.url).host),
    );
    const page = await client.attach();
    await bed.proxy.cut();
    const watch = startWatch();
    // Lost to everybody else, and still driven by its holder.
    await until(
      "the lease over in the records",
      async () => (await control.call(`GET /browsers/${held.session_id}`)).status === 404,
      20_000,
    );
    expect(await client.evaluate("6 * 7", page)).toBe(42);
    await client.closed;
    const alone = watch.since();
    await bed.proxy.restore();
    const back = startWatch();
    await control.poolWhen("herd", (pool) => pool.available_count === 1, 40_000);
    tell({ saw: `socket cut after ${(alone / 1000).toFixed(1)} s alone`, recoveryMs: back.since() });
  },
  240_000,
);
