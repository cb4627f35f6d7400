import { afterEach, beforeEach, expect, test } from "vitest";
import type { StoredRecording } from "../../src/spec/flight-recording.js";
import { until } from "../support/browser/chromium-until.js";
import { isLiving } from "../support/living.js";
import { type NodeBed, openNodeBed } from "../support/node/node-bed.js";
import { oneSlot, seatClient } from "../support/node/one-slot.js";
import { PoolBed } from "../support/store/pool-bed.js";

let node: NodeBed;
let count = 0;
beforeEach(async () => {
  node = await openNodeBed(`flights${(count += 1)}`);
});
afterEach(() => node.close());

const recordingsOf = (pool: PoolBed): Promise<readonly StoredRecording[]> =>
  node.bed.projects.recordings(pool.partition, 10);
const kill = (): void => {
  for (const { pid } of node.launched) if (isLiving(pid)) process.kill(pid, "SIGKILL");
};
const firstOf = (pool: PoolBed): Promise<StoredRecording> =>
  until("a recording", async () => (await recordingsOf(pool))[0]);

test("a browser that crashes leaves what its holder's clients sent last, for its tombstone", async () => {
  const { pool, slot } = await oneSlot(node);
  const held = await pool.lend();
  expect(await seatClient(node, slot, { lease: held.lease })).toBe(true);
  slot.flight.sent("Page.enable");
  kill();
  const { lease, recording } = await firstOf(pool);
  expect(lease).toBe(held.lease);
  expect(recording).toMatchObject({
    session_id: slot.id,
    reason: "crashed",
    commands: { count: 1, last: [{ method: "Page.enable" }] },
  });
  const states = recording.states.map(({ state }) => state);
  expect(states[0]).toBe("launch_preparing");
  expect(states.slice(-4)).toEqual(["launched", "leased", "exited", "crashed"]);
  expect(recording.exit).toEqual({ signal: "SIGKILL" });
});

test("one that crashes after its holder has left tells nothing of that one", async () => {
  const { pool, slot } = await oneSlot(node);
  const held = await pool.lend();
  await seatClient(node, slot, { lease: held.lease });
  slot.flight.sent("Page.enable");
  await slot.activity.cutLease(held.lease, "released");
  kill();
  const { lease, recording } = await firstOf(pool);
  expect(lease).toBeUndefined();
  expect(recording.commands).toEqual({ count: 0, last: [] });
});

test("a launch that fails leaves how far it came and what Chromium said, found by its pool", async () => {
  await node.fake.turn({ failWithCode: 3, lines: ["no such display"] });
  const pool = await PoolBed.create(node.bed, { size: 1 });
  const [browser] = await pool.claim(1);
  if (!browser) throw new Error("nothing was claimed");
  await node.launch(browser);
  const { lease, recording } = await firstOf(pool);
  expect(lease).toBeUndefined();
  expect(recording).toMatchObject({ session_id: browser.id, reason: "launch_failed" });
  expect(recording.error).toMatch(/^Chromium failed to launch \(spawn\).*no such display/s);
  const states = recording.states.map(({ state }) => state);
  expect(states.slice(-2)).toEqual(["launch_spawn", "launch_failed"]);
});

test("a release, a stop and an end for being unclean leave none", async () => {
  const { pool, slot } = await oneSlot(node);
  await node.slots.retireNow(slot, "not_clean", "for the test");
  expect(await recordingsOf(pool)).toEqual([]);
});

test("where Redis does not take it, it is lost and the browser ends all the same", async () => {
  const { pool, slot } = await oneSlot(node);
  node.broken.add("keepRecording");
  kill();
  await until("its end", async () => (await pool.state(slot.id)) === "gone");
  expect(await recordingsOf(pool)).toEqual([]);
});
