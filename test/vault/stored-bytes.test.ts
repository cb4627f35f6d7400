import { expect, test } from "vitest";
import { defaultProject, newRequestId } from "../../src/base/ids.js";
import { RedisVaultStore } from "../../src/store/project/vault-store.js";
import type { FieldCreate, ItemCreate } from "../../src/vault/item-bodies.js";
import type { Vault } from "../../src/vault/vault.js";
import { unsynced } from "../support/store/unsynced.js";
import {
  encrypted,
  formHeader,
  sharedVaultBed,
  tokenIn,
  valueOf,
  type VaultBed,
} from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const kibibytes = 1024;
const note = (size: number): FieldCreate => ({ name: "note", type: "text", value: "n".repeat(size) });
const open: FieldCreate = { name: "user", type: "text", required: true };
const bodyOf = (...fields: FieldCreate[]): ItemCreate => ({
  type: "credential",
  spec: { provider: "native", fields },
});

/** The same operations where vaults may keep less. */
const bounded = (vaultBytes: number, projectVaultBytes = 2 ** 30): ReturnType<VaultBed["with"]> =>
  bed().with({
    store: new RedisVaultStore(bed().scripts, defaultProject, {
      writes: unsynced,
      limits: { vaultBytes, projectVaultBytes },
    }),
  });
const counted = async (of: string): Promise<number> =>
  Number(await bed().scripts.ask((redis) => redis.hget("remuda:{project-default}:vaultBytes", of)));
/** What Redis has of a vault's items, as it counts texts itself. */
async function kept(vault: Vault): Promise<number> {
  const parts = ["vaultItems", "vaultValues"].map((part) => `remuda:{project-default}:${part}:${vault.id}`);
  const texts = await bed().scripts.ask((redis) => Promise.all(parts.map((part) => redis.hvals(part))));
  return texts.flat().reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

test("a vault keeps no more bytes than it may, and a refusal changes nothing", async () => {
  const vault = await bed().vault();
  const { items } = bounded(60 * kibibytes);
  const put = (key: string, size: number) =>
    items.put(vault.id, key, { body: bodyOf(note(size)), request: newRequestId() });
  valueOf(await put("one", 16_000));
  valueOf(await put("two", 16_000));
  expect(await put("three", 16_000)).toMatchObject({ code: "limit_exceeded" });
  expect(valueOf(await items.list(vault.id)).map(({ item }) => item.key)).toEqual(["one", "two"]);
  expect(await counted(vault.id)).toBe(await kept(vault));
  // What becomes smaller, or goes, makes room.
  const patch = (version: number, size: number) =>
    items.update(vault.id, "one", {
      body: { type: "credential", version, spec: { fields: { note: { value: "n".repeat(size) } } } },
      request: newRequestId(),
    });
  valueOf(await patch(1, 10));
  valueOf(await put("three", 16_000));
  expect(await patch(2, 16_000)).toMatchObject({ code: "limit_exceeded" });
  expect(valueOf(await items.get(vault.id, "one", {})).item.version).toBe(2);
  valueOf(await items.remove(vault.id, "two"));
  valueOf(await patch(2, 16_000));
  expect(await counted(vault.id)).toBe(await kept(vault));
});

test("all vaults of a project keep no more bytes than they may together, and a deleted one keeps none", async () => {
  const [one, other] = [await bed().vault(), await bed().vault()];
  const { items, vaults } = bounded(2 ** 30, (await counted("all")) + 32 * kibibytes);
  const put = (vault: Vault) =>
    items.put(vault.id, "shop", { body: bodyOf(note(16_000)), request: newRequestId() });
  const before = await counted("all");
  valueOf(await put(one));
  expect(await counted("all")).toBe(before + (await kept(one)));
  expect(await put(other)).toMatchObject({ code: "limit_exceeded" });
  valueOf(await vaults.remove(one.id));
  expect(await counted("all")).toBe(before);
  valueOf(await put(other));
});

test("a form whose values have no room says that they are too long, and its link still opens", async () => {
  const vault = await bed().vault();
  const { items, forms } = bounded(16 * kibibytes);
  const made = valueOf(await items.put(vault.id, "shop", { body: bodyOf(open), request: newRequestId() }));
  const token = tokenIn(made);
  const submit = async (value: string) => {
    const form = await forms.open(token);
    if (form.kind !== "form") throw new Error(`the form is ${form.kind}`);
    const user = await encrypted(form.encryptionKey, value, formHeader(token, "user"));
    return await forms.submit(token, { version: form.version, values: { user } });
  };
  expect(await submit("u".repeat(16_000))).toEqual({
    kind: "invalid",
    fields: [{ name: "user", fault: "too_long" }],
  });
  expect(await submit("somebody")).toEqual({ kind: "done" });
});

test("changes that come at once are counted as they are kept", async () => {
  const vault = await bed().vault();
  const { items } = bounded(2 ** 30);
  const keys = Array.from({ length: 20 }, (_, at) => `item ${at % 7}`);
  await Promise.all(
    keys.map((key, at) =>
      at % 3 === 2
        ? items.remove(vault.id, key)
        : items.put(vault.id, key, { body: bodyOf(note(at * 10 + 1)), request: newRequestId() }),
    ),
  );
  expect(await counted(vault.id)).toBe(await kept(vault));
});

test("items that were kept before there were sums are counted, and again where some are in them already", async () => {
  const [one, other] = [await bed().vault(), await bed().vault()];
  const put = (vault: Vault, key: string) =>
    bed().items.put(vault.id, key, { body: bodyOf(note(1000)), request: newRequestId() });
  for (const vault of [one, other]) valueOf(await put(vault, "before"));
  const all = await counted("all");
  // As if neither was counted when it was kept, and another item of the first was.
  const key = "remuda:{project-default}:vaultBytes";
  await bed().scripts.ask(async (redis) => {
    await redis.hdel(key, one.id, other.id);
    await redis.hset(key, "all", all - (await kept(one)) - (await kept(other)));
  });
  valueOf(await put(one, "after"));
  expect(await counted(one.id)).toBeLessThan(await kept(one));
  for (const vault of [one, other, one]) await bed().store.countBytes(vault.id);
  expect([await counted(one.id), await counted(other.id)]).toEqual([await kept(one), await kept(other)]);
  expect(await counted("all")).toBe(all + (await kept(one)) - (await kept(other)));
  valueOf(await bed().vaults.remove(other.id));
  await bed().store.countBytes(other.id);
  expect(await counted(other.id)).toBe(0);
});
