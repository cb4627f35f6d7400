import { afterEach, beforeEach, expect, test } from "vitest";
import type { ProfileId } from "../../src/base/ids.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot } from "../support/node/one-slot.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`outlasting${(count += 1)}`);
});
afterEach(() => node.close());

const drainLimitMs = 540_000;

test.each([
  [540, false],
  [541, true],
])("a lease with a timeout of %i s may outlast a drain of 540 s: %s", async (seconds, may) => {
  const { pool, slot } = await oneSlot(node, { timeout_seconds: seconds });
  expect(slot.mayOutlast(drainLimitMs)).toBe(false);
  const held = await pool.lend();
  await node.reconciler.look();
  expect(slot.mayOutlast(drainLimitMs)).toBe(may);
  expect(slot.mayOutlast(0)).toBe(true);
  await pool.release(held);
  await slot.activity.cutLease(held.lease, "released");
  expect(slot.mayOutlast(0)).toBe(false);
});

test("a lease whose end saves a profile may outlast any drain, until it is saved", async () => {
  const { pool, slot } = await oneSlot(node, { timeout_seconds: 60 });
  slot.profile = { id: "profile" as ProfileId, isSaved: true };
  expect(slot.mayOutlast(drainLimitMs)).toBe(false);
  const held = await pool.lend();
  await node.reconciler.look();
  expect(slot.mayOutlast(drainLimitMs)).toBe(true);
  await slot.activity.cutLease(held.lease, "released");
  slot.endBegins("released");
  expect(slot.mayOutlast(drainLimitMs)).toBe(true);
  slot.profile = { id: "profile" as ProfileId, isSaved: false };
  expect(slot.mayOutlast(drainLimitMs)).toBe(false);
});
