import { afterAll, beforeAll, expect, test } from "vitest";
import { newPoolId, newProjectId } from "../../src/base/ids.js";
import { makeListPools } from "../../src/pool/pool-operations.js";
import type { PoolListQuery } from "../../src/spec/paging.js";
import { projectKey } from "../../src/store/redis/keys.js";
import { type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { PoolBed } from "../support/store/pool-bed.js";
import { costOf } from "../support/store/redis-cost.js";

let control: ControlBed;
beforeAll(async () => {
  control = await openControlBed("list-pools");
});
afterAll(() => control.close());

test("a page of pools reads the pools that it shows, however many there are", async () => {
  const { poolStore, allProjects } = control.bed;
  const own = allProjects.of(newProjectId()).projects;
  const ids: string[] = [];
  for (let count = 0; count < 60; count += 1) {
    const { id } = await PoolBed.create(control.bed, { name: `herd-${count}` });
    await own.openPool(id);
    ids.unshift(id);
  }
  const list = makeListPools({ poolStore, projects: own, region: "here" });
  const idsOf = async (query: PoolListQuery) => {
    const { items, hasMore } = await list(query);
    return { ids: items.map(({ id }) => id), hasMore };
  };
  const page = { limit: 3, offset: 20 };
  const { reads, wholeReads } = await costOf(control.bed.redis, () => list(page));
  // The script that reads a pool reads its generation by itself.
  expect({ reads, wholeReads }).toEqual({ reads: page.limit, wholeReads: 0 });
  expect(await idsOf(page)).toEqual({ ids: ids.slice(20, 23), hasMore: true });
  expect(await idsOf({ limit: 3, offset: 58 })).toEqual({ ids: ids.slice(58), hasMore: false });
  expect(await idsOf({ ...page, query: "herd-1" })).toEqual({ ids: [], hasMore: false });
  expect(await idsOf({ limit: 2, offset: 1, query: "herd-1" })).toMatchObject({ hasMore: true });
  // An earlier release has noted none of them in their order, and a pool that is gone.
  const orderKey = projectKey(own.project, "poolOrder");
  await control.bed.redis.del(orderKey);
  await control.bed.redis.zadd(orderKey, 1, newPoolId());
  await own.sweepPools();
  expect((await idsOf({ limit: 100, offset: 0 })).ids.toSorted()).toEqual(ids.toSorted());
  // It has deleted one and opened another: as many as before.
  await control.bed.redis.zrem(orderKey, ids[7] ?? "");
  await control.bed.redis.zadd(orderKey, 1, newPoolId());
  await own.sweepPools();
  expect((await idsOf({ limit: 100, offset: 0 })).ids.toSorted()).toEqual(ids.toSorted());
});
