import { afterEach, expect, test } from "vitest";
import { startResourceWatch } from "../../../src/node/usage/resource-watch.js";
import { until } from "../../support/browser/chromium-until.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { DrivenClock } from "../../support/driven-clock.js";
import { type NodeBed, openNodeBed } from "../../support/node/node-bed.js";
import { PoolBed } from "../../support/store/pool-bed.js";

let node: NodeBed | undefined;
afterEach(async () => {
  await node?.close();
  node = undefined;
});

test("one mount is measured in a turn of the event loop, however many browsers there are", async () => {
  node = await openNodeBed("resourcewatch", {});
  const pool = await PoolBed.create(node.bed, { size: 3 });
  for (const browser of await pool.claim(3)) await node.launch(browser);
  const clock = new DrivenClock();
  let [inThisTurn, most] = [0, 0];
  const looks: number[] = [];
  const watch = startResourceWatch({
    slots: node.slots,
    clock,
    log: silentLog,
    meter: { limitPassed() {} },
    limits: { maxScratchBytes: 2 ** 30, maxScratchFiles: 1000 },
    maxFullness: 0.9,
    memoryPeriodMs: 1000,
    storagePeriodMs: 60_000,
    usage: {
      memory: async () => new Map(),
      stored: async () => new Map(),
      storedInMount() {
        most = Math.max(most, (inThisTurn += 1));
        setImmediate(() => (inThisTurn = 0));
        return { bytes: 0, files: 0 };
      },
      async fullness(inMounts) {
        looks.push(inMounts.length);
        return 0;
      },
    },
  });
  await clock.advance(1000);
  await until("a look at all of them", () => looks.length > 0);
  // An ordinary user's browsers have none.
  const mounts = node.slots.all().filter((slot) => slot.chromium.isolation.limits.scratch === "mount");
  expect({ looks, most }).toEqual({ looks: [mounts.length], most: Math.min(mounts.length, 1) });
  watch.stop();
});
