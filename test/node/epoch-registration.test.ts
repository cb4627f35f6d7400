import { afterEach, beforeEach, expect, test } from "vitest";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot, seatClient, takeSnapshot } from "../support/node/one-slot.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`epochs${(count += 1)}`);
});
afterEach(() => node.close());

/** Redis answers with the ids of a replica that was made the primary. */
async function promote(): Promise<void> {
  const { redis } = node.bed;
  await redis.replicaof("127.0.0.1", 1);
  await redis.replicaof("NO", "ONE");
}

test("a lease that clients have opened and a failover has forgotten goes on, and its browser is not lent", async () => {
  const { pool, slot } = await oneSlot(node);
  const restore = await takeSnapshot(node);
  const [cuts, held] = [[] as string[], await pool.lend()];
  expect(await seatClient(node, slot, { lease: held.lease, cuts })).toBe(true);
  await restore();
  await promote();
  expect(await pool.state(slot.id)).toBe("idle");
  await node.reconciler.look();
  expect(await pool.record(slot.id)).toMatchObject({
    state: "leased",
    lease: { id: held.lease, registrations: 1 },
  });
  expect((await pool.ask({ mayWait: false })).reply.kind).toBe("none");
  expect([cuts, slot.unknownLease]).toEqual([[], undefined]);
  expect(await seatClient(node, slot, { lease: held.lease })).toBe(true);
});

test("a node that is asked to register has whoever waits served of what nobody uses", async () => {
  const { pool, slot } = await oneSlot(node);
  await promote();
  await pool.age(1000);
  const { reply } = await pool.ask();
  expect(reply.kind).toBe("waiting");
  await node.registration.register(pool.partition);
  expect(await pool.state(slot.id)).toBe("leased");
});
