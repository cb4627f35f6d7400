import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionListQuery } from "../../src/spec/paging.js";
import { callerOf, type ControlBed, openControlBed } from "../support/daemon/control-bed.js";
import { PoolBed } from "../support/store/pool-bed.js";

let control: ControlBed;
const names: string[] = [];
beforeAll(async () => {
  control = await openControlBed("listed");
  for (let made = 0; made < 3; made += 1) {
    const pool = await PoolBed.filled(control.bed, { size: 14 });
    await control.bed.projects.addPool(pool.id);
    await control.bed.projects.openPool(pool.id);
    await pool.age(1000 * made);
    for (let lent = 0; lent < 14; lent += 1) names.push(await lend(pool, `session-${made}-${lent}`));
  }
}, 120_000);
afterAll(() => control.close());

async function lend(pool: PoolBed, name: string): Promise<string> {
  const got = await control.acquire(pool.id, { name, tags: { last: name.slice(-1) } }, callerOf());
  if (got.kind !== "granted") throw new Error(`${name} was not granted`);
  got.settle("delivered");
  return name;
}

async function pages(query: Partial<SessionListQuery>): Promise<readonly { name: string; at: number }[]> {
  const all: { name: string; at: number }[] = [];
  for (let offset = 0, hasMore = true; hasMore;) {
    const page = await control.listSessions({ limit: 5, status: "all", ...query, offset });
    expect(page.nextOffset - offset).toBe(page.items.length);
    all.push(
      ...page.items.map((item) =>
        item.kind === "session"
          ? { name: item.session.browser.lease?.name ?? "", at: item.session.browser.createdAt }
          : { name: item.tombstone.name ?? "", at: item.tombstone.deletedAt },
      ),
    );
    ({ hasMore, nextOffset: offset } = page);
  }
  return all;
}
const isFalling = (rows: readonly { at: number }[]): boolean =>
  rows.every(({ at }, place) => place === 0 || at <= (rows[place - 1]?.at ?? 0));

test("pages over several pools show every session once, the youngest first, and then those that are over, the last ended first", async () => {
  const over = names.filter((_, place) => place % 4 === 0);
  for (const name of over) await control.remove(name, callerOf());
  const living = names.filter((name) => !over.includes(name));
  const all = await pages({});
  expect(all.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  expect(
    all
      .slice(0, living.length)
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(living.toSorted());
  expect([isFalling(all.slice(0, living.length)), isFalling(all.slice(living.length))]).toEqual([true, true]);
  expect((await pages({ status: "active" })).map(({ name }) => name)).toEqual(
    all.slice(0, living.length).map(({ name }) => name),
  );
  expect((await pages({ status: "deleted" })).map(({ name }) => name)).toEqual(
    all.slice(living.length).map(({ name }) => name),
  );
});

test("a search finds all there are, in the same order, over both", async () => {
  const found = (await pages({ tags: { last: "3" } })).map(({ name }) => name);
  expect(found.toSorted()).toEqual(names.filter((name) => name.endsWith("3")).toSorted());
  const all = (await pages({})).map(({ name }) => name);
  expect(found).toEqual(all.filter((name) => name.endsWith("3")));
  expect((await pages({ query: "SESSION-1-" })).map(({ name }) => name)).toEqual(
    all.filter((name) => name.includes("-1-")),
  );
});

test("a page after the last is empty and says that there is no more", async () => {
  expect(await control.listSessions({ limit: 5, offset: 500, status: "all" })).toEqual({
    items: [],
    hasMore: false,
    nextOffset: 500,
  });
});

test("what the caller may not see is on no page and counts nowhere", async () => {
  const idsOf = async (query: Partial<SessionListQuery>): Promise<readonly string[]> => {
    const { items } = await control.listSessions({ limit: 100, offset: 0, status: "all", ...query });
    return items.map((item) => (item.kind === "session" ? item.session.browser.id : item.tombstone.id));
  };
  const all = await idsOf({});
  const mine = new Set(all.filter((_, place) => place % 3 === 0));
  const sees = ({ id }: { readonly id: string }): boolean => mine.has(id);
  expect(await idsOf({ sees })).toEqual([...mine]);
  expect(await idsOf({ sees, limit: 3, offset: 2 })).toEqual([...mine].slice(2, 5));
  expect(await idsOf({ sees: () => false })).toEqual([]);
});
