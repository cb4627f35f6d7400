import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { RemudaError } from "../../../src/base/errors.js";
import { type Digest, newProfileId, type ProfileId } from "../../../src/base/ids.js";
import { makeProfileOperations, type SavedStates } from "../../../src/registry/profiles/operations.js";
import type { ProfileOperations, ProfileStore } from "../../../src/registry/profiles/profile.js";
import { RedisProfileStore } from "../../../src/store/project/profile-store.js";
import { onBoth } from "../../support/store/on-both.js";
import { PoolBed } from "../../support/store/pool-bed.js";

const archive = { digest: "a".repeat(64) as Digest, sizeBytes: 7 };

onBoth("the registry of profiles", ({ bed }) => {
  const textStates: SavedStates = {
    open: async (id) => Readable.from([`tar of ${id}`]),
    openCompressed: async (id) => Readable.from([`zstd of ${id}`]),
  };
  const open = (
    over: { store?: ProfileStore; states?: Partial<SavedStates>; maxProfiles?: number } = {},
  ): ProfileOperations =>
    makeProfileOperations({
      store: over.store ?? bed().profiles,
      poolStore: bed().poolStore,
      projects: bed().projects,
      maxProfiles: over.maxProfiles ?? 100,
      states: { ...textStates, ...over.states },
    });
  const made = async (name?: string): Promise<ProfileId> => {
    const got = await open().create(name === undefined ? {} : { name });
    if (got.kind === "refused") throw new Error(got.code);
    return got.value.id;
  };
  const refused = (code: string) => expect.objectContaining({ kind: "refused", code });
  const textOf = async (
    got: Awaited<ReturnType<ProfileOperations["download"]>>,
  ): Promise<string | undefined> =>
    got.kind === "done" && got.value ? (await got.value.bytes.toArray()).map(String).join("") : undefined;

  test("one is read by its id and by its name, and an id goes before a name", async () => {
    const id = await made("me");
    const impostor = await made(id);
    expect(await open().get("me")).toMatchObject({ kind: "done", value: { id } });
    expect(await open().get(id)).toMatchObject({ kind: "done", value: { id } });
    expect(await open().get(impostor)).toMatchObject({ kind: "done", value: { id: impostor, name: id } });
    expect(await open().remove(id)).toEqual({ kind: "done", value: null });
    expect(await open().get(id)).toMatchObject({ kind: "done", value: { id: impostor } });
    expect(await open().get("Me")).toEqual(refused("profile_not_found"));
  });

  test("names are there once; what is refused has made and changed nothing", async () => {
    const [me, other] = [await made("me"), await made("other")];
    expect(await open().create({ name: "me" })).toEqual(refused("name_taken"));
    expect(await open().rename(other, "me")).toEqual(refused("name_taken"));
    expect(await open().rename("none", "x")).toEqual(refused("profile_not_found"));
    const { items } = await open().list({ limit: 10, offset: 0 });
    expect(items.map(({ id, name }) => [id, name])).toEqual([
      [other, "other"],
      [me, "me"],
    ]);
    expect(await open().rename("me", "Me")).toMatchObject({ kind: "done", value: { id: me, name: "Me" } });
    expect(await open().get("me")).toEqual(refused("profile_not_found"));
  });

  test("there are as many as there may be", async () => {
    await made();
    expect(await open({ maxProfiles: 1 }).create({})).toEqual(refused("limit_exceeded"));
    expect(await open({ maxProfiles: 2 }).create({})).toMatchObject({ kind: "done" });
  });

  test("a list is filtered by the whole name, or a part of it, without regard to case, or by the id; and paged", async () => {
    const names = ["alice", "ALICE.work", "bob", undefined, "malice"];
    const ids: ProfileId[] = [];
    for (const name of names) ids.unshift(await made(name));
    const named = async (query: { name?: string; query?: string; limit?: number; offset?: number }) => {
      const { items, ...paging } = await open().list({ limit: 10, offset: 0, ...query });
      return [items.map(({ name }) => name), paging.hasMore, paging.nextOffset];
    };
    expect(await named({})).toEqual([names.toReversed(), false, 5]);
    expect(await named({ name: "Álice" })).toEqual([["alice"], false, 1]);
    expect(await named({ query: "LICE" })).toEqual([["malice", "ALICE.work", "alice"], false, 3]);
    expect(await named({ query: "lice", limit: 2 })).toEqual([["malice", "ALICE.work"], true, 2]);
    expect(await named({ query: "lice", limit: 2, offset: 2 })).toEqual([["alice"], false, 3]);
    expect(await named({ query: ids[1] ?? "" })).toEqual([[undefined], false, 1]);
    expect(await named({ query: (ids[1] ?? "").slice(0, 20) })).toEqual([[], false, 0]);
    expect(await named({ name: "alice", query: "work" })).toEqual([[], false, 0]);
    expect(await named({ limit: 2, offset: 1 })).toEqual([[undefined, "bob"], true, 3]);
  });

  test("one that is deleted while a search is answered makes the next page begin where the others have moved to", async () => {
    const ids: ProfileId[] = [];
    for (let count = 0; count < 4; count += 1) ids.unshift(await made(`name${count}`));
    class Shrinking extends RedisProfileStore {
      override async index() {
        const all = await super.index();
        await this.remove(ids[1] ?? newProfileId());
        return all;
      }
    }
    const store = new Shrinking(bed().store, bed().project);
    const first = await open({ store }).list({ limit: 2, offset: 0, query: "name" });
    expect([first.items.map(({ id }) => id), first.hasMore]).toEqual([[ids[0]], true]);
    const second = await open().list({ limit: 2, offset: first.nextOffset, query: "name" });
    expect(second.items.map(({ id }) => id)).toEqual([ids[2], ids[3]]);
  });

  test("one that pools use is not deleted, and they are named", async () => {
    const [id, free] = [await made("me"), await made("free")];
    const pools = [
      await PoolBed.create(bed(), { name: "herd", profile_id: id }),
      await PoolBed.create(bed(), { profile_id: id }),
      await PoolBed.create(bed(), { name: "other" }),
    ];
    for (const pool of pools) {
      await bed().projects.addPool(pool.id);
      await bed().projects.openPool(pool.id);
    }
    const got = await open().remove("me");
    expect(got).toEqual(refused("resource_in_use"));
    const messages = got.kind === "refused" ? got.details?.map(({ message }) => message) : [];
    expect(messages?.toSorted()).toEqual([`pool ${pools[1]?.id}`, `pool herd (${pools[0]?.id})`].toSorted());
    expect(await open().get("me")).toMatchObject({ value: { id } });
    expect(await open().remove(free)).toEqual({ kind: "done", value: null });
    expect(await open().remove(free)).toEqual(refused("profile_not_found"));
  });

  test("a download gives what was saved last, in either form; nothing as long as nothing was saved", async () => {
    const id = await made("me");
    expect(await open().download("me", "zstd")).toEqual({ kind: "done", value: undefined });
    await bed().profiles.commit(id, archive);
    expect(await textOf(await open().download("me", "zstd"))).toBe(`zstd of ${id}`);
    expect(await textOf(await open().download(id, "tar"))).toBe(`tar of ${id}`);
    expect(await open().download("none", "tar")).toEqual(refused("profile_not_found"));
    expect(await open().download(newProfileId(), "tar")).toEqual(refused("profile_not_found"));
  });

  test("one that is deleted while its state is opened is no more there", async () => {
    const id = await made("me");
    await bed().profiles.commit(id, archive);
    const openCompressed = async (asked: ProfileId): Promise<undefined> => {
      await bed().profiles.remove(asked);
    };
    expect(await open({ states: { openCompressed } }).download("me", "zstd")).toEqual(
      refused("profile_not_found"),
    );
  });

  test("a state that does not open with this deployment's key is a broken promise", async () => {
    const id = await made("me");
    await bed().profiles.commit(id, archive);
    const unreadable = async () => {
      throw new RemudaError("secret_unreadable");
    };
    await expect(open({ states: { open: unreadable } }).download(id, "tar")).rejects.toMatchObject({
      code: "secret_unreadable",
    });
  });

  test("of two that delete it at once both have it deleted", async () => {
    const id = await made("me");
    expect(await Promise.all([open().remove(id), open().remove("me")])).toEqual([
      { kind: "done", value: null },
      { kind: "done", value: null },
    ]);
    expect(await bed().redis.keys("*profile*")).toEqual([]);
  });

  test("a name is made anew while its holder is renamed or deleted: it means one profile throughout", async () => {
    for (let round = 0; round < 5; round += 1) {
      const id = await made("me");
      const [, next] = await Promise.all([
        round % 2 === 0 ? open().remove(id) : open().rename(id, `old${round}`),
        open().create({ name: "me" }),
      ]);
      const named = await open().get("me");
      if (next.kind === "done") expect(named).toMatchObject({ value: { id: next.value.id } });
      else expect(named).toEqual(refused("profile_not_found"));
      if (named.kind === "done") await open().remove("me");
    }
  });
});
