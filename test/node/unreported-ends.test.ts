import { afterEach, beforeEach, expect, test } from "vitest";
import { newBrowserId } from "../../src/base/ids.js";
import { until } from "../support/browser/chromium-until.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot } from "../support/node/one-slot.js";
import { PoolBed } from "../support/store/pool-bed.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`unreported${(count += 1)}`, { isDriven: true });
});
afterEach(() => node.close());

/** A pool of which so many browsers have ended here; Redis answers no report of that. */
async function unreportable(ends: number): Promise<{ answer(): void; asked(): number }> {
  const pool = await PoolBed.create(node.bed, { size: ends });
  node.broken.add("end");
  for (let ended = 0; ended < ends; ended += 1) await node.slots.endMissing(newBrowserId(pool.partition));
  node.broken.clear();
  const { reports } = node.bed;
  const end = reports.end.bind(reports);
  let [asked, answer] = [0, (): void => {}];
  const silence = new Promise<void>((resolve) => (answer = resolve));
  reports.end = async (id, ...why) => {
    if (id.includes(pool.partition)) {
      asked += 1;
      await silence;
    }
    return await end(id, ...why);
  };
  return { answer: () => answer(), asked: () => asked };
}

/** The node's clock moves on by one period, and the look that is due then is over. */
async function period(): Promise<void> {
  await node.clock.advance(5000);
  await node.reconciler.look();
}

test("ends of one pool that cannot be reported hold up the looks at no other", async () => {
  const { pool, slot } = await oneSlot(node, { timeout_seconds: 9 });
  const held = await pool.lend();
  const away = await unreportable(5);
  await period();
  expect(slot.record?.lease.id).toBe(held.lease);
  await period();
  expect(await pool.state(held.id)).toBe("leased");
  // Redis's clock decides too.
  await pool.age(10_000);
  await period();
  expect(await pool.state(held.id)).not.toBe("leased");
  // However often they are looked at, each is asked for once at a time.
  expect(away.asked()).toBe(5);
  away.answer();
});

test("an end of another pool is reported beside them", async () => {
  const { pool, slot } = await oneSlot(node);
  const away = await unreportable(5);
  await period();
  expect(away.asked()).toBe(5);
  node.broken.add("end");
  await node.slots.retireNow(slot, "crashed", "it was killed");
  expect(await pool.state(slot.id)).toBe("idle");
  node.broken.clear();
  await period();
  await until("its report", async () => (await pool.state(slot.id)) === "gone");
  away.answer();
});
