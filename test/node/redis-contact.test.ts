import { afterEach, beforeEach, expect, test } from "vitest";
import { RemudaError } from "../../src/base/errors.js";
import { RedisContact } from "../../src/node/redis-contact.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { NetworkBed } from "../support/node/network-bed.js";
import type { NodeBed } from "../support/node/node-bed.js";
import { nodeA } from "../support/store/pool-bed.js";

let bed: NetworkBed;
let node: NodeBed;
let count = 0;
beforeEach(async () => {
  bed = await NetworkBed.open(`contact${(count += 1)}`);
  node = bed.node;
});
afterEach(() => bed.close());

/** A node with four pools that nobody has borrowed from, whose one Redis answers or does not. */
async function openContact(limitMs: number | null = null) {
  for (let pools = 0; pools < 4; pools += 1) await bed.launch();
  node.redisContact.close();
  const { slots, poolStore, networkSync, clock } = node;
  const state = { isAway: false, looks: 0, underWay: 0 };
  const { networkChanges } = poolStore;
  poolStore.networkChanges = async (partition) => {
    state.looks += 1;
    if (state.isAway) throw new RemudaError("store_unavailable");
    state.underWay += 1;
    return await networkChanges.call(poolStore, partition).finally(() => (state.underWay -= 1));
  };
  const ports = { node: nodeA, slots, poolStore, networkSync, clock, log: silentLog };
  const contact = new RedisContact({ ...ports, isCluster: false, limitMs, isolatedMs: 120_000 });
  const passSeconds = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      await clock.advance(1000);
      await until("the answers", () => state.underWay === 0);
    }
  };
  return { contact, state, passSeconds };
}

test("a node of which nobody has a browser asks its one Redis every twelve seconds, however many pools it has", async () => {
  const { contact, state, passSeconds } = await openContact();
  await passSeconds(240);
  contact.close();
  expect(state.looks).toBeGreaterThan(15);
  expect(state.looks).toBeLessThan(25);
  expect(node.slots.all().filter(({ isEnding }) => isEnding)).toEqual([]);
});

test("a short limit is none for a node whose Redis answers", async () => {
  const { contact, state } = await openContact(500);
  for (let passedMs = 0; passedMs < 3000; passedMs += 125) {
    await node.clock.advance(125);
    await until("the answers", () => state.underWay === 0);
    expect(node.slots.all().filter(({ egress }) => egress.isShut)).toEqual([]);
  }
  contact.close();
});

test("where that is away for too long, the browsers of all of them end", async () => {
  const { contact, state, passSeconds } = await openContact();
  await passSeconds(20);
  state.isAway = true;
  await passSeconds(100);
  expect(node.slots.all().filter(({ isEnding }) => isEnding)).toEqual([]);
  await passSeconds(40);
  contact.close();
  await until("their end", () => node.slots.all().every(({ isEnding }) => isEnding));
});
