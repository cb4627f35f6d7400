import { afterEach, beforeEach, expect, test } from "vitest";
import { RemudaError } from "../../src/base/errors.js";
import type { ProfileId } from "../../src/base/ids.js";
import { until } from "../support/browser/chromium-until.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";
import { claimOf } from "../support/store/store-bed.js";

let node: NodeBed;
let pool: PoolBed;
beforeEach(async () => {
  node = await openNodeBed("waiting");
  pool = await PoolBed.create(node.bed, { size: 3 });
  for (const browser of await pool.claim(3)) await node.launch(browser);
});
afterEach(() => node.close());

/** A browser in use whose end saves the profile; gives what ends it. */
async function saving(profile: ProfileId): Promise<() => Promise<void>> {
  const held = await pool.lend();
  const slot = node.slots.find(held.id);
  if (!slot) throw new Error("no slot");
  expect(await node.changeSession.change(slot, held.lease, { profile: { id: profile, save: true } })).toEqual(
    { isDone: true },
  );
  return async () => {
    await pool.release(held, { reuse: false });
    const claim = claimOf(await pool.record(held.id));
    await node.slots.retire({ kind: "retire", node: nodeA, browser: held.id, claim });
  };
}

test("saves that wait for a Redis that is away, as many as may be packed at once, keep no other from being packed and saved", async () => {
  const { profiles } = node.assets;
  const [waiting, other] = [await node.assets.addProfile(), await node.assets.addProfile()];
  const commit = profiles.commit.bind(profiles);
  let isAway = true;
  const asked = new Set<string>();
  profiles.commit = async (id, archive) => {
    if (id === waiting) asked.add(archive.digest);
    if (id === waiting && isAway) throw new RemudaError("store_unavailable");
    return await commit(id, archive);
  };
  const [one, two, three] = [await saving(waiting), await saving(waiting), await saving(other)];
  const ending = Promise.all([one(), two()]);
  await until("that both ask", () => asked.size === 2);
  await three();
  expect(node.saves).toEqual({ outcomes: ["saved"], told: [other] });
  isAway = false;
  await ending;
  expect(node.saves).toEqual({ outcomes: ["saved", "saved", "saved"], told: [other, waiting, waiting] });
});
