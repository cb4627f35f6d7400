import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { type Digest, newProfileId, type ProfileId, type ProjectId } from "../../../src/base/ids.js";
import { RedisProfileStore } from "../../../src/store/project/profile-store.js";
import { onBoth } from "../../support/store/on-both.js";

const digestOf = (text: string): Digest => createHash("sha256").update(text).digest("hex") as Digest;
const times = <Value>(count: number, make: (at: number) => Value): Value[] =>
  Array.from({ length: count }, (_, at) => make(at));

onBoth("profiles", ({ bed }) => {
  const keep = async (name?: string, id = newProfileId()): Promise<ProfileId> => {
    expect(await bed().profiles.create({ id, most: 1000, ...(name === undefined ? {} : { name }) })).toBe(
      "created",
    );
    return id;
  };
  const nowOf = async (): Promise<number> => {
    const [seconds, micros] = await bed().redis.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  };

  test("one is found as it was kept, and by its name as it is written", async () => {
    const before = await nowOf();
    const id = await keep("me");
    const found = await bed().profiles.find(id);
    expect(found).toEqual({ id, name: "me", createdAt: expect.any(Number) });
    expect(found?.createdAt).toBeGreaterThanOrEqual(before);
    expect(found?.createdAt).toBeLessThanOrEqual(await nowOf());
    expect(await bed().profiles.findNamed("me")).toBe(id);
    for (const other of ["Me", "", "__proto__", id])
      expect(await bed().profiles.findNamed(other)).toBeUndefined();
    const nameless = await keep();
    expect(await bed().profiles.find(nameless)).toEqual({ id: nameless, createdAt: expect.any(Number) });
    expect(await bed().profiles.find(newProfileId())).toBeUndefined();
  });

  test("of several creates with one name a single one is made", async () => {
    const ids = times(6, () => newProfileId());
    const made = await Promise.all(ids.map((id) => bed().profiles.create({ id, name: "me", most: 10 })));
    expect(made.toSorted()).toEqual(["created", ...times(5, () => "taken")]);
    const winner = ids[made.indexOf("created")];
    expect(await bed().profiles.findNamed("me")).toBe(winner);
    expect((await bed().profiles.all()).map(({ id }) => id)).toEqual([winner]);
  });

  test("a create that is repeated changes nothing, whatever happened in between", async () => {
    const id = newProfileId();
    const made = await Promise.all(times(3, () => bed().profiles.create({ id, name: "me", most: 1 })));
    expect(made).toEqual(["created", "created", "created"]);
    await bed().profiles.rename(id, "other");
    await bed().profiles.commit(id, { digest: digestOf("a"), sizeBytes: 7 });
    const before = await bed().profiles.find(id);
    expect(await bed().profiles.create({ id, name: "me", most: 1 })).toBe("created");
    expect(await bed().profiles.find(id)).toEqual(before);
    expect(await bed().profiles.findNamed("me")).toBeUndefined();
  });

  test("no more are made than there may be, and one that is removed makes room", async () => {
    const ids = times(5, () => newProfileId());
    const made = await Promise.all(ids.map((id) => bed().profiles.create({ id, most: 3 })));
    expect(made.toSorted()).toEqual(["created", "created", "created", "many", "many"]);
    await bed().profiles.remove(ids[made.indexOf("created")] ?? newProfileId());
    expect(await bed().profiles.create({ id: newProfileId(), most: 3 })).toBe("created");
    expect(await bed().profiles.create({ id: newProfileId(), most: 0 })).toBe("many");
  });

  test("all are listed newest first, and their names; pages together are all of them", async () => {
    const ids: ProfileId[] = [];
    for (let count = 0; count < 7; count += 1)
      ids.unshift(await keep(count % 2 === 0 ? undefined : `name${count}`));
    const all = await bed().profiles.all();
    expect(all.map(({ id }) => id)).toEqual(ids);
    expect(await bed().profiles.index()).toEqual(all.map(({ createdAt: _createdAt, ...called }) => called));
    const pages = await Promise.all([0, 3, 6, 9].map((offset) => bed().profiles.page({ limit: 3, offset })));
    expect(pages.map(({ items }) => items)).toEqual([all.slice(0, 3), all.slice(3, 6), all.slice(6), []]);
    expect(pages.map(({ hasMore, nextOffset }) => [hasMore, nextOffset])).toEqual([
      [true, 3],
      [true, 6],
      [false, 7],
      [false, 9],
    ]);
    expect((await bed().profiles.page({ limit: 100, offset: Number.MAX_SAFE_INTEGER })).items).toEqual([]);
  });

  test("many are read to the last", async () => {
    const ids = times(1203, () => newProfileId());
    await Promise.all(ids.map((id) => bed().profiles.create({ id, most: 2000 })));
    expect((await bed().profiles.all()).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  });

  test("a new name frees the old one at once and is noted; its own name again is no change", async () => {
    const id = await keep("old");
    expect(await bed().profiles.rename(id, "old")).toBe("changed");
    expect(await bed().profiles.find(id)).not.toHaveProperty("updatedAt");
    const before = await nowOf();
    expect(await bed().profiles.rename(id, "new")).toBe("changed");
    expect(await bed().profiles.find(id)).toMatchObject({ name: "new", updatedAt: expect.any(Number) });
    expect((await bed().profiles.find(id))?.updatedAt).toBeGreaterThanOrEqual(before);
    expect([await bed().profiles.findNamed("new"), await bed().profiles.findNamed("old")]).toEqual([
      id,
      undefined,
    ]);
    const next = await keep("old");
    expect(await bed().profiles.rename(next, "new")).toBe("taken");
    expect(await bed().profiles.find(next)).toEqual({ id: next, name: "old", createdAt: expect.any(Number) });
    expect(await bed().profiles.rename(newProfileId(), "free")).toBe("missing");
    expect(await bed().profiles.findNamed("free")).toBeUndefined();
    const nameless = await keep();
    expect(await bed().profiles.rename(nameless, "free")).toBe("changed");
    expect(await bed().profiles.findNamed("free")).toBe(nameless);
  });

  test("of several renames to one name one is made, and the others keep theirs", async () => {
    const ids = await Promise.all(times(5, (at) => keep(`own${at}`)));
    const changed = await Promise.all(ids.map((id) => bed().profiles.rename(id, "me")));
    expect(changed.toSorted()).toEqual(["changed", ...times(4, () => "taken")]);
    const winner = changed.indexOf("changed");
    expect(await Promise.all(times(5, (at) => bed().profiles.findNamed(`own${at}`)))).toEqual(
      ids.map((id, at) => (at === winner ? undefined : id)),
    );
    expect(await bed().profiles.findNamed("me")).toBe(ids[winner]);
  });

  test("two that exchange their names cannot both have one", async () => {
    const [one, other] = [await keep("a"), await keep("b")];
    expect(await Promise.all([bed().profiles.rename(one, "b"), bed().profiles.rename(other, "a")])).toEqual([
      "taken",
      "taken",
    ]);
    expect([await bed().profiles.findNamed("a"), await bed().profiles.findNamed("b")]).toEqual([one, other]);
  });

  test("a save is there whole, stamped with the store's time, and replaced whole by the next", async () => {
    const id = await keep("me");
    const before = await nowOf();
    expect(await bed().profiles.commit(id, { digest: digestOf("a"), sizeBytes: 7 })).toBe("committed");
    const saved = await bed().profiles.find(id);
    expect(saved).toEqual({
      id,
      name: "me",
      createdAt: expect.any(Number),
      updatedAt: saved?.archive?.savedAt,
      archive: { digest: digestOf("a"), sizeBytes: 7, savedAt: expect.any(Number) },
    });
    expect(saved?.archive?.savedAt).toBeGreaterThanOrEqual(before);
    expect(saved?.archive?.savedAt).toBeLessThanOrEqual(await nowOf());
    await bed().profiles.commit(id, { digest: digestOf("b"), sizeBytes: 2 ** 40 });
    expect((await bed().profiles.find(id))?.archive).toMatchObject({
      digest: digestOf("b"),
      sizeBytes: 2 ** 40,
    });
  });

  test("a save that comes again changes nothing, also where others have followed it", async () => {
    const id = await keep();
    const save = (name: string) => bed().profiles.commit(id, { digest: digestOf(name), sizeBytes: 7 });
    await save("a");
    const first = await bed().profiles.find(id);
    await expect.poll(nowOf).toBeGreaterThan(first?.archive?.savedAt ?? Infinity);
    expect(await save("a")).toBe("committed");
    expect(await bed().profiles.find(id)).toEqual(first);
    const followers = times(20, (at) => `follower ${at}`);
    for (const follower of followers) await save(follower);
    const last = await bed().profiles.find(id);
    for (const earlier of ["a", ...followers]) expect(await save(earlier)).toBe("committed");
    expect(await bed().profiles.find(id)).toEqual(last);
    for (const follower of times(80, (at) => `later ${at}`)) await save(follower);
    const [kept] = await bed().redis.keys("*profile:*");
    expect(await bed().redis.hstrlen(kept ?? "", "earlierSaves")).toBeLessThan(2000);
  });

  test("of several saves at once exactly one is what is kept, digest and size of the same", async () => {
    const id = await keep();
    for (let round = 0; round < 20; round += 1) {
      const saves = ["a", "b", "c"].map((letter, at) => ({
        digest: digestOf(`${letter}${round}`),
        sizeBytes: 100 * round + at,
      }));
      await Promise.all(saves.map((save) => bed().profiles.commit(id, save)));
      const { savedAt: _savedAt, ...kept } = (await bed().profiles.find(id))?.archive ?? {};
      expect(saves).toContainEqual(kept);
    }
  });

  test("a save and a rename at once are both there", async () => {
    const id = await keep("old");
    await Promise.all([
      bed().profiles.commit(id, { digest: digestOf("a"), sizeBytes: 7 }),
      bed().profiles.rename(id, "new"),
    ]);
    expect(await bed().profiles.find(id)).toMatchObject({
      name: "new",
      archive: { digest: digestOf("a"), sizeBytes: 7 },
    });
  });

  test("a use is noted, and is no update", async () => {
    const id = await keep();
    const before = await nowOf();
    await bed().profiles.noteUse(id);
    const used = await bed().profiles.find(id);
    expect(used).toEqual({ id, createdAt: expect.any(Number), lastUsedAt: expect.any(Number) });
    expect(used?.lastUsedAt).toBeGreaterThanOrEqual(before);
  });

  test("one that is removed leaves nothing, and what comes late for it brings nothing back", async () => {
    const id = await keep("me");
    await bed().profiles.commit(id, { digest: digestOf("a"), sizeBytes: 7 });
    expect(await bed().profiles.remove(id)).toBe("removed");
    expect(await bed().profiles.commit(id, { digest: digestOf("b"), sizeBytes: 8 })).toBe("missing");
    expect(await bed().profiles.rename(id, "other")).toBe("missing");
    await bed().profiles.noteUse(id);
    expect(await bed().profiles.remove(id)).toBe("missing");
    expect(await bed().redis.keys("*profile*")).toEqual([]);
    const next = await keep("me");
    expect(await bed().profiles.findNamed("me")).toBe(next);
  });

  test("a save and a removal at once: either way nothing is left", async () => {
    for (let round = 0; round < 10; round += 1) {
      const id = await keep("me");
      const save = () => bed().profiles.commit(id, { digest: digestOf("a"), sizeBytes: 7 });
      const remove = () => bed().profiles.remove(id);
      const [committed, removed] =
        round % 2 === 0
          ? await Promise.all([save(), remove()])
          : (await Promise.all([remove(), save()])).toReversed();
      expect([committed, removed]).toEqual([round % 2 === 0 ? "committed" : "missing", "removed"]);
      expect(await bed().redis.keys("*profile*")).toEqual([]);
    }
  });

  test("projects do not see each other's", async () => {
    const id = await keep("me");
    const others = new RedisProfileStore(bed().store, "another" as ProjectId);
    expect(await others.find(id)).toBeUndefined();
    expect(await others.findNamed("me")).toBeUndefined();
    expect(await others.all()).toEqual([]);
    expect(await others.create({ id: newProfileId(), name: "me", most: 10 })).toBe("created");
  });
});
