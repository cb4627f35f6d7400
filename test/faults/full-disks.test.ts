import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished } from "vitest";
import { makeFakeChromium, standIn } from "../support/browser/chromium-fake.js";
import { until } from "../support/browser/chromium-until.js";
import type { Lease } from "../support/daemon/daemon.js";
import { type DaemonProcess, spawnDaemon } from "../support/daemon/daemon-process.js";
import { DaemonPlace } from "../support/daemon/daemon-settings.js";
import { Fleet, spread } from "../support/daemon/fleet.js";
import { connectRaw } from "../support/gateway/raw-cdp.js";
import { fault, startWatch } from "../support/faults/fault.js";
import { canMountDisks, diskOf, onLoopDisk, onSmallDisk } from "../support/faults/small-disk.js";
import { uploadExtension } from "../support/faults/upload-extension.js";

let fleet: Fleet;
beforeEach(async () => {
  fleet = await Fleet.open();
});
afterEach(() => fleet.close());

const acquire = async (control: DaemonProcess): Promise<Lease> => {
  const { status, body } = await control.call("POST /browser_pools/herd/acquire", {});
  expect(status).toBe(200);
  return body as Lease;
};

describe.runIf(process.getuid?.() === 0)("where a disk can be mounted", () => {
  fault("the disk of a control is full: it lends, and refuses what it would have to store", async (tell) => {
    const control = await fleet.control({}, undefined, ({ dataDir }) => onSmallDisk(dataDir, 16));
    await fleet.node("a");
    await control.makePool({ name: "herd", size: 2 });
    const disk = diskOf(control, control.place.dataDir);
    disk.fill();
    for (let count = 0; count < 5; count += 1) {
      expect(await uploadExtension(control)).toMatchObject({ status: 503, code: "unavailable" });
      const { session_id } = await acquire(control);
      const client = await connectRaw((await control.call(`GET /browsers/${session_id}`)).body.cdp_ws_url);
      expect((await client.send("Browser.getVersion")).result).toBeDefined();
      await client.close();
      await control.call("POST /browser_pools/herd/release", { session_id });
    }
    expect((await control.call("GET /extensions")).body).toEqual([]);
    disk.empty();
    const watch = startWatch();
    expect(await uploadExtension(control)).toMatchObject({ status: 201 });
    const recoveryMs = watch.since();
    expect((await control.call("GET /extensions")).body).toHaveLength(1);
    await control.poolWhen("herd", (pool) => pool.available_count === 2);
    expect(control.log).not.toContain("daemon failed");
    tell({ saw: "503 unavailable for uploads, of which nothing is left; leases went on", recoveryMs });
  });

  fault("the disk of a daemon with a Redis of its own is full", async (tell) => {
    const fake = await makeFakeChromium();
    onTestFinished(() => fake.remove());
    const place = new DaemonPlace({ file: { drain: { limit_seconds: 0 }, ...standIn(fake) } });
    const daemon = await spawnDaemon(place, onSmallDisk(place.dataDir, 96));
    await daemon.makePool({ name: "herd", size: 3 });
    const leases = [await acquire(daemon)];
    const client = await connectRaw(leases[0]?.cdp_ws_url ?? "");
    const disk = diskOf(daemon, place.dataDir);
    disk.fill();
    let refusals = 0;
    for (const since = performance.now(); refusals === 0 || performance.now() - since < 4000;) {
      const { status, body } = await daemon.call("POST /browser_pools/herd/acquire", {
        acquire_timeout_seconds: 0,
      });
      if (status === 200) leases.push(body as Lease);
      if (status < 300) continue;
      refusals += 1;
      expect({ status, code: body?.code }).toEqual({ status: 503, code: "store_unavailable" });
      expect((await client.send("Browser.getVersion")).result).toBeDefined();
    }
    disk.empty();
    const watch = startWatch();
    await daemon.poolWhen("herd", (pool) => pool.acquired_count === leases.length);
    for (const { session_id } of leases)
      await until(
        "a lease given back",
        async () =>
          (await daemon.call("POST /browser_pools/herd/release", { session_id })).status === 204 || undefined,
      );
    await daemon.poolWhen("herd", (pool) => pool.available_count === 3);
    tell({ saw: "leases, then 503 store_unavailable; sockets went on", recoveryMs: watch.since() });
    await daemon.stop();
  });
});

describe.runIf(canMountDisks())("where a disk with a file system of its own can be mounted", () => {
  fault(
    "the scratch of a node is full: its launches fail, others launch, and what is lent goes on",
    async (tell) => {
      const soon = { fill: { backoff_initial_ms: 50, backoff_max_ms: 500 } };
      const control = await fleet.control(soon);
      const { daemon } = await fleet.node("a", {
        ...soon,
        through: ({ directory, scratchDirectory }) =>
          onLoopDisk(scratchDirectory, join(directory, "disk"), 48),
      });
      await control.makePool({ name: "herd", size: 2 });
      const held = await acquire(control);
      const client = await connectRaw(held.cdp_ws_url);
      const disk = diskOf(daemon, daemon.place.scratchDirectory);
      disk.fill();
      const tried = await until("a launch that was tried", async () => {
        const got = await control.call("POST /browsers", { headless: true });
        return got.status === 529 ? undefined : got;
      });
      expect(tried).toMatchObject({ status: 500, body: { code: "launch_failed" } });
      await fleet.node("b", soon);
      await control.call("POST /browser_pools/herd/flush", {});
      await control.poolWhen("herd", (pool) => pool.available_count === 1);
      // What the flush retires is in the list until its node has ended it.
      await expect.poll(() => spread(control, "herd")).toEqual({ a: 1, b: 1 });
      expect((await client.send("Browser.getVersion")).result).toBeDefined();
      disk.empty();
      const watch = startWatch();
      await control.call("PATCH /browser_pools/herd", { size: 4 });
      await until("a launch on the node", async () => ((await spread(control, "herd"))["a"] ?? 0) > 1);
      const recoveryMs = watch.since();
      await control.poolWhen("herd", (pool) => pool.available_count === 3 && pool.acquired_count === 1);
      expect((await control.call(`GET /browsers/${held.session_id}`)).body).toMatchObject({
        lease_id: held.lease_id,
      });
      expect(daemon.log).not.toContain("daemon failed");
      await client.close();
      tell({ saw: "500 launch_failed where no other node is there, else nothing", recoveryMs });
    },
  );
});
