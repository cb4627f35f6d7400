import { afterEach, beforeEach, expect, test } from "vitest";
import type { Slot } from "../../src/node/slot.js";
import { PipeClient } from "../support/browser/chromium-client.js";
import { openSite, type Site } from "../support/browser/chromium-site.js";
import { until } from "../support/browser/chromium-until.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot, seatClient } from "../support/node/one-slot.js";
import type { Held, PoolBed } from "../support/store/pool-bed.js";

let node: NodeBed;
let site: Site;
let count = 0;
let clients = 0;
beforeEach(async () => {
  [node, site] = await Promise.all([openNodeBed(`resets${(count += 1)}`, { isReal: true }), openSite()]);
});
afterEach(async () => {
  await node.close();
  await site.close();
});

interface Holder {
  readonly pool: PoolBed;
  readonly held: Held;
  readonly client: PipeClient;
  readonly session: string;
}

async function holderOf(pool: PoolBed, slot: Slot): Promise<Holder> {
  const held = await pool.lend();
  expect(await seatClient(node, slot, held)).toBe(true);
  const client = new PipeClient(slot.chromium, 1000 * (clients += 1));
  const session = await client.attach();
  await client.open(`${site.origin}/`, session);
  return { pool, held, client, session };
}

/** The state of the browser after the reset that follows its release. */
async function reset({ pool, held }: Holder): Promise<string> {
  await pool.release(held);
  const { claim } = await pool.record(held.id);
  if (!claim) throw new Error("it is not reset");
  await node.leaseCommands.reset({ browser: held.id, claim });
  return await pool.state(held.id);
}

const wanted = { reset_on_release: "state", headless: true } as const;

test("a file that a holder has asked for and that has not come yet never comes, and the next holder has a way out", async () => {
  const { pool, slot } = await oneSlot(node, wanted);
  const holder = await holderOf(pool, slot);
  await holder.client.download("/silent", holder.session);
  await until("the question for it", () => site.open.size === 1);
  const state = await reset(holder);
  await until("the end of the question", () => site.open.size === 0);
  expect(site.requests.filter((path) => path === "/silent")).toHaveLength(1);
  // Chromium may count what was cut as a download that has failed.
  if (state === "idle") await holderOf(pool, slot);
  else expect(state).toBe("gone");
});

test("a browser with a download under way is replaced", async () => {
  const { pool, slot } = await oneSlot(node, wanted);
  const holder = await holderOf(pool, slot);
  await holder.client.download("/slow-file", holder.session);
  await until("the download", () => site.open.size === 1);
  let reopened = 0;
  const hold = slot.egress.hold.bind(slot.egress);
  slot.egress.hold = () => {
    const reopen = hold();
    return async () => {
      reopened += 1;
      await reopen();
    };
  };
  expect(await reset(holder)).toBe("gone");
  // It reaches nothing any more until it has ended.
  expect(reopened).toBe(0);
  await until("its end", () => site.open.size === 0);
});
