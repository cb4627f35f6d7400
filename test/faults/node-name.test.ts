import { afterEach, beforeEach, expect } from "vitest";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { Fleet } from "../support/daemon/fleet.js";
import { keysAbout } from "../support/store/redis-look.js";
import { fault } from "../support/faults/fault.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

fault(
  "a second node of one id refuses to start, says whose it is, and leaves the leases of the first alone",
  async (tell) => {
    const control = await fleet.control();
    const first = await fleet.node("a");
    await control.makePool({ name: "herd", size: 2 });
    const lease = (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    const { port } = new URL(first.daemon.url);
    await expect(fleet.node("a")).rejects.toThrow(
      new RegExp(`the node id a is in use by the daemon at 127\\.0\\.0\\.1:${port}`),
    );
    expect((await control.call(`GET /browsers/${lease.session_id}`)).body).toMatchObject({
      lease_id: lease.lease_id,
    });
    expect(await control.poolWhen("herd", () => true)).toMatchObject({
      available_count: 1,
      acquired_count: 1,
    });
    tell({ saw: "nothing: the second says whose id it is, and ends" });
  },
);

fault(
  "where the first has died, the second waits until it is known to be gone, and says so; its own next start does not wait",
  async (tell) => {
    // Longer than a start takes.
    const node = { lost_after_ms: 30_000 };
    // A control that is busy for half of it begins to listen anew.
    const acquire = { control_lost_after_ms: 20_000 };
    const control = await fleet.control({ node, acquire });
    const first = await fleet.node("a", { node });
    await control.makePool({ name: "herd", size: 1 });
    await fleet.kill(first.daemon);
    const again = await fleet.again(first.daemon);
    expect(again.log).not.toContain("node waits");
    await fleet.kill(again);
    const second = await fleet.node("a", { node });
    await until("what it says", () =>
      second.daemon.log.includes("node waits for another of its id to be gone"),
    );
    await control.poolWhen("herd", (pool) => pool.available_count === 1, 120_000);
    // What the killed one has left on this machine is its own next start's to clear, which has to have
    // another id by now.
    await second.daemon.stop();
    fleet.forget(second.daemon);
    await fleet.again(first.daemon);
    tell({ saw: "nothing: the second starts once the first is known to be gone" });
  },
);

fault(
  "a node on a copy of another's data directory is another, and ends none of its browsers",
  async (tell) => {
    const control = await fleet.control();
    const first = await fleet.node("a");
    await control.makePool({ name: "herd", size: 2 });
    const lease = (await control.call("POST /browser_pools/herd/acquire", {})).body as Lease;
    const copying = 'mkdir -p "$2" && cp -a "$1/." "$2" && shift 2 && exec "$@"';
    const { dataDir: original } = first.daemon.place;
    const through = ({ dataDir }: { readonly dataDir: string }) => [
      "sh",
      "-c",
      copying,
      "sh",
      original,
      dataDir,
    ];
    await expect(fleet.node("a", { through })).rejects.toThrow("the node id a is in use by the daemon at");
    expect((await control.call(`GET /browsers/${lease.session_id}`)).body).toMatchObject({
      lease_id: lease.lease_id,
    });
    tell({ saw: "nothing: the copy says whose the id is, and ends" });
  },
);

fault("a node that stops leaves no key of its queue", async (tell) => {
  const control = await fleet.control();
  const { daemon } = await fleet.node("brief");
  await control.makePool({ name: "herd", size: 2 });
  expect((await keysAbout(fleet.redis.url, ["node-brief"])).length).toBeGreaterThan(0);
  await daemon.stop();
  fleet.forget(daemon);
  await until("no key of it", async () => (await keysAbout(fleet.redis.url, ["node-brief"])).length === 0);
  await control.poolWhen("herd", (pool) => pool.available_count === 0 && pool.launching_count === 0);
  expect(await keysAbout(fleet.redis.url, ["node-brief"])).toEqual([]);
  tell({ saw: "nothing" });
});
