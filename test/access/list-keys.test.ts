import { expect, test, vi } from "vitest";
import type { ApiKey, ApiKeyListQuery, IssueResult } from "../../src/access/api-key.js";
import { listKeys, SearchTurns } from "../../src/access/list-keys.js";
import { rootPrincipal } from "../../src/access/principal.js";
import { newApiKeyId, newRequestId, type ProjectId } from "../../src/base/ids.js";
import { RedisApiKeyStore } from "../../src/store/organization/api-key-store.js";
import { onBoth } from "../support/store/on-both.js";
import { costOf } from "../support/store/redis-cost.js";

const person = { id: "root", email: "root@remuda.invalid", name: null };
const own = "aaaaaaaaaaaa" as ProjectId;
const other = "bbbbbbbbbbbb" as ProjectId;
const plain = {
  limit: 20,
  offset: 0,
  sort_by: "created_at",
  sort_direction: "desc",
  status: "active",
} as const;
let count = 0;

onBoth("lists of API keys", ({ bed }) => {
  const limits = { maxKeys: 10_000, maxDeletedKeys: 2, idempotencyMs: 60_000, requestsPerMinute: null };
  const store = (): RedisApiKeyStore => new RedisApiKeyStore(bed().store, limits);
  const make = async (name: string, projectId?: ProjectId, policy?: ApiKey["policy"]): Promise<ApiKey> => {
    const drawn = { id: newApiKeyId(), digest: `d${(count += 1)}`, mask: "rmd_...wxyz", createdBy: person };
    const got: IssueResult = await store().create(
      { ...drawn, name, ...(projectId && { projectId }), ...(policy && { policy }) },
      { salt: "s" },
    );
    if (got.kind !== "issued") throw new Error(got.kind);
    return got.key;
  };
  const many = async (howMany: number, projectId?: ProjectId): Promise<void> => {
    await Promise.all(Array.from({ length: howMany }, (_, at) => make(`key ${at}`, projectId)));
  };
  const list = async (query: Partial<ApiKeyListQuery>, scope: ProjectId | null) => {
    const asked: string[] = [];
    const nameOf = async (id: string): Promise<string> => `Project ${asked.push(id) && id}`;
    const principal = { ...rootPrincipal(person), credentialScope: scope };
    const page = await listKeys({ store: store(), projects: { nameOf } }, { ...plain, ...query }, principal);
    return { ...page, asked, names: page.items.map(({ name }) => name) };
  };

  test("a project's lists and searches read the keys of that project, however many others there are", async () => {
    for (const name of ["first", "second", "third"]) await make(name, own);
    const queries: Partial<ApiKeyListQuery>[] = [
      {},
      { query: "ir" },
      { name: "SECOND" },
      { sort_by: "name" },
      { status: "all" },
    ];
    const all = async (): Promise<string[][]> => {
      const found: string[][] = [];
      for (const query of queries) found.push((await list(query, own)).names);
      return found;
    };
    const alone = await costOf(bed().redis, all);
    await many(300, other);
    await many(100);
    let found: string[][] = [];
    const among = await costOf(bed().redis, async () => {
      found = await all();
    });
    expect(found).toEqual([
      ["third", "second", "first"],
      ["third", "first"],
      ["second"],
      ["third", "second", "first"],
      ["third", "second", "first"],
    ]);
    // A record has some 200 bytes; the counters themselves have more digits.
    expect(among.bytes - alone.bytes).toBeLessThan(3000);
  });

  test("a page of the organization is read by itself, and its search ends where the page is full", async () => {
    await many(400, other);
    const last = await make("key wanted");
    const page = await costOf(bed().redis, async () => await list({ limit: 5 }, null));
    expect(page.bytes).toBeLessThan(20_000);
    const search = await costOf(bed().redis, async () => {
      const found = await list({ limit: 1, query: "KEY" }, null);
      expect(found).toMatchObject({ names: [last.name], hasMore: true, nextOffset: 1 });
    });
    expect(search.bytes).toBeLessThan(60_000);
    // One that finds nothing reads them all, in parts, and asks once for the name of each project.
    const nothing = await list({ query: "none of them" }, null);
    expect(nothing).toMatchObject({ names: [], hasMore: false, asked: [other] });
  });

  test("pages of a search have each key once, also of deleted ones, of which the oldest are forgotten", async () => {
    const made: ApiKey[] = [];
    for (let at = 0; at < 6; at += 1) made.push(await make(`key ${at}`, at % 2 === 0 ? own : other));
    for (const { id } of made.slice(0, 3)) await store().remove(id, newRequestId());
    const names = async (query: Partial<ApiKeyListQuery>, scope: ProjectId | null) =>
      (await list(query, scope)).names;
    expect(await names({ status: "deleted", sort_by: "name", sort_direction: "asc" }, null)).toEqual([
      "key 1",
      "key 2",
    ]);
    expect(await names({ status: "deleted" }, own)).toEqual(["key 2"]);
    expect(await names({ status: "all" }, own)).toEqual(["key 4", "key 2"]);
    const paged: string[] = [];
    for (let offset = 0; offset < 5; offset += 2)
      paged.push(...(await names({ status: "all", sort_by: "name", limit: 2, offset }, null)));
    expect(paged).toEqual(["key 5", "key 4", "key 3", "key 2", "key 1"]);
  });

  test("a search keeps no keys, and shows its page as they are when it is read", async () => {
    const [renamed, deleted] = [await make("wanted"), await make("wanted too"), await make("other")];
    class Changing extends RedisApiKeyStore {
      override async *each(...asked: Parameters<RedisApiKeyStore["each"]>) {
        yield* super.each(...asked);
        await this.rename(renamed.id, "called otherwise");
        await this.remove(deleted.id, newRequestId());
      }
    }
    const ports = { store: new Changing(bed().store, limits), projects: { nameOf: async () => undefined } };
    const page = await listKeys(ports, { ...plain, query: "wanted" }, rootPrincipal(person));
    expect(page.items.map(({ name }) => name)).toEqual(["called otherwise"]);
  });

  test("a search parses keys with long policies in turns of the event loop", async () => {
    const resource = `projects/default/browsers/${"a".repeat(230)}`;
    const statements = Array.from({ length: 100 }, () => ({ action: "browsers:use", resource }));
    for (let at = 0; at < 40; at += 1) await make(`key ${at}`, undefined, { statements });
    const { parse } = JSON;
    const perTurn: number[] = [0];
    let immediate = setImmediate(function tick() {
      perTurn.push(0);
      immediate = setImmediate(tick);
    });
    const spy = vi.spyOn(JSON, "parse").mockImplementation((text: string) => {
      perTurn[perTurn.length - 1] = (perTurn.at(-1) ?? 0) + text.length;
      return parse(text) as unknown;
    });
    expect((await list({ query: "none of them" }, null)).names).toEqual([]);
    spy.mockRestore();
    clearImmediate(immediate);
    expect(perTurn.reduce((sum, bytes) => sum + bytes, 0)).toBeGreaterThan(1_000_000);
    // One record more than fills a turn.
    expect(Math.max(...perTurn)).toBeLessThan(200_000);
  });
});

test("searches of one caller go one after the other, beside those of another, and past one that fails", async () => {
  const turns = new SearchTurns();
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const search = (name: string, error?: Error) => async (): Promise<string> => {
    begun.push(name);
    await new Promise<void>((end) => ends.push(end));
    if (error) throw error;
    return name;
  };
  const first = turns.take("ada", search("first", new Error("broken off")));
  const second = turns.take("ada", search("second"));
  const foreign = turns.take("bob", search("foreign"));
  await expect.poll(() => begun).toEqual(["first", "foreign"]);
  ends[0]?.();
  await expect(first).rejects.toThrow("broken off");
  await expect.poll(() => begun).toEqual(["first", "foreign", "second"]);
  for (const end of ends) end();
  expect(await Promise.all([second, foreign])).toEqual(["second", "foreign"]);
});
