import { afterEach, beforeEach, expect, test } from "vitest";
import { Drain } from "../../src/node/drain.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { until } from "../support/browser/chromium-until.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { nodeA, PoolBed } from "../support/store/pool-bed.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`drain${(count += 1)}`);
});
afterEach(() => node.close());

test("a drain goes on while Redis cannot be reached, and ends when the last lease has", async () => {
  const { bed, slots, clock, poolStore } = node;
  const pool = await PoolBed.create(bed, { size: 1 });
  await bed.projects.addPool(pool.id);
  await bed.projects.openPool(pool.id);
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  const held = await pool.lend();
  const drain = new Drain({
    node: nodeA,
    poolStore,
    projects: bed.projects,
    nodes: bed.nodes,
    slots,
    clock,
    log: silentLog,
  });
  node.broken.add("recycle").add("browsersOf");
  let isOver = false;
  const waiting = drain.wait(600_000, new AbortController().signal).then(() => (isOver = true));
  for (let second = 0; second < 5; second += 1) await clock.advance(1000);
  node.broken.clear();
  await clock.advance(1000);
  expect(isOver).toBe(false);
  expect(await pool.state(browser.id)).toBe("leased");
  await pool.release(held, { reuse: false });
  await until("the end of the drain", async () => {
    await clock.advance(1000);
    return isOver;
  });
  await waiting;
});
