import { expect, test } from "vitest";
import { newProxyId, type ProjectId, type ProxyId } from "../../../src/base/ids.js";
import { RedisProxyStore } from "../../../src/store/project/proxy-store.js";
import { onBoth } from "../../support/store/on-both.js";

const record = {
  protocol: "http",
  host: "proxy.example",
  port: 3128,
  hasPassword: true,
  hasCaBundle: false,
  bypassHosts: ["a.example"],
} as const;

onBoth("proxies", ({ bed }) => {
  const keep = async (over: { name?: string; sealed?: string; most?: number } = {}): Promise<ProxyId> => {
    const id = newProxyId();
    expect(await bed().proxies.create({ id, record, most: 1000, ...over })).toBe("created");
    return id;
  };

  test("one is found as it was kept; what is sealed only where it is asked for", async () => {
    const id = await keep({ name: "out", sealed: "v1.sealed" });
    expect(await bed().proxies.find(id)).toEqual({ id, name: "out", ...record });
    expect(await bed().proxies.findSealed(id)).toBe("v1.sealed");
    expect(await bed().proxies.find(newProxyId())).toBeUndefined();
    expect(await bed().proxies.findSealed(await keep())).toBeUndefined();
  });

  test("no bypass hosts stay a list", async () => {
    const id = newProxyId();
    await bed().proxies.create({ id, record: { ...record, bypassHosts: [] }, most: 10 });
    await bed().proxies.rename(id, "x");
    expect((await bed().proxies.find(id))?.bypassHosts).toEqual([]);
  });

  test("a create that is repeated makes one proxy, and no more are made than there may be", async () => {
    const id = newProxyId();
    const made = Array.from({ length: 3 }, () => bed().proxies.create({ id, record, most: 1 }));
    expect(await Promise.all(made)).toEqual(["created", "created", "created"]);
    const more = Array.from({ length: 5 }, () => bed().proxies.create({ id: newProxyId(), record, most: 3 }));
    expect((await Promise.all(more)).toSorted()).toEqual(["created", "created", "many", "many", "many"]);
    await bed().proxies.remove(id);
    expect(await bed().proxies.create({ id: newProxyId(), record, most: 3 })).toBe("created");
  });

  test("a page that loses one while it is read is followed by the one that moved up", async () => {
    const ids: ProxyId[] = [];
    for (let count = 0; count < 4; count += 1) ids.unshift(await keep());
    const { proxies } = bed();
    const find = proxies.find.bind(proxies);
    proxies.find = async (id) => {
      if (id === ids[1]) await proxies.remove(id);
      return await find(id);
    };
    const { items, nextOffset } = await proxies.page({ limit: 2, offset: 0 });
    Reflect.deleteProperty(proxies, "find");
    expect(items.map(({ id }) => id)).toEqual([ids[0]]);
    expect((await proxies.page({ limit: 2, offset: nextOffset })).items.map(({ id }) => id)).toEqual(
      ids.slice(2),
    );
  });

  test("pages are newest first, and together they are all of them", async () => {
    const ids: ProxyId[] = [];
    for (let count = 0; count < 7; count += 1) ids.unshift(await keep());
    const pages = await Promise.all([0, 3, 6, 9].map((offset) => bed().proxies.page({ limit: 3, offset })));
    expect(pages.map(({ items }) => items.map(({ id }) => id))).toEqual([
      ids.slice(0, 3),
      ids.slice(3, 6),
      ids.slice(6),
      [],
    ]);
    expect(pages.map(({ hasMore }) => hasMore)).toEqual([true, true, false, false]);
    expect(pages.map(({ nextOffset }) => nextOffset)).toEqual([3, 6, 7, 9]);
    expect((await bed().proxies.page({ limit: 100, offset: Number.MAX_SAFE_INTEGER })).items).toEqual([]);
  });

  test("a reference by id is exact; a name means a proxy where only one has it", async () => {
    const [one, other] = [await keep({ name: "out" }), await keep({ name: "Out" })];
    expect(await bed().proxies.resolve({ id: one })).toEqual({ kind: "found", id: one, name: "out" });
    expect(await bed().proxies.resolve({ name: "out" })).toEqual({ kind: "found", id: one, name: "out" });
    expect(await bed().proxies.resolve({ name: "Out" })).toEqual({ kind: "found", id: other, name: "Out" });
    await bed().proxies.rename(other, "out");
    expect(await bed().proxies.resolve({ name: "out" })).toEqual({ kind: "ambiguous", count: 2 });
    await bed().proxies.remove(one);
    expect(await bed().proxies.resolve({ name: "out" })).toEqual({ kind: "found", id: other, name: "out" });
    const unnamed = await keep();
    expect(await bed().proxies.resolve({ id: unnamed })).toEqual({ kind: "found", id: unnamed });
    for (const selector of [
      { id: one },
      { id: "out" },
      { id: "{x}" },
      { name: "Out" },
      { name: other },
      { name: "__proto__" },
    ]) {
      expect(await bed().proxies.resolve(selector)).toEqual({ kind: "unknown" });
    }
  });

  test("a check is stamped with the store's time and replaced whole by the next", async () => {
    const id = await keep();
    const [seconds] = await bed().redis.time();
    expect(await bed().proxies.noteCheck(id, { status: "available", ipAddress: "203.0.113.7" })).toBe(
      "changed",
    );
    const { checked } = (await bed().proxies.find(id)) ?? {};
    expect(checked).toEqual({ status: "available", ipAddress: "203.0.113.7", at: expect.any(Number) });
    expect(checked?.at).toBeGreaterThanOrEqual(Number(seconds) * 1000);
    expect(checked?.at).toBeLessThan(Number(seconds) * 1000 + 60_000);
    await bed().proxies.noteCheck(id, { status: "unavailable" });
    expect((await bed().proxies.find(id))?.checked).toEqual({
      status: "unavailable",
      at: expect.any(Number),
    });
  });

  test("one that is removed leaves nothing, and what comes late for it brings nothing back", async () => {
    const id = await keep({ name: "out", sealed: "v1.sealed" });
    await bed().proxies.noteCheck(id, { status: "available" });
    expect(await bed().proxies.remove(id)).toBe("removed");
    expect(await bed().proxies.rename(id, "other")).toBe("missing");
    expect(await bed().proxies.noteCheck(id, { status: "available" })).toBe("missing");
    expect(await bed().proxies.remove(id)).toBe("missing");
    expect(await bed().redis.keys("*prox*")).toEqual([]);
  });

  test("projects do not see each other's", async () => {
    const id = await keep({ name: "out" });
    const others = new RedisProxyStore(bed().store, "another" as ProjectId);
    expect(await others.find(id)).toBeUndefined();
    expect(await others.resolve({ name: "out" })).toEqual({ kind: "unknown" });
    expect((await others.page({ limit: 10, offset: 0 })).items).toEqual([]);
  });
});
