import { expect, test } from "vitest";
import { newRequestId } from "../../src/base/ids.js";
import type { FieldCreate, ItemPatch } from "../../src/vault/item-bodies.js";
import type { ShownItem } from "../../src/vault/shown-item.js";
import type { Vault } from "../../src/vault/vault.js";
import { sharedVaultBed, tokenIn, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const seed = "JBSWY3DPEHPK3PXP";
const login: readonly FieldCreate[] = [
  { name: "user", type: "email", sensitive: false, value: "me@shop.example" },
  { name: "password", type: "password", value: "hunter2" },
  { name: "code", type: "totp", value: seed },
];

interface Made {
  readonly vault: Vault;
  readonly item: ShownItem;
}
async function made(fields = login): Promise<Made> {
  const vault = await bed().vault();
  return { vault, item: await bed().put(vault, fields) };
}
const read = async ({ vault }: Made): Promise<ShownItem> =>
  valueOf(await bed().items.get(vault.id, "shop", {}));
const patch = ({ vault, item }: Made, spec: ItemPatch["spec"]) => bed().patch(vault, item, spec);

/** That a PATCH is refused so, and has changed nothing. */
async function expectRefused(
  at: Made,
  spec: ItemPatch["spec"],
  [code, says = ""]: readonly [code: string, says?: string] = ["bad_request"],
): Promise<void> {
  const before = await read(at);
  const got = await patch(at, spec);
  expect(got).toMatchObject({ kind: "refused", code });
  expect(JSON.stringify(got)).toContain(says);
  expect(await read(at)).toEqual(before);
}

test("an update counts the version up by one, and keeps what it does not name", async () => {
  const at = await made();
  const got = valueOf(await patch(at, { fields: { password: { value: "other" } } }));
  expect(got.item).toMatchObject({ id: at.item.item.id, key: "shop", version: 2, spec: at.item.item.spec });
  expect(got.fields).toEqual(at.item.fields);
  expect(got.status).toBe("ready");
});

test("a stale version is refused, and the item stays unchanged", async () => {
  const at = await made();
  valueOf(await patch(at, { description: "Shop" }));
  await expectRefused(at, { description: "Other" }, ["stale_version"]);
});

test("an update of another type is refused with 409", async () => {
  const { vault } = await made();
  for (const type of ["card", undefined] as const) {
    const body = { ...(type && { type }), version: 1, spec: { description: "x" } };
    const got = await bed().items.update(vault.id, "shop", { body, request: newRequestId() });
    expect(got).toMatchObject({ kind: "refused", code: "item_mismatch" });
  }
});

test("a credential's update needs its version", async () => {
  const { vault } = await made();
  const body = { type: "credential", spec: { description: "x" } } as const;
  const got = await bed().items.update(vault.id, "shop", { body, request: newRequestId() });
  expect(got).toMatchObject({ kind: "refused", code: "bad_request" });
});

test("expected_item_id refuses where the key names another item by now", async () => {
  const { vault, item } = await made();
  valueOf(await bed().items.remove(vault.id, "shop"));
  await bed().put(vault, login);
  const body = { type: "credential", version: 1, expected_item_id: item.item.id, spec: {} } as const;
  const got = await bed().items.update(vault.id, "shop", { body, request: newRequestId() });
  expect(got).toMatchObject({ kind: "refused", code: "item_mismatch" });
});

test("remove_fields deletes definitions with their values; an unknown name is 400", async () => {
  const at = await made();
  const got = valueOf(await patch(at, { remove_fields: ["code"] }));
  expect(got.item.spec.fields.map(({ name }) => name)).toEqual(["user", "password"]);
  expect(got.fields.map(({ name }) => name)).toEqual(["user", "password"]);
  await expectRefused({ ...at, item: got }, { remove_fields: ["code"] }, [
    "bad_request",
    "is no field of the item",
  ]);
});

test("at least one field must remain", async () => {
  await expectRefused(await made(), { remove_fields: ["user", "password", "code"] }, [
    "bad_request",
    "must leave a field",
  ]);
});

test("removals come first: a field removed and added again is another one without the old value", async () => {
  const at = await made();
  const got = valueOf(
    await patch(at, {
      remove_fields: ["user"],
      add_fields: [{ name: "user", type: "text", required: false }],
    }),
  );
  expect(got.fields.find(({ name }) => name === "user")).toEqual({ name: "user", hasValue: false });
});

test("fields are set after additions, so that an added one can be set", async () => {
  const got = valueOf(
    await patch(await made(), {
      add_fields: [{ name: "pin", type: "text", sensitive: false }],
      fields: { pin: { value: "1234" } },
    }),
  );
  expect(got.fields.at(-1)).toEqual({ name: "pin", hasValue: true, value: "1234" });
});

test("a field that is removed can not be set in the same update", async () => {
  await expectRefused(await made(), { remove_fields: ["user"], fields: { user: { value: "a@b.example" } } });
});

test("names are unique after removals", async () => {
  const at = await made();
  await expectRefused(at, { add_fields: [{ name: "user", type: "text" }] }, [
    "bad_request",
    "is there already",
  ]);
  const twice = { name: "pin", type: "text" } as const;
  await expectRefused(at, { add_fields: [twice, twice] }, ["bad_request", "is there already"]);
});

test("at most 32 fields result", async () => {
  const at = await made();
  const many = Array.from({ length: 30 }, (_, at_) => ({
    name: `f${at_}`,
    type: "text" as const,
    required: false,
  }));
  await expectRefused(at, { add_fields: many }, ["bad_request", "at most 32 fields"]);
  valueOf(await patch(at, { add_fields: many.slice(1) }));
});

test("an unknown name in fields is 400, also one that every object has", async () => {
  const at = await made();
  for (const name of ["nobody", "constructor", "toString"])
    await expectRefused(at, { fields: { [name]: { value: "x" } } });
});

test("a field may be called as what every object has", async () => {
  const at = await made([{ name: "constructor", type: "text", sensitive: false, value: "built" }]);
  expect(at.item.fields).toEqual([{ name: "constructor", hasValue: true, value: "built" }]);
});

test("a value is exactly one of value and encrypted_value", async () => {
  const at = await made();
  for (const update of [{}, { value: "x", encrypted_value: "y" }])
    await expectRefused(at, { fields: { password: update } }, ["bad_request", "exactly one of"]);
});

test.each([
  ["null", null],
  ["an empty text", ""],
])("%s clears a field that a form can bring back", async (_, value) => {
  const got = valueOf(await patch(await made(), { fields: { password: { value } } }));
  expect(got.fields.find(({ name }) => name === "password")?.hasValue).toBe(false);
  expect(got.status).toBe("pending_collection");
  expect(got.collect?.url).toMatch(/^https:\/\/form\.example\/#token=default\.[\w-]{43}$/);
});

test("a PATCH that leaves nothing missing makes a pending item ready, and it has no action any more", async () => {
  const at = await made([{ name: "password", type: "password" }]);
  expect(at.item).toMatchObject({ status: "pending_collection", collect: { url: expect.any(String) } });
  const got = valueOf(await patch(at, { fields: { password: { value: "x" } } }));
  expect(got.status).toBe("ready");
  expect(got.collect).toBeUndefined();
  expect(await bed().forms.open(tokenIn(at.item))).toEqual({ kind: "replaced" });
});

test("clearing a required totp or passkey is 400; one that is not required is cleared", async () => {
  const at = await made();
  await expectRefused(at, { fields: { code: { value: null } } }, ["bad_request", "can not be cleared"]);
  const loose = await made([{ name: "code", type: "totp", required: false, value: seed }]);
  expect(valueOf(await patch(loose, { fields: { code: { value: "" } } })).fields).toEqual([
    { name: "code", hasValue: false },
  ]);
});

test("an added required totp or passkey needs its value in the same update", async () => {
  const at = await made();
  for (const type of ["totp", "passkey"] as const)
    await expectRefused(at, { add_fields: [{ name: "more", type }] }, ["bad_request", "needs its value"]);
  valueOf(
    await patch(at, { add_fields: [{ name: "more", type: "totp" }], fields: { more: { value: seed } } }),
  );
});

test("password, totp and passkey fields are sensitive", async () => {
  const at = await made();
  for (const type of ["password", "totp", "passkey"] as const) {
    const field = { name: "more", type, required: false, sensitive: false };
    await expectRefused(at, { add_fields: [field] }, ["bad_request", "must be true for a field of type"]);
  }
});

test.each([
  ["begins with a space", " x"],
  ["ends with a space", "x "],
  ["has two lines", "a\nb"],
  ["turns the text around", "a\u202eb"],
  ["hides a character", "a\u200bb"],
  ["has more than 128 bytes", "é".repeat(65)],
])("no label %s", async (_, label) => {
  await expectRefused(await made(), { add_fields: [{ name: "more", type: "text", label }] });
});

test("a description has at most 16 KiB; an empty one clears it", async () => {
  const at = await made();
  await expectRefused(at, { description: "é".repeat(8193) }, ["bad_request", "at most 16384 bytes"]);
  const described = valueOf(await patch(at, { description: "Shop" }));
  expect(described.item.spec.description).toBe("Shop");
  const cleared = valueOf(await patch({ ...at, item: described }, { description: "" }));
  expect(cleared.item.spec.description).toBe("");
});

test("allowed_origins are origins, and are replaced as a whole", async () => {
  const at = await made();
  for (const origin of [
    "https://a.example/",
    "a.example",
    "HTTPS://a.example",
    "https://a.example:443",
    "file:///",
    "https://me:secret@a.example",
    "https://a.example?",
    "https://a.example#",
    "https://%61.example",
    "https://b\u00fccher.example",
    "https://a\u3002example",
    "https://0x7f.1",
    "blob:https://a.example/1",
    "data:text/html,1",
    "null",
  ])
    await expectRefused(at, { allowed_origins: [origin] }, ["bad_request", "must be an origin"]);
  const got = valueOf(await patch(at, { allowed_origins: ["https://a.example", "http://localhost:3000"] }));
  expect(got.item.spec.allowedOrigins).toEqual(["https://a.example", "http://localhost:3000"]);
});

test("allowed_origins may stand for all hosts below a domain, but not below what is everybody's", async () => {
  const at = await made();
  for (const origin of [
    "https://*",
    "https://*.",
    "https://a.*.example",
    "https://**.a.example",
    "https://*.*.a.example",
    "https://%2a.a.example",
    "https://*.b\u00fccher.example",
    "https://*.0x7f.1",
    "https://*a.example",
    "https://[*.::1]",
  ])
    await expectRefused(at, { allowed_origins: [origin] }, ["bad_request", "must be an origin"]);
  for (const origin of [
    "https://*.com",
    "https://*.co.uk",
    "https://*.github.io",
    "https://*.github.io:8443",
    "https://*.com.",
    "https://*.co.uk.",
    "https://*.github.io.",
    "https://*.xn--p1ai",
    "https://*.localhost",
  ])
    await expectRefused(at, { allowed_origins: [origin] }, ["bad_request", "hosts of everybody"]);
  const wild = ["https://*.a.example", "https://*.shop.co.uk", "https://*.me.github.io:8443"];
  expect(valueOf(await patch(at, { allowed_origins: wild })).item.spec.allowedOrigins).toEqual(wild);
});

test("an update says something", async () => {
  await expectRefused(await made(), {}, ["bad_request", "at least one property"]);
});

test("a property that is not known is 400", async () => {
  await expectRefused(await made(), { other: 1 } as never, ["bad_request", "is not a known field"]);
});

test("of updates of one version that race just one is made", async () => {
  const at = await made();
  const raced = await Promise.all(
    Array.from({ length: 8 }, (_, index) => patch(at, { description: `d${index}` })),
  );
  expect(raced.filter(({ kind }) => kind === "done")).toHaveLength(1);
  expect(raced.flatMap((got) => (got.kind === "refused" ? [got.code] : []))).toEqual(
    Array.from({ length: 7 }, () => "stale_version"),
  );
  expect((await read(at)).item.version).toBe(2);
});
