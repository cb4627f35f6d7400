import { expect, test } from "vitest";
import { type BrowserId, newBrowserId, newLeaseId } from "../../../src/base/ids.js";
import { RedisProjectStore } from "../../../src/store/project/project-store.js";
import { recording } from "../../support/http/recorded-telemetry.js";
import { age } from "../../support/store/age.js";
import { onBoth } from "../../support/store/on-both.js";
import { PoolBed } from "../../support/store/pool-bed.js";
import { defaultLimits } from "../../support/store/store-limits.js";

const dayMs = 86_400_000;
const textOf = (browser: BrowserId, lease = newLeaseId()): string =>
  JSON.stringify({ lease, recording: { ...recording, session_id: browser } });

onBoth("flight recordings", ({ bed }) => {
  const later = (ms: number): Promise<void> => age(bed().redis, "remuda:*", ms);
  const idsOf = async (pool: PoolBed): Promise<string[]> =>
    (await bed().projects.recordings(pool.partition, 10)).map(({ recording: { session_id: id } }) => id);

  test("each is found by its browser, and the newest by their pool", async () => {
    const { projects } = bed();
    const [one, other] = [await PoolBed.create(bed(), { size: 1 }), await PoolBed.create(bed(), { size: 1 })];
    const [first, second] = [newBrowserId(one.partition), newBrowserId(one.partition)];
    const lease = newLeaseId();
    await projects.keepRecording(first, textOf(first, lease));
    await later(1000);
    await projects.keepRecording(second, textOf(second));
    await projects.keepRecording(newBrowserId(other.partition), textOf(first));
    expect(await projects.findRecording(first)).toEqual({
      lease,
      recording: { ...recording, session_id: first },
    });
    expect(await projects.findRecording(newBrowserId(one.partition))).toBeUndefined();
    expect(await idsOf(one)).toEqual([second, first]);
    expect(await projects.recordings(one.partition, 1)).toHaveLength(1);
  });

  test("a day, at most so many, the oldest go first", async () => {
    const { project, store, redis } = bed();
    const few = new RedisProjectStore(store, project, { ...defaultLimits, maxRecordings: 2 });
    const pool = await PoolBed.create(bed(), { size: 1 });
    const ids = [1, 2, 3].map(() => newBrowserId(pool.partition));
    for (const id of ids) {
      await few.keepRecording(id, textOf(id));
      await later(1000);
    }
    expect(await idsOf(pool)).toEqual([ids[2], ids[1]]);
    await later(dayMs - 1500);
    await few.sweepTombstones();
    expect(await idsOf(pool)).toEqual([ids[2]]);
    await later(dayMs);
    await few.sweepTombstones();
    expect(await redis.exists(`remuda:{project-${project}}:flightRecordings`)).toBe(0);
    expect(await redis.exists(`remuda:{project-${project}}:flightRecordingOrder`)).toBe(0);
  });

  test("it goes with the tombstone of its browser", async () => {
    const { project, store, projects } = bed();
    const few = new RedisProjectStore(store, project, { ...defaultLimits, maxTombstones: 1 });
    const pool = await PoolBed.filled(bed(), { size: 2 });
    const ended: BrowserId[] = [];
    for (let at = 0; at < 2; at += 1) {
      const held = await pool.lend();
      ended.push(held.id);
      await projects.keepRecording(held.id, textOf(held.id, held.lease));
      await pool.release(held, { reuse: false });
      await later(1000);
    }
    await few.sweepTombstones();
    expect(await Promise.all(ended.map((id) => projects.findTombstone(id)))).toMatchObject([undefined, {}]);
    expect(await Promise.all(ended.map((id) => projects.findRecording(id)))).toMatchObject([undefined, {}]);
  });
});
