import type { Redis } from "ioredis";
import { expect, test } from "vitest";
import { newRequestId } from "../../src/base/ids.js";
import type { FieldCreate, ItemCreate } from "../../src/vault/item-bodies.js";
import { until } from "../support/browser/chromium-until.js";
import { DrivenClock } from "../support/driven-clock.js";
import { costOf } from "../support/store/redis-cost.js";
import { sharedVaultBed, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const password: FieldCreate = { name: "password", type: "password", value: "hunter2" };
const put = async (vault: string, body: ItemCreate, key = "shop") =>
  await bed().items.put(vault, key, { body, request: newRequestId() });
const bodyOf = (...fields: FieldCreate[]): ItemCreate => ({
  type: "credential",
  spec: { provider: "native", fields },
});

test("a vault is made once for a name, and found afterwards by its id and its name", async () => {
  const [one, other] = await Promise.all([1, 2].map(() => bed().vaults.upsert({ name: "same" })));
  if (!one || !other) throw new Error("there are two");
  const { vault } = valueOf(one);
  expect(valueOf(other).vault).toEqual(vault);
  expect([valueOf(one).isNew, valueOf(other).isNew].filter(Boolean)).toHaveLength(1);
  expect(valueOf(await bed().vaults.get("same"))).toEqual(vault);
  expect(valueOf(await bed().vaults.get(vault.id))).toEqual(vault);
});

test("no name looks like an id", async () => {
  expect(await bed().vaults.upsert({ name: "a".repeat(24) })).toMatchObject({ code: "bad_request" });
});

test("a project has no more vaults than it may", async () => {
  const { vaults } = bed().with({ maxVaults: 0 });
  expect(await vaults.upsert({ name: "many" })).toMatchObject({ code: "limit_exceeded" });
});

test("a vault that is deleted is gone with its items, and leaves nothing in Redis", async () => {
  const before = (await bed().scripts.ask((redis) => redis.keys("*"))).toSorted();
  const vault = await bed().vault();
  const item = await bed().put(vault, [{ name: "password", type: "password" }]);
  expect(item.collect).toBeDefined();
  expect(await bed().vaults.remove(vault.id)).toEqual({ kind: "done", value: null });
  for (const got of [await bed().vaults.get(vault.id), await bed().items.get(vault.id, "shop", {})])
    expect(got).toMatchObject({ code: "vault_not_found" });
  // Why a link opens nothing is kept for a day, and for an hour that the vault is not to come back.
  const isItsOwn = (key: string): boolean => !/collectionLink|vaultRemovals/.test(key);
  const left = await bed().scripts.ask((redis) => redis.keys("*"));
  expect(left.filter(isItsOwn).toSorted()).toEqual(before.filter(isItsOwn));
  const removals = left.find((key) => key.includes("vaultRemovals")) ?? "";
  expect(await bed().scripts.ask((redis) => redis.pttl(removals))).toBeGreaterThan(3_500_000);
});

test("the same definitions are the same item, whatever values come with them", async () => {
  const vault = await bed().vault();
  const first = valueOf(await put(vault.id, bodyOf(password)));
  const before = await bed().store.findItem(vault.id, "shop");
  const again = valueOf(await put(vault.id, bodyOf({ ...password, value: "other" })));
  expect(again).toEqual(first);
  expect(before?.values.has("password")).toBe(true);
  expect((await bed().store.findItem(vault.id, "shop"))?.values).toEqual(before?.values);
  expect(again.item.version).toBe(1);
});

test("other definitions for a key that has an item are 409, and change nothing", async () => {
  const vault = await bed().vault();
  const first = valueOf(await put(vault.id, bodyOf(password)));
  expect(await put(vault.id, bodyOf({ ...password, label: "Other" }))).toMatchObject({ code: "item_exists" });
  expect(valueOf(await bed().items.get(vault.id, "shop", {}))).toEqual(first);
});

test("a PUT means the item as it was made, and as it is by now", async () => {
  const vault = await bed().vault();
  const first = valueOf(await put(vault.id, bodyOf(password)));
  const pin: FieldCreate = { name: "pin", type: "text", required: false };
  const changed = valueOf(await bed().patch(vault, first, { add_fields: [pin] }));
  expect(valueOf(await put(vault.id, bodyOf(password)))).toEqual(changed);
  expect(valueOf(await put(vault.id, bodyOf(password, pin)))).toEqual(changed);
});

test("of PUTs that race just one makes the item", async () => {
  const vault = await bed().vault();
  const raced = await Promise.all(Array.from({ length: 6 }, () => put(vault.id, bodyOf(password))));
  expect(new Set(raced.map((got) => valueOf(got).item.id)).size).toBe(1);
});

test.each([
  ["wallet", "native"],
  ["card", "issuer_a"],
  ["card", "agentcard"],
  ["credential", "password_manager"],
  ["credential", "1password"],
  ["credential", "managed_auth"],
  ["credential_account", "password_manager"],
] as const)("an item of type %s by %s is not supported yet", async (type, provider) => {
  const vault = await bed().vault();
  expect(await put(vault.id, { type, spec: { provider } })).toMatchObject({ code: "not_supported" });
});

test("a provider that the type does not have is 400; the public name of one is taken", async () => {
  const vault = await bed().vault();
  expect(await put(vault.id, { type: "card", spec: { provider: "managed_auth" } })).toMatchObject({
    code: "bad_request",
  });
  const body: ItemCreate = { type: "credential", spec: { provider: "kernel", fields: [password] } };
  expect(await put(vault.id, body)).toMatchObject({ kind: "done" });
});

test.each([
  ["no fields", bodyOf(), "spec.fields: is required"],
  ["a required totp without its seed", bodyOf({ name: "code", type: "totp" }), "needs its value"],
  ["a required passkey without a value", bodyOf({ name: "key", type: "passkey" }), "needs its value"],
  ["two fields of one name", bodyOf(password, password), "is there already"],
  ["a seed that is none", bodyOf({ name: "code", type: "totp", value: "123456" }), "Base32"],
  ["an address that is none", bodyOf({ name: "user", type: "email", value: "me" }), "an e-mail address"],
  ["a password that is shown", bodyOf({ ...password, sensitive: false }), "must be true"],
  [
    "two values for one field",
    bodyOf({ ...password, encrypted_value: "x" }),
    "must not have both value and encrypted_value",
  ],
])("a credential with %s is 400, and is not made", async (_, body, says) => {
  const vault = await bed().vault();
  const got = await put(vault.id, body);
  expect(got).toMatchObject({ code: "bad_request" });
  expect(JSON.stringify(got)).toContain(says);
  expect(await bed().items.get(vault.id, "shop", {})).toMatchObject({ code: "vault_item_not_found" });
});

test("a key has at most 255 characters, whichever", async () => {
  const vault = await bed().vault();
  expect(await put(vault.id, bodyOf(password), "a".repeat(256))).toMatchObject({ code: "bad_request" });
  expect(await put(vault.id, bodyOf(password), "a\u0000")).toMatchObject({ code: "bad_request" });
  const key = `Ä b/${"c".repeat(251)}`;
  expect(valueOf(await put(vault.id, bodyOf(password), key)).item.key).toBe(key);
});

test("a vault has no more items than it may", async () => {
  const vault = await bed().vault();
  const { items } = bed().with({ maxItems: 1 });
  const make = (key: string) => items.put(vault.id, key, { body: bodyOf(password), request: newRequestId() });
  valueOf(await make("one"));
  expect(await make("two")).toMatchObject({ code: "limit_exceeded" });
});

test("a list has the items in the order in which they were made, with what is not sensitive", async () => {
  const vault = await bed().vault();
  const user: FieldCreate = { name: "user", type: "email", sensitive: false, value: "me@shop.example" };
  for (const key of ["b", "a", "c"]) {
    valueOf(await put(vault.id, bodyOf(user, password), key));
    // Items of one millisecond have no order.
    const madeAt = Date.now();
    await expect.poll(() => Date.now(), { interval: 1 }).toBeGreaterThan(madeAt + 1);
  }
  const listed = valueOf(await bed().items.list(vault.id));
  expect(listed.map(({ item }) => item.key)).toEqual(["b", "a", "c"]);
  expect(listed[0]?.fields).toEqual([
    { name: "user", hasValue: true, value: "me@shop.example" },
    { name: "password", hasValue: true },
  ]);
  expect(JSON.stringify(listed)).not.toContain("hunter2");
});

test("what an item offers is true at this moment", async () => {
  const vault = await bed().vault();
  const typesOf = (item: { operations: readonly { type: string }[] }): readonly string[] =>
    item.operations.map(({ type }) => type);
  const pending = await bed().put(vault, [{ name: "password", type: "password" }]);
  expect(typesOf(pending)).toEqual(["collect"]);
  const ready = valueOf(await bed().patch(vault, pending, { fields: { password: { value: "x" } } }));
  expect(typesOf(ready)).toEqual(["collect", "fill"]);
  const read = valueOf(await bed().with({ formUrl: undefined }).items.get(vault.id, "shop", {}));
  expect(typesOf(read)).toEqual(["fill"]);
  const onlyCode = await bed().put(
    vault,
    [{ name: "code", type: "totp", value: "JBSWY3DPEHPK3PXP" }],
    "code",
  );
  expect(typesOf(onlyCode)).toEqual(["fill"]);
});

test("an operation that is not offered is 409, one of another provider too", async () => {
  const vault = await bed().vault();
  await bed().put(vault, [{ name: "password", type: "password" }]);
  for (const type of ["fill", "authorize", "pm_fill", "1pw_fill"])
    expect(
      await bed().items.operate(vault.id, "shop", { body: { type }, request: newRequestId() }),
    ).toMatchObject({ code: "operation_unavailable" });
});

test("wait answers once the item is ready, and after its time in any case", async () => {
  const vault = await bed().vault();
  const pending = await bed().put(vault, [{ name: "password", type: "password" }]);
  const short = valueOf(await bed().items.get(vault.id, "shop", { waitMs: 50 }));
  expect(short.status).toBe("pending_collection");
  const waiting = bed().items.get(vault.id, "shop", { waitMs: 30_000 });
  valueOf(await bed().patch(vault, pending, { fields: { password: { value: "x" } } }));
  expect(valueOf(await waiting).status).toBe("ready");
});

test("nobody waits for an item whose reader has gone, or whose daemon stops", async () => {
  const vault = await bed().vault();
  await bed().put(vault, [{ name: "password", type: "password" }]);
  const gone = AbortSignal.abort();
  expect(valueOf(await bed().items.get(vault.id, "shop", { waitMs: 60_000, gone })).status).toBe(
    "pending_collection",
  );
  const { items } = bed().with({ stopping: gone });
  expect(await items.get(vault.id, "shop", { waitMs: 60_000 })).toMatchObject({ kind: "done" });
});

test("who waits long for a large item has it read twice, and not at every look", async () => {
  const vault = await bed().vault();
  const values = Array.from(
    { length: 7 },
    (_, at) => ({ name: `f${at}`, type: "text", value: "x".repeat(16_000) }) as const,
  );
  const pending = await bed().put(vault, [...values, { name: "password", type: "password" }]);
  const clock = new DrivenClock();
  const { items } = bed().with({ clock });
  const waiting: Promise<unknown>[] = [];
  const { bytes } = await costOf(bed().scripts.redis as Redis, async () => {
    waiting.push(items.get(vault.id, "shop", { waitMs: 60_000 }));
    for (let looks = 0; looks < 50; looks += 1) {
      await until("it pauses", () => clock.pending === 1);
      await clock.advance(300);
    }
  });
  // A value is kept in base64.
  expect(bytes).toBeLessThan(3 * 7 * 16_000 * 1.4);
  valueOf(await bed().patch(vault, pending, { fields: { password: { value: "x" } } }));
  await clock.advance(300);
  await Promise.all(waiting);
});

test("an item has nothing to expand", async () => {
  const vault = await bed().vault();
  await bed().put(vault, [password]);
  expect(await bed().items.get(vault.id, "shop", { expand: true })).toMatchObject({
    code: "operation_unavailable",
  });
});

test("events tell what has happened, the oldest first, and go on after the last that is known", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, [password]);
  const first = valueOf(await bed().items.events(vault.id, "shop", {}));
  expect(first.map(({ name }) => name)).toEqual(["credential.created"]);
  const after = first.at(-1)?.id ?? "";
  const waiting = bed().items.events(vault.id, "shop", { after, waitMs: 30_000 });
  valueOf(await bed().patch(vault, item, { description: "x" }));
  expect(valueOf(await waiting).map(({ name }) => name)).toEqual(["credential.updated"]);
  expect(await bed().items.events(vault.id, "shop", { after: "x" })).toMatchObject({ code: "bad_request" });
});

test("an item that is deleted is gone with what it has; its key may have another", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, [password]);
  expect(await bed().items.remove(vault.id, "shop")).toEqual({ kind: "done", value: null });
  expect(await bed().items.remove(vault.id, "shop")).toMatchObject({ code: "vault_item_not_found" });
  const next = await bed().put(vault, [{ name: "pin", type: "text" }]);
  expect(next.item.id).not.toBe(item.item.id);
  expect(next.fields).toEqual([{ name: "pin", hasValue: false }]);
});
