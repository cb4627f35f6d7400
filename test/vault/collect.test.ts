import { expect, test } from "vitest";
import { newRequestId } from "../../src/base/ids.js";
import type { OpenForm, Submitted } from "../../src/vault/collection-form.js";
import type { FieldCreate, ItemCreate } from "../../src/vault/item-bodies.js";
import type { ShownItem } from "../../src/vault/shown-item.js";
import type { Vault } from "../../src/vault/vault.js";
import {
  encrypted,
  formHeader,
  runOutLink,
  sharedVaultBed,
  tokenIn,
  valueOf,
} from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const login: readonly FieldCreate[] = [
  { name: "user", type: "email", sensitive: false, label: "Your address", value: "me@shop.example" },
  { name: "password", type: "password" },
  { name: "note", type: "text", required: false },
  { name: "code", type: "totp", value: "JBSWY3DPEHPK3PXP" },
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
const listed = async ({ vault }: Made): Promise<ShownItem | undefined> =>
  valueOf(await bed().items.list(vault.id))[0];
async function open(token: string): Promise<OpenForm> {
  const got = await bed().forms.open(token);
  if (got.kind !== "form") throw new Error(`the form is ${got.kind}`);
  return got;
}

/** Submits as the page does: each value is encrypted for its field. */
async function submit(
  token: string,
  values: Readonly<Record<string, string>>,
  over: { readonly version?: number; readonly field?: string } = {},
): Promise<Submitted> {
  const { encryptionKey, version } = await open(token);
  const sealed = await Promise.all(
    Object.entries(values).map(
      async ([name, value]) =>
        [name, await encrypted(encryptionKey, value, formHeader(token, over.field ?? name))] as const,
    ),
  );
  const submission = { version: over.version ?? version, values: Object.fromEntries(sealed) };
  return await bed().forms.submit(token, submission);
}

const runOut = ({ vault, item }: Made): Promise<void> => runOutLink(bed(), vault, item);

test("a form shows the fields that a person can enter, in their order, and of values only what is not sensitive", async () => {
  const { vault, item } = await made();
  expect(await open(tokenIn(item))).toMatchObject({
    kind: "form",
    title: "",
    vaultName: vault.name,
    version: 1,
    encryptionKey: { alg: "ECDH-ES", enc: "A256GCM", kid: vault.transport.kid },
    fields: [
      {
        name: "user",
        type: "email",
        label: "Your address",
        required: true,
        sensitive: false,
        hasValue: true,
        value: "me@shop.example",
      },
      { name: "password", type: "password", label: null, hasValue: false, value: null },
      { name: "note", type: "text", required: false, sensitive: true, hasValue: false, value: null },
    ],
  });
});

test("a link holds for 30 minutes", async () => {
  const { item } = await made();
  const { expiresAt } = await open(tokenIn(item));
  expect(expiresAt - item.item.updatedAt).toBe(1_800_000);
});

test("opening a form consumes nothing and changes nothing", async () => {
  const at = await made();
  for (let count = 0; count < 3; count += 1) await open(tokenIn(at.item));
  expect(await read(at)).toEqual(at.item);
});

test("a submission makes the item ready, counts the version up, and consumes the link", async () => {
  const at = await made();
  expect(await submit(tokenIn(at.item), { password: "hunter2" })).toEqual({ kind: "done" });
  const now = await read(at);
  expect(now).toMatchObject({ status: "ready", item: { version: 2 } });
  expect(now.collect).toBeUndefined();
  expect(await bed().forms.open(tokenIn(at.item))).toEqual({ kind: "used" });
  const events = valueOf(await bed().items.events(at.vault.id, "shop", {}));
  expect(events.map(({ name }) => name)).toEqual(["credential.created", "credential.submitted"]);
});

test("what is not submitted keeps its value; an empty edit finishes a session", async () => {
  const at = await made([{ name: "password", type: "password", value: "hunter2" }]);
  const asked = await bed().items.operate(at.vault.id, "shop", {
    body: { type: "collect" },
    request: newRequestId(),
  });
  const got = valueOf(asked);
  if (got.kind !== "item") throw new Error("collect answers the item");
  expect(got.item.status).toBe("ready");
  expect(await submit(tokenIn(got.item), {})).toEqual({ kind: "done" });
  expect(await read(at)).toMatchObject({ status: "ready", item: { version: 2 } });
});

test("required inputs are not empty, whether they are cleared or left out", async () => {
  const { item } = await made();
  const required = { kind: "invalid", fields: [{ name: "password", fault: "required" }] };
  expect(await submit(tokenIn(item), {})).toEqual(required);
  expect(await submit(tokenIn(item), { password: "" })).toEqual(required);
  expect(await submit(tokenIn(item), { password: "x", user: "" })).toEqual({
    kind: "invalid",
    fields: [{ name: "user", fault: "required" }],
  });
});

test("an input that is not required may be cleared", async () => {
  const at = await made([
    { name: "user", type: "text" },
    { name: "note", type: "text", required: false, value: "old" },
  ]);
  expect(await submit(tokenIn(at.item), { user: "me", note: "" })).toEqual({ kind: "done" });
  expect((await read(at)).fields).toEqual([
    { name: "user", hasValue: true },
    { name: "note", hasValue: false },
  ]);
});

test("every fault of a submission is told at once, and nothing is written", async () => {
  const at = await made();
  const values = { user: "me", password: "x".repeat(16_385) };
  expect(await submit(tokenIn(at.item), values)).toEqual({
    kind: "invalid",
    fields: [
      { name: "user", fault: "invalid_email" },
      { name: "password", fault: "too_long" },
    ],
  });
  expect(await read(at)).toEqual(at.item);
});

test("a form takes no totp, no passkey and no field that the item has not", async () => {
  const { item } = await made();
  for (const name of ["code", "nobody", "constructor"])
    expect(await submit(tokenIn(item), { password: "x", [name]: "JBSWY3DPEHPK3PXP" })).toEqual({
      kind: "invalid",
      fields: [{ name, fault: "undecryptable" }],
    });
});

test("a value that was encrypted for another field is not taken: a captured password comes into no field that is shown", async () => {
  const { item } = await made();
  const got = await submit(tokenIn(item), { user: "hunter2" }, { field: "password" });
  expect(got).toMatchObject({ kind: "invalid", fields: [{ name: "user", fault: "undecryptable" }, {}] });
});

test("a PATCH voids the link: the form is replaced", async () => {
  const at = await made();
  valueOf(await bed().patch(at.vault, at.item, { description: "Shop" }));
  expect(await bed().forms.open(tokenIn(at.item))).toEqual({ kind: "replaced" });
  const submission = { version: 1, values: {} };
  expect(await bed().forms.submit(tokenIn(at.item), submission)).toEqual({ kind: "replaced" });
});

test("a PATCH that leaves the item pending gives another link", async () => {
  const at = await made();
  const got = valueOf(await bed().patch(at.vault, at.item, { description: "Shop" }));
  expect(tokenIn(got)).not.toBe(tokenIn(at.item));
  expect(await open(tokenIn(got))).toMatchObject({ title: "Shop", version: 2 });
});

test("a submission of another version than the form's is of a form that was replaced", async () => {
  const { item } = await made();
  expect(await submit(tokenIn(item), { password: "x" }, { version: 2 })).toEqual({ kind: "replaced" });
});

test("a form of an item or a vault that is deleted is gone, as is one that never was", async () => {
  const at = await made();
  valueOf(await bed().items.remove(at.vault.id, "shop"));
  expect(await bed().forms.open(tokenIn(at.item))).toEqual({ kind: "gone" });
  const other = await made();
  valueOf(await bed().vaults.remove(other.vault.id));
  for (const token of [tokenIn(other.item), "", "x", `default.${"A".repeat(43)}`, `blue.${"A".repeat(43)}`])
    expect(await bed().forms.open(token)).toEqual({ kind: "gone" });
});

test("an item that took the key of a deleted one is not what the link meant", async () => {
  const at = await made();
  valueOf(await bed().items.remove(at.vault.id, "shop"));
  await bed().put(at.vault, login);
  expect(await bed().forms.open(tokenIn(at.item))).toEqual({ kind: "gone" });
});

test("a link that ran out opens nothing, writes nothing, and does not renew itself", async () => {
  const at = await made();
  await runOut(at);
  expect(await bed().forms.open(tokenIn(at.item))).toEqual({ kind: "expired" });
  expect(await bed().forms.submit(tokenIn(at.item), { version: 1, values: {} })).toEqual({ kind: "expired" });
  expect((await listed(at))?.collect).toBeUndefined();
});

test("a read renews a link that ran out, without another version; the one before stays expired", async () => {
  const at = await made();
  await runOut(at);
  const renewed = await read(at);
  expect(tokenIn(renewed)).not.toBe(tokenIn(at.item));
  expect({ ...renewed, collect: undefined }).toEqual({ ...at.item, collect: undefined });
  expect(await open(tokenIn(renewed))).toMatchObject({ version: 1 });
  expect(await bed().forms.open(tokenIn(at.item))).toEqual({ kind: "expired" });
});

test("renewals at once give the same link", async () => {
  const at = await made();
  await runOut(at);
  const renewed = await Promise.all(Array.from({ length: 8 }, () => read(at)));
  expect(new Set(renewed.map(tokenIn)).size).toBe(1);
  expect(tokenIn(await read(at))).toBe(tokenIn(renewed[0] ?? at.item));
});

test("a list shows a link that holds, and gives none nor renews any", async () => {
  const at = await made();
  expect(await listed(at)).toEqual(at.item);
  await runOut(at);
  const keys = async (): Promise<number> => (await bed().scripts.ask((redis) => redis.keys("*"))).length;
  const before = await keys();
  expect((await listed(at))?.collect).toBeUndefined();
  expect(await keys()).toBe(before);
});

test("a ready item has no action until collect is asked for, and clears nothing for it", async () => {
  const at = await made([{ name: "user", type: "text", sensitive: false, value: "me" }]);
  expect(at.item.collect).toBeUndefined();
  const collect = { body: { type: "collect" }, request: newRequestId() };
  const got = valueOf(await bed().items.operate(at.vault.id, "shop", collect));
  if (got.kind !== "item") throw new Error("collect answers the item");
  expect(got.item).toMatchObject({ status: "ready", item: { version: 1 }, fields: at.item.fields });
  // The read of a ready item renews the link that it has.
  expect(tokenIn(await read(at))).toBe(tokenIn(got.item));
  await runOut({ vault: at.vault, item: got.item });
  expect(tokenIn(await read(at))).not.toBe("");
});

test("of submissions by one link that race just one is made", async () => {
  const at = await made();
  const raced = await Promise.all(
    Array.from({ length: 6 }, (_, index) => submit(tokenIn(at.item), { password: `p${index}` })),
  );
  expect(raced.filter(({ kind }) => kind === "done")).toHaveLength(1);
  for (const { kind } of raced) expect(["done", "used", "replaced"]).toContain(kind);
  expect((await read(at)).item.version).toBe(2);
});

test("of a form and a PATCH that race one is made, and the other is told", async () => {
  for (let round = 0; round < 10; round += 1) {
    const at = await made();
    const { encryptionKey } = await open(tokenIn(at.item));
    const password = await encrypted(encryptionKey, "x", formHeader(tokenIn(at.item), "password"));
    const [form, patch] = await Promise.all([
      bed().forms.submit(tokenIn(at.item), { version: 1, values: { password } }),
      bed().patch(at.vault, at.item, { description: "Shop" }),
    ]);
    const isSubmitted = form.kind === "done";
    expect(isSubmitted).toBe(patch.kind === "refused");
    expect(await read(at)).toMatchObject({
      item: { version: 2 },
      status: isSubmitted ? "ready" : "pending_collection",
    });
  }
});

test("without a form nothing is collected", async () => {
  const { items } = bed().with({ formUrl: undefined });
  const vault = await bed().vault();
  const body: ItemCreate = { type: "credential", spec: { provider: "native", fields: [...login] } };
  const item = valueOf(await items.put(vault.id, "shop", { body, request: newRequestId() }));
  expect(item).toMatchObject({ status: "pending_collection", operations: [] });
  expect(item.collect).toBeUndefined();
});
