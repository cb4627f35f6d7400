import { expect, test } from "vitest";
import { defaultProject, newRequestId, newVaultItemId } from "../../src/base/ids.js";
import type { FieldCreate, ItemPatch } from "../../src/vault/item-bodies.js";
import type { ShownItem } from "../../src/vault/shown-item.js";
import type { Vault } from "../../src/vault/vault.js";
import { openRelyingParty } from "../support/vault/relying-party.js";
import { sharedVaultBed, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const seed = "JBSWY3DPEHPK3PXP";
const passkey = JSON.stringify(openRelyingParty("https://site.example").passkey);
const user: FieldCreate = { name: "user", type: "text", sensitive: false, value: "before" };

interface Made {
  readonly vault: Vault;
  readonly item: ShownItem;
}
async function made(...fields: readonly FieldCreate[]): Promise<Made> {
  const vault = await bed().vault();
  return { vault, item: await bed().put(vault, fields.length > 0 ? fields : [user]) };
}
const read = async ({ vault }: Made): Promise<ShownItem> =>
  valueOf(await bed().items.get(vault.id, "shop", {}));
const patch = ({ vault, item }: Made, spec: ItemPatch["spec"]) => bed().patch(vault, item, spec);
const send = ({ vault }: Made, body: ItemPatch) =>
  bed().items.update(vault.id, "shop", { body, request: newRequestId() });

/** What is kept of each value. */
async function storedOf({ vault }: Made): Promise<ReadonlyMap<string, unknown>> {
  return (await bed().store.findItem(vault.id, "shop"))?.values ?? new Map();
}
async function expectRefused(at: Made, spec: ItemPatch["spec"], says: string): Promise<void> {
  const before = [await read(at), await storedOf(at)];
  const got = await patch(at, spec);
  expect(got).toMatchObject({ kind: "refused", code: "bad_request" });
  expect(JSON.stringify(got)).toContain(says);
  expect([await read(at), await storedOf(at)]).toEqual(before);
}

test("expected_item_id of the item itself has the update made, to that item", async () => {
  const at = await made();
  const { id } = at.item.item;
  const body = { type: "credential", version: 1, expected_item_id: id, spec: { description: "x" } } as const;
  expect(valueOf(await send(at, body)).item).toMatchObject({ id, version: 2 });
});

test("an update that was accepted for one item never reaches another that has its key by then", async () => {
  const at = await made();
  const found = await bed().store.findItem(at.vault.id, "shop");
  if (!found) throw new Error("no item");
  const write = { ...found, version: 2, link: undefined, request: newRequestId() } as const;
  const late = { ...write, id: newVaultItemId(defaultProject), event: "credential.updated" } as const;
  expect(await bed().store.changeItem(at.vault.id, late)).toBe("missing");
  expect(await read(at)).toEqual(at.item);
});

test("a deletion that names the item it means deletes no other that has its key by then", async () => {
  const at = await made();
  const { id } = at.item.item;
  const gone = (expected: string) => bed().items.remove(at.vault.id, "shop", expected);
  expect(await gone(id)).toMatchObject({ kind: "done" });
  const later = await bed().put(at.vault, [user]);
  expect(await gone(id)).toMatchObject({ kind: "refused", code: "item_mismatch" });
  expect(await read(at)).toEqual(later);
  expect(await gone(later.item.id)).toMatchObject({ kind: "done" });
  expect(await gone(later.item.id)).toMatchObject({ kind: "refused", code: "vault_item_not_found" });
});

test("an update that is refused for its type or its expected_item_id leaves the item unchanged", async () => {
  const at = await made();
  const spec = { description: "x", fields: { user: { value: "after" } } };
  for (const body of [
    { type: "card", version: 1, spec },
    { type: "credential", version: 1, expected_item_id: "another", spec },
  ] as const)
    expect(await send(at, body)).toMatchObject({ kind: "refused", code: "item_mismatch" });
  expect(await read(at)).toEqual(at.item);
});

test("added fields have the same defaults as those at creation: required and sensitive", async () => {
  const at = await made(user, { name: "first", type: "text" });
  const got = valueOf(await patch(at, { add_fields: [{ name: "second", type: "text" }] }));
  const [, first, second] = got.item.spec.fields;
  expect(first).toEqual({ name: "first", type: "text", required: true, sensitive: true });
  expect(second).toEqual({ ...first, name: "second" });
});

test("a definition is not edited in place, and one that is removed and added by a later update has no old value", async () => {
  const at = await made(user, { name: "pin", type: "text", sensitive: false, value: "1234" });
  await expectRefused(at, { add_fields: [{ name: "pin", type: "password" }] }, "is there already");
  const removed = valueOf(await patch(at, { remove_fields: ["pin"] }));
  const again = { name: "pin", type: "text", sensitive: false, required: false } as const;
  const got = valueOf(await patch({ ...at, item: removed }, { add_fields: [again] }));
  expect(got.fields).toEqual([
    { name: "user", hasValue: true, value: "before" },
    { name: "pin", hasValue: false },
  ]);
  expect(got.item.version).toBe(3);
});

test("a text that is not empty replaces a value, shown or not, and no other", async () => {
  const secret = (name: string): FieldCreate => ({ name, type: "password", value: "hunter2" });
  const at = await made(user, secret("one"), secret("two"));
  const before = await storedOf(at);
  const got = valueOf(await patch(at, { fields: { user: { value: "after" }, one: { value: "other" } } }));
  expect(got.fields[0]).toEqual({ name: "user", hasValue: true, value: "after" });
  const after = await storedOf(at);
  expect(after.get("one")).not.toEqual(before.get("one"));
  expect(after.get("two")).toEqual(before.get("two"));
});

test("the value of a totp is its seed, never a current code", async () => {
  const at = await made({ name: "code", type: "totp", value: seed });
  await expectRefused(at, { fields: { code: { value: "123456" } } }, "Base32");
  expect(valueOf(await patch(at, { fields: { code: { value: "GEZDGNBVGY3TQOJQ" } } })).status).toBe("ready");
});

test("the value of a passkey is the JSON of a portable passkey", async () => {
  const at = await made({ name: "key", type: "passkey", value: passkey });
  for (const value of ["{}", "a key", "[]"])
    await expectRefused(at, { fields: { key: { value } } }, "passkey");
  const other = JSON.stringify(openRelyingParty("https://other.example").passkey);
  expect(valueOf(await patch(at, { fields: { key: { value: other } } })).status).toBe("ready");
});

test.each([
  ["totp", seed],
  ["passkey", passkey],
] as const)("clearing a required %s is 400, by null and by an empty text", async (type, value) => {
  const at = await made({ name: "held", type, value });
  for (const cleared of [null, ""])
    await expectRefused(at, { fields: { held: { value: cleared } } }, "can not be cleared");
  const loose = await made({ name: "held", type, value, required: false });
  expect(valueOf(await patch(loose, { fields: { held: { value: "" } } })).fields).toEqual([
    { name: "held", hasValue: false },
  ]);
});

test("a value has at most 16384 bytes of UTF-8 in an update, whatever its characters", async () => {
  const at = await made();
  await expectRefused(at, { fields: { user: { value: "é".repeat(8193) } } }, "16384 bytes");
  const most = "é".repeat(8192);
  expect(valueOf(await patch(at, { fields: { user: { value: most } } })).fields[0]?.value).toBe(most);
});
