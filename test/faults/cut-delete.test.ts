import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import { type DaemonProcess, spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import { Fleet } from "../support/daemon/fleet.js";
import { type CutProxy, openCutProxy } from "../support/store/cut-proxy.js";
import { fault, startWatch } from "../support/faults/fault.js";

let fleet: Fleet;
let proxy: CutProxy;
beforeEach(async () => {
  fleet = await Fleet.open();
  proxy = await openCutProxy(fleet.redis.url);
});
afterEach(async () => {
  await proxy.close();
  await fleet.close();
});

/** A control is asked to delete the pool, and dies when Redis has carried out its nth change. */
async function dieDeleting(pool: string, nth: number): Promise<void> {
  const dying: DaemonProcess = await spawnDaemon(new DaemonPlace({ role: "control", redisUrl: proxy.url }));
  const cut = proxy.cutAfter(nth);
  const unanswered = dying.call(`DELETE /browser_pools/${pool}`, { force: true }).catch(() => undefined);
  await cut;
  await dying.end("SIGKILL");
  await unanswered;
  dying.place.remove();
  proxy.restore();
}

/** A reap's period is 300 ms here; a reservation would be void by its age after two minutes. */
const reapedMs = 90_000;

for (const [what, filled] of [
  ["that is empty", 0],
  ["with a browser", 1],
] as const)
  fault(
    `a control dies between the two steps of the delete of a pool ${what}, and nobody asks again`,
    async (tell) => {
      const control = await fleet.control();
      await fleet.node("only");
      const pool = { name: "herd", size: 1, headless: true, fill_rate_per_minute: filled * 6000 };
      await control.call("POST /browser_pools", pool);
      const { id } = await control.poolWhen("herd", ({ available_count }) => available_count === filled);
      // What comes first notes who asks: the pool goes with the first change after which it is gone.
      const isThere = async () => (await control.call(`GET /browser_pools/${id}`)).status === 200;
      for (let nth = 1; await isThere(); nth += 1) await dieDeleting("herd", nth);
      const watch = startWatch();
      const statuses = new Set<number>();
      await until(
        "the name free",
        async () => {
          const { status } = await control.call("POST /browser_pools", pool);
          statuses.add(status);
          return status === 201;
        },
        reapedMs,
      );
      const recoveryMs = watch.since();
      expect([...statuses].every((status) => status === 201 || status === 409)).toBe(true);
      const redis = fleet.redis.client();
      const notes = await redis.keys("remuda:*:pools");
      await until(
        "its entry gone",
        async () => (await Promise.all(notes.map((key) => redis.hexists(key, id)))).every((has) => has === 0),
        reapedMs,
      );
      redis.disconnect();
      expect(notes).not.toEqual([]);
      expect((await control.call(`GET /browser_pools/${id}`)).status).toBe(404);
      tell({
        saw: `no answer; the name ${[...statuses].toSorted().toReversed().join(", then ")}`,
        recoveryMs,
      });
    },
  );
