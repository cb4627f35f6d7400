import { expect, test } from "vitest";
import { type Digest, type ExtensionId, newExtensionId, type ProjectId } from "../../../src/base/ids.js";
import { RedisExtensionStore } from "../../../src/store/project/extension-store.js";
import { onBoth } from "../../support/store/on-both.js";

const digest = "a".repeat(64) as Digest;
const times = <Value>(count: number, make: (at: number) => Value): Value[] =>
  Array.from({ length: count }, (_, at) => make(at));

onBoth("extensions", ({ bed }) => {
  const keep = async (name?: string): Promise<ExtensionId> => {
    const id = newExtensionId();
    expect(
      await bed().extensions.create({
        id,
        digest,
        sizeBytes: 7,
        most: 1000,
        ...(name === undefined ? {} : { name }),
      }),
    ).toBe("created");
    return id;
  };
  const nowOf = async (): Promise<number> => {
    const [seconds, micros] = await bed().redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  };

  test("one is found as it was kept, and by its name as it is written", async () => {
    const before = await nowOf();
    const id = await keep("ads");
    const found = await bed().extensions.find(id);
    expect(found).toEqual({ id, name: "ads", digest, sizeBytes: 7, createdAt: expect.any(Number) });
    expect(found?.createdAt).toBeGreaterThanOrEqual(before);
    expect(found?.createdAt).toBeLessThanOrEqual(await nowOf());
    expect(await bed().extensions.findNamed("ads")).toBe(id);
    for (const other of ["Ads", "", "__proto__", id])
      expect(await bed().extensions.findNamed(other)).toBeUndefined();
    const nameless = await keep();
    expect(await bed().extensions.find(nameless)).toEqual({
      id: nameless,
      digest,
      sizeBytes: 7,
      createdAt: expect.any(Number),
    });
    expect(await bed().extensions.find(newExtensionId())).toBeUndefined();
  });

  test("of several creates with one name a single one is made", async () => {
    const ids = times(6, () => newExtensionId());
    const made = await Promise.all(
      ids.map((id) => bed().extensions.create({ id, name: "ads", digest, sizeBytes: 7, most: 10 })),
    );
    expect(made.toSorted()).toEqual(["created", ...times(5, () => "taken")]);
    const winner = ids[made.indexOf("created")];
    expect(await bed().extensions.findNamed("ads")).toBe(winner);
    expect((await bed().extensions.all()).map(({ id }) => id)).toEqual([winner]);
  });

  test("a create that is repeated changes nothing", async () => {
    const id = newExtensionId();
    const ask = { id, name: "ads", digest, sizeBytes: 7, most: 1 };
    expect(await Promise.all(times(3, () => bed().extensions.create(ask)))).toEqual([
      "created",
      "created",
      "created",
    ]);
    await bed().extensions.noteUse(id);
    const before = await bed().extensions.find(id);
    expect(await bed().extensions.create({ ...ask, digest: "b".repeat(64) as Digest, sizeBytes: 8 })).toBe(
      "created",
    );
    expect(await bed().extensions.find(id)).toEqual(before);
  });

  test("no more are made than there may be, and one that is removed makes room", async () => {
    const ids = times(5, () => newExtensionId());
    const made = await Promise.all(
      ids.map((id) => bed().extensions.create({ id, digest, sizeBytes: 7, most: 3 })),
    );
    expect(made.toSorted()).toEqual(["created", "created", "created", "many", "many"]);
    await bed().extensions.remove(ids[made.indexOf("created")] ?? newExtensionId());
    expect(await bed().extensions.create({ id: newExtensionId(), digest, sizeBytes: 7, most: 3 })).toBe(
      "created",
    );
    expect(await bed().extensions.create({ id: newExtensionId(), digest, sizeBytes: 7, most: 0 })).toBe(
      "many",
    );
  });

  test("all are listed, newest first", async () => {
    const ids: ExtensionId[] = [];
    for (let count = 0; count < 7; count += 1) ids.unshift(await keep());
    expect((await bed().extensions.all()).map(({ id }) => id)).toEqual(ids);
  });

  test("a use is noted with the store's time", async () => {
    const id = await keep("ads");
    const before = await nowOf();
    await bed().extensions.noteUse(id);
    const { lastUsedAt } = (await bed().extensions.find(id)) ?? {};
    expect(lastUsedAt).toBeGreaterThanOrEqual(before);
    expect(lastUsedAt).toBeLessThanOrEqual(await nowOf());
  });

  test("one that is removed leaves nothing, frees its name, and what comes late for it brings nothing back", async () => {
    const id = await keep("ads");
    expect(await bed().extensions.remove(id)).toBe("removed");
    await bed().extensions.noteUse(id);
    expect(await bed().extensions.remove(id)).toBe("missing");
    expect(await bed().redis.keys("*extension*")).toEqual([]);
    const next = await keep("ads");
    expect(await bed().extensions.findNamed("ads")).toBe(next);
  });

  test("projects do not see each other's", async () => {
    const id = await keep("ads");
    const others = new RedisExtensionStore(bed().store, "another" as ProjectId);
    expect([await others.find(id), await others.findNamed("ads"), await others.all()]).toEqual([
      undefined,
      undefined,
      [],
    ]);
    expect(await others.create({ id: newExtensionId(), name: "ads", digest, sizeBytes: 7, most: 10 })).toBe(
      "created",
    );
  });
});
