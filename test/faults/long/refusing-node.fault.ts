import { request } from "node:http";
import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import type { Lease } from "../../support/daemon/daemon.js";
import { type DaemonProcess } from "../../support/daemon/daemon-process.js";
import { Fleet, spread } from "../../support/daemon/fleet.js";
import { fault, startWatch } from "../../support/faults/fault.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

/** The defaults of all that decides when a node is noticed to be gone. */
const usual = {
  node: { beat_period_ms: 1000, lost_after_ms: 15_000 },
  periods: { fill_ms: 1000, reap_ms: 5000, recycle_ms: 30_000 },
};
const callers = 4;
const watchedMs = 10_000;
/** Where no client comes, its missing beats tell: long before it counts as lost. */
const silentWithinMs = 5_000;

/** The status of a client's upgrade; its socket is gone again at once. */
const connect = (url: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    };
    const asking = request(url.replace(/^ws/, "http"), { agent: false, headers });
    asking.once("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    asking.once("upgrade", ({ statusCode }, socket) => {
      socket.destroy();
      resolve(statusCode ?? 0);
    });
    asking.once("error", reject).end();
  });

interface Served {
  acquired: number;
  /** Leases whose browser could not be reached. */
  dead: number;
  lastDeadMs: number;
}

/** Acquires, connects where `connects`, and releases, again and again. */
async function use(
  control: DaemonProcess,
  { connects, isDead }: { connects: boolean; isDead(lease: Lease): boolean },
): Promise<Served> {
  const watch = startWatch();
  const served: Served = { acquired: 0, dead: 0, lastDeadMs: 0 };
  const call = async (): Promise<void> => {
    const { status, body } = await control.call("POST /browser_pools/herd/acquire", {
      acquire_timeout_seconds: 10,
    });
    if (status !== 200) return;
    const lease = body as Lease;
    served.acquired += 1;
    if (isDead(lease)) {
      served.dead += 1;
      served.lastDeadMs = watch.since();
    }
    if (connects) expect(await connect(lease.cdp_ws_url)).toBe(isDead(lease) ? 502 : 101);
    await control.call("POST /browser_pools/herd/release", { session_id: lease.session_id });
  };
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (watch.since() < watchedMs) await call();
    }),
  );
  return served;
}

for (const [what, connects] of [
  ["and clients come for its browsers", true],
  ["and no client comes for any browser", false],
] as const) {
  fault(
    `a node refuses connections (SIGKILL), ${what}`,
    async (tell) => {
      const control = await fleet.control(usual);
      const [a] = [await fleet.node("a", usual), await fleet.node("b", usual)];
      await control.makePool({ name: "herd", size: 20 });
      expect(await spread(control, "herd")).toEqual({ a: 10, b: 10 });
      const onA = new Set(
        (await control.browsersOf("herd"))
          .filter(({ node }) => node === "a")
          .map(({ session_id }) => session_id),
      );
      const from = control.log.length;
      await fleet.kill(a.daemon);
      const { acquired, dead, lastDeadMs } = await use(control, {
        connects,
        isDead: ({ session_id }) => onA.has(session_id),
      });
      await until("the node taken for silent", () => control.log.includes("its browsers are not lent"));
      // What nobody came for is idle again after its release: as long as the node is not known to be silent
      // it has its share of the acquires, half of them.
      expect(dead).toBeLessThanOrEqual(connects ? callers * 2 : acquired / 2);
      expect(lastDeadMs).toBeLessThan(silentWithinMs);
      await until("the node lost", () => control.log.slice(from).includes('"node lost"'));
      await control.poolWhen("herd", (pool) => pool.available_count === 20);
      await fleet.again(a.daemon);
      tell({
        saw: `${dead} of ${acquired} acquires in 10 s gave a browser of it, the last after ${(lastDeadMs / 1000).toFixed(1)} s`,
      });
    },
    180_000,
  );
}
