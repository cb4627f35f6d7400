import { expect, test } from "vitest";
import { Seal } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { newOtlpDestinationId, type OtlpDestinationId, type ProjectId } from "../../../src/base/ids.js";
import { makeOtlpDestinationOperations } from "../../../src/registry/destinations/operations.js";
import { RedisOtlpDestinationStore } from "../../../src/store/project/otlp-destination-store.js";
import { onBoth } from "../../support/store/on-both.js";

const record = { endpoint: "https://otlp.example", headerNames: ["Authorization"], description: "ours" };

onBoth("OTLP destinations", ({ bed }) => {
  const keep = async (over: { name: string; sealed?: string }): Promise<OtlpDestinationId> => {
    const id = newOtlpDestinationId();
    expect(await bed().destinations.create({ id, record, most: 1000, ...over })).toBe("created");
    return id;
  };

  test("one is found as it was kept, by id and by name; what is sealed only where it is asked for", async () => {
    const id = await keep({ name: "one", sealed: "v1.sealed" });
    const found = await bed().destinations.find(id);
    expect(found).toEqual({
      id,
      name: "one",
      ...record,
      revision: 1,
      createdAt: expect.any(Number),
      updatedAt: found?.createdAt,
      health: { failures: 0 },
    });
    expect(await bed().destinations.findNamed("one")).toBe(id);
    expect(await bed().destinations.findSealed(id)).toEqual({ destination: found, sealed: "v1.sealed" });
    expect(await bed().destinations.find(newOtlpDestinationId())).toBeUndefined();
    expect(await bed().destinations.findSealed(newOtlpDestinationId())).toBeUndefined();
    expect(await bed().destinations.findNamed("__proto__")).toBeUndefined();
    const bare = await keep({ name: "bare" });
    expect(await bed().destinations.findSealed(bare)).not.toHaveProperty("sealed");
    expect((await bed().destinations.all()).map(({ name }) => name)).toEqual(["bare", "one"]);
  });

  test("a create that is repeated makes one; a name is one destination's, and there are at most so many", async () => {
    const { destinations } = bed();
    const id = newOtlpDestinationId();
    const made = Array.from({ length: 3 }, () => destinations.create({ id, name: "one", record, most: 2 }));
    expect(await Promise.all(made)).toEqual(["created", "created", "created"]);
    const create = (name: string) =>
      destinations.create({ id: newOtlpDestinationId(), name, record, most: 2 });
    expect(await create("one")).toBe("taken");
    expect((await Promise.all([create("two"), create("two")])).toSorted()).toEqual(["created", "taken"]);
    expect(await create("three")).toBe("many");
    expect(await destinations.remove(id)).toBe("removed");
    expect(await create("three")).toBe("created");
  });

  test("of changes to what both have read one is kept, and a name is free for others only when it is left", async () => {
    const { destinations } = bed();
    const id = await keep({ name: "one", sealed: "v1.sealed" });
    await keep({ name: "other" });
    const [read] = await destinations.all().then((all) => all.filter((one) => one.id === id));
    if (!read) throw new Error("it is kept");
    const change = (name: string) => destinations.change(read, { name, record });
    expect(await change("other")).toBe("taken");
    expect((await Promise.all([change("first"), change("second")])).toSorted()).toEqual(["changed", "stale"]);
    const now = await destinations.findSealed(id);
    expect(now?.destination.revision).toBe(2);
    expect(now).not.toHaveProperty("sealed");
    expect(await destinations.findNamed("one")).toBeUndefined();
    expect(await destinations.findNamed(now?.destination.name ?? "")).toBe(id);
    expect(
      await destinations.change({ id: newOtlpDestinationId(), revision: 1 }, { name: "x", record }),
    ).toBe("missing");
  });

  test("a change and a removal that are asked for again, since their answers were lost, are answered as done", async () => {
    class AskedTwice extends RedisOtlpDestinationStore {
      override async change(...asked: Parameters<RedisOtlpDestinationStore["change"]>) {
        await super.change(...asked);
        return await super.change(...asked);
      }
      override async remove(id: OtlpDestinationId) {
        await super.remove(id);
        return await super.remove(id);
      }
    }
    const { store, project, destinations, projects, poolStore } = bed();
    const id = await keep({ name: "one" });
    const operations = makeOtlpDestinationOperations({
      store: new AskedTwice(store, project),
      seal: new Seal(new Secret("words")),
      poolStore,
      projects,
      most: 9,
      exportingSessions: async () => [],
      whyClosed: async () => undefined,
    });
    expect(await operations.update(id, { description: "other" })).toMatchObject({ kind: "done" });
    expect(await destinations.find(id)).toMatchObject({ description: "other", revision: 2 });
    expect(await operations.remove(id)).toMatchObject({ kind: "done" });
  });

  test("deliveries are counted since the last that did not fail, whose time stays; so does the last failure's", async () => {
    const { destinations } = bed();
    const id = await keep({ name: "one" });
    const health = async () => (await destinations.find(id))?.health;
    await destinations.noteDelivery(id, "why");
    await destinations.noteDelivery(id, "why else");
    expect(await health()).toEqual({ failures: 2, lastError: "why else", lastErrorAt: expect.any(Number) });
    await destinations.noteDelivery(id, undefined);
    expect(await health()).toEqual({
      failures: 0,
      lastError: "why else",
      lastErrorAt: expect.any(Number),
      lastExportAt: expect.any(Number),
    });
  });

  test("one that is removed leaves nothing, and what comes late for it brings nothing back", async () => {
    const { destinations, redis } = bed();
    const id = await keep({ name: "one", sealed: "v1.sealed" });
    expect(await destinations.remove(id)).toBe("removed");
    await destinations.noteDelivery(id, "why");
    expect(await destinations.change({ id, revision: 1 }, { name: "x", record })).toBe("missing");
    expect(await destinations.remove(id)).toBe("missing");
    expect(await redis.keys("*otlp*")).toEqual([]);
  });

  test("projects do not see each other's", async () => {
    const id = await keep({ name: "one" });
    const others = new RedisOtlpDestinationStore(bed().store, "another" as ProjectId);
    expect(await others.find(id)).toBeUndefined();
    expect(await others.findNamed("one")).toBeUndefined();
    expect(await others.all()).toEqual([]);
  });
});
