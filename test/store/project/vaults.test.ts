import { describe, expect, test } from "vitest";
import { newRequestId, newVaultId, newVaultItemId, type VaultId } from "../../../src/base/ids.js";
import type { ItemWrite, VaultKeys } from "../../../src/vault/vault.js";
import { onBoth } from "../../support/store/on-both.js";

const keys: VaultKeys = {
  dataKey: { id: "k1", wrapped: "v1.a.b" },
  transport: { kid: "kid", jwk: { kty: "EC", crv: "P-256", x: "x", y: "y" }, sealed: "v1.k1.c" },
};
const spec = {
  description: "Shop",
  allowedOrigins: [],
  fields: [{ name: "password", type: "password", required: true, sensitive: true } as const],
};
const writeOf = (over: Partial<ItemWrite> = {}): ItemWrite => ({
  id: newVaultItemId(),
  key: "a key: with spaces, {braces} and ü",
  version: 1,
  spec,
  createdAs: "digest",
  values: new Map(),
  event: "credential.created",
  request: newRequestId(),
  ...over,
});

onBoth("vaults in Redis", ({ bed }) => {
  const store = () => bed().vaults;
  async function vaultNamed(name: string): Promise<VaultId> {
    const made = await store().create({ id: newVaultId(), name, keys, most: 10 });
    if (made.kind === "many") throw new Error("there are too many");
    return made.id;
  }

  describe("a vault", () => {
    test("is kept once for a name, listed the newest first, and forgotten with its name", async () => {
      const [one, two] = [await vaultNamed("one"), await vaultNamed("two")];
      expect(await store().create({ id: newVaultId(), name: "one", keys, most: 10 })).toEqual({
        kind: "found",
        id: one,
      });
      expect(await store().create({ id: newVaultId(), name: "three", keys, most: 2 })).toEqual({
        kind: "many",
      });
      // The answer to the first was lost on its way.
      expect(await store().create({ id: two, name: "two", keys, most: 10 })).toEqual({
        kind: "created",
        id: two,
      });
      expect((await store().all()).map(({ id }) => id)).toEqual([two, one]);
      expect(await store().find(one)).toMatchObject({ id: one, name: "one", ...keys });
      expect([await store().remove(one), await store().remove(one)]).toEqual(["removed", "missing"]);
      expect(await store().create({ id: one, name: "one", keys, most: 10 })).toEqual({
        kind: "created",
        id: one,
      });
      expect([await store().findNamed("one"), await store().count()]).toEqual([undefined, 1]);
      expect(await store().find(one)).toBeUndefined();
    });
  });

  describe("an item", () => {
    test("is kept where its key has none, and comes back as it was", async () => {
      const vault = await vaultNamed("one");
      const values = new Map([["password", { sealed: "v1.k1.x", version: 1 }]]);
      const write = writeOf({ values });
      expect(await store().addItem(newVaultId(), { ...write, most: 5 })).toBe("no-vault");
      expect(await store().addItem(vault, { ...write, most: 5 })).toBe("created");
      expect(await store().addItem(vault, { ...write, most: 5 })).toBe("created");
      expect(await store().addItem(vault, { ...writeOf(), most: 5 })).toBe("found");
      expect(await store().addItem(vault, { ...writeOf({ key: "b" }), most: 1 })).toBe("many");
      const item = await store().findItem(vault, write.key);
      expect(item).toMatchObject({ id: write.id, version: 1, spec, createdAs: "digest", link: undefined });
      expect(item?.values).toEqual(values);
    });

    test("is changed where it is of the version before, and a repeat of the request is the same change", async () => {
      const vault = await vaultNamed("one");
      const write = writeOf();
      await store().addItem(vault, { ...write, most: 5 });
      const next = { ...write, version: 2, request: newRequestId(), event: "credential.updated" } as const;
      expect(await store().changeItem(vault, next)).toBe("changed");
      expect(await store().changeItem(vault, next)).toBe("changed");
      expect(await store().changeItem(vault, { ...next, request: newRequestId() })).toBe("stale");
      expect(await store().changeItem(vault, { ...next, id: newVaultItemId() })).toBe("missing");
      const events = await store().events(write.id, undefined);
      expect(events.map(({ name }) => name)).toEqual(["credential.created", "credential.updated"]);
      // So it is where another's came between the two.
      const later = { ...next, version: 3, request: newRequestId() } as const;
      expect(await store().changeItem(vault, later)).toBe("changed");
      expect(await store().changeItem(vault, next)).toBe("changed");
      expect(await store().findItem(vault, write.key)).toMatchObject({ version: 3 });
      expect(await store().events(write.id, events[0]?.id)).toHaveLength(2);
    });

    test("has one link at a time, which a submission consumes and a change voids", async () => {
      const vault = await vaultNamed("one");
      const write = writeOf({ link: { nonce: "n1", digest: "d1" } });
      await store().addItem(vault, { ...write, most: 5 });
      const kept = await store().renewLink(vault, write, { nonce: "n2", digest: "d2" });
      expect(kept).toMatchObject({ version: 1, nonce: "n1" });
      expect(await store().findLink("d1")).toMatchObject({
        kind: "known",
        vault,
        item: write.id,
        version: 1,
      });
      expect(await store().findLink("d2")).toEqual({ kind: "gone" });
      const next = { ...write, link: undefined, version: 2, event: "credential.submitted" } as const;
      const submit = (request = newRequestId(), submission = "s1") =>
        store().changeItem(vault, { ...next, request, consumes: { digest: "d1", submission } });
      const request = newRequestId();
      expect(await submit(request)).toBe("changed");
      expect(await submit(request)).toBe("changed");
      expect(await submit(newRequestId(), "s2")).toBe("used");
      // The same submission may come again by another control, which has a request of its own for it.
      expect(await submit()).toBe("changed");
      expect(await store().findItem(vault, write.key)).toMatchObject({ version: 2 });
      expect(await store().findLink("d1")).toEqual({ kind: "used", submission: "s1" });
      expect(await store().renewLink(vault, write, { nonce: "n3", digest: "d3" })).toBeUndefined();
      expect((await store().findItem(vault, write.key))?.link).toBeUndefined();
    });

    test("is forgotten with all that it had; an event of one that is gone is noted nowhere", async () => {
      const vault = await vaultNamed("one");
      const write = writeOf();
      await store().addItem(vault, { ...write, most: 5 });
      expect(await store().removeItem(vault, write.key)).toBe("removed");
      expect(await store().removeItem(vault, write.key)).toBe("missing");
      // Its creation has come once more, by a connection that was given up.
      expect(await store().addItem(vault, { ...write, most: 5 })).toBe("created");
      expect(await store().findItem(vault, write.key)).toBeUndefined();
      await store().noteEvent(vault, write, { name: "credential.filled" });
      expect(await store().events(write.id, undefined)).toEqual([]);
      expect(await store().remove(vault)).toBe("removed");
    });
  });
});
