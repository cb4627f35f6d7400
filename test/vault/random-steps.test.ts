import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import { newRequestId } from "../../src/base/ids.js";
import { tokenDigest } from "../../src/vault/encryption/data-key.js";
import type { FieldAddition, ItemCreate, ItemPatch } from "../../src/vault/item-bodies.js";
import type { ShownItem } from "../../src/vault/shown-item.js";
import type { Vault } from "../../src/vault/vault.js";
import {
  encrypted,
  formHeader,
  secondControl,
  sharedVaultBed,
  tokenIn,
  valueOf,
} from "../support/vault/vault-bed.js";
import type { VaultBed } from "../support/vault/vault-bed.js";
import {
  isOnForm,
  isPending,
  type ModelField,
  type ModelItem,
  type Step,
  VaultModel,
} from "../support/vault/vault-model.js";
import { chance, nextStep, pick, seed, typeOf } from "../support/vault/vault-steps.js";

const steps = Number(process.env["VAULT_STEPS"] ?? 2000);
const bed = sharedVaultBed();

const additionOf = ({ name, type, required }: ModelField): FieldAddition => ({
  name,
  type,
  required,
  sensitive: type !== "text",
});

interface Answered {
  readonly kind: string;
  readonly shown?: ShownItem | undefined;
}
type Control = Pick<VaultBed, "items" | "forms">;

/** Takes a step at a control, as its callers do. */
async function take({ items, forms }: Control, vault: Vault, step: Step): Promise<Answered> {
  const request = newRequestId();
  const told = (got: Awaited<ReturnType<typeof items.get>>): Answered =>
    got.kind === "refused" ? { kind: got.code } : { kind: "done", shown: got.value };
  switch (step.do) {
    case "put": {
      const fields = step.fields.map((field) => ({
        ...additionOf(field),
        ...(field.value !== undefined && { value: field.value }),
      }));
      const body: ItemCreate = { type: "credential", spec: { provider: "native", fields } };
      return told(await items.put(vault.id, step.key, { body, request }));
    }
    case "patch": {
      const { remove, add, set } = step;
      const spec: ItemPatch["spec"] = {
        ...(remove !== undefined && { remove_fields: [remove] }),
        ...(add && { add_fields: [additionOf(add)] }),
        ...(set && { fields: await updatesOf(vault, step) }),
        ...(!remove && !add && !set && { description: "" }),
      };
      const body = { type: "credential", version: step.version, spec } as const;
      return told(await items.update(vault.id, step.key, { body, request }));
    }
    case "get":
      return told(await items.get(vault.id, step.key, {}));
    case "wait":
      return told(await items.get(vault.id, step.key, { waitMs: 5 }));
    case "collect": {
      const got = await items.operate(vault.id, step.key, { body: { type: "collect" }, request });
      if (got.kind === "refused") return { kind: got.code };
      return { kind: "done", shown: got.value.kind === "item" ? got.value.item : undefined };
    }
    case "delete": {
      const got = await items.remove(vault.id, step.key);
      return { kind: got.kind === "refused" ? got.code : "done" };
    }
    case "expire":
      return { kind: await expire(vault, step.key) };
    case "open":
      return { kind: (await forms.open(step.token)).kind };
    case "submit":
      return { kind: await submit(forms, vault, step) };
  }
}

/** As a caller sends values; those that are not shown encrypted, where the step says so. */
async function updatesOf(
  { transport: { kid, jwk } }: Vault,
  { set = {}, isEncrypted }: Extract<Step, { do: "patch" }>,
): Promise<NonNullable<ItemPatch["spec"]["fields"]>> {
  const key = { alg: "ECDH-ES", enc: "A256GCM", kid, jwk } as const;
  const updates = await Promise.all(
    Object.entries(set).map(async ([name, value]) =>
      isEncrypted && typeOf(name) !== "text"
        ? ([name, { encrypted_value: await encrypted(key, value ?? "") }] as const)
        : ([name, { value }] as const),
    ),
  );
  return Object.fromEntries(updates);
}

async function submit(
  forms: Control["forms"],
  { transport }: Vault,
  { token, values }: Extract<Step, { do: "submit" }>,
): Promise<string> {
  const form = await forms.open(token);
  if (form.kind !== "form") return form.kind;
  const { kid, jwk } = transport;
  const sealed = await Promise.all(
    Object.entries(values).map(async ([name, value]) => {
      const key = { alg: "ECDH-ES", enc: "A256GCM", kid, jwk } as const;
      return [name, await encrypted(key, value, formHeader(token, name))] as const;
    }),
  );
  return (await forms.submit(token, { version: form.version, values: Object.fromEntries(sealed) })).kind;
}

/** Makes the link of an item run out, where it holds. */
async function expire(vault: Vault, key: string): Promise<string> {
  const shown = valueOf(await bed().items.list(vault.id)).find(({ item }) => item.key === key);
  if (!shown?.collect) return "nothing";
  const token = tokenIn(shown);
  const [links, link] = [
    `remuda:{project-default}:vaultLinks:${vault.id}`,
    `remuda:{project-default}:collectionLink:${tokenDigest(token)}`,
  ];
  await bed().scripts.ask(async (redis) => {
    const text = (await redis.hget(links, shown.item.id)) ?? "";
    await redis.hset(links, shown.item.id, text.replace(/^(\d+) \d+/, "$1 1000"));
    const known = JSON.parse((await redis.get(link)) ?? "") as object;
    await redis.set(link, JSON.stringify({ ...known, expiresAt: 1000 }), "KEEPTTL");
  });
  return "done";
}

/** What is shown of an item's fields. */
const fieldsOf = ({ fields }: ModelItem): ShownItem["fields"] =>
  fields.map(({ name, type, value }) => ({
    name,
    hasValue: value !== undefined,
    ...(type === "text" && value !== undefined && { value }),
  }));

/** That a list shows what the model has, and that each link is the one that was shown before. */
async function expectAsModelled(vault: Vault, model: VaultModel): Promise<void> {
  const shown = valueOf(await bed().items.list(vault.id));
  expect(shown.map(({ item }) => item.key).toSorted()).toEqual([...model.items.keys()].toSorted());
  for (const one of shown) {
    const item = model.items.get(one.item.key);
    if (!item) continue;
    expect(one.item.version).toBe(item.version);
    expect(one.status).toBe(isPending(item) ? "pending_collection" : "ready");
    expect(one.fields).toEqual(fieldsOf(item));
    const offered = one.operations.map(({ type }) => type);
    expect(offered.includes("collect")).toBe(item.fields.some(isOnForm));
    for (const [type, has] of [
      ["arm_passkey", true],
      ["register_passkey", false],
    ] as const)
      expect(offered.includes(type)).toBe(
        item.fields.some((field) => field.type === "passkey" && (field.value !== undefined) === has),
      );
    expect(offered.includes("fill")).toBe(
      !isPending(item) && item.fields.some(({ type, value }) => type !== "passkey" && value !== undefined),
    );
    expect(one.collect !== undefined).toBe(item.link?.holds === true);
    if (one.collect) expect(model.shown(one.item.key, tokenIn(one))).toBe(true);
  }
}

test(`random steps at two controls are answered as the rules tell (seed ${seed}, ${steps} steps)`, async () => {
  const other = await secondControl(bed());
  const controls: readonly Control[] = [bed(), other];
  const vault = await bed().vault();
  let model = new VaultModel();
  const taken: Step[] = [];
  let count = 0;
  try {
    for (; count < steps; count += 1) {
      model = await advance(controls, vault, { model, taken });
      await expectAsModelled(vault, model);
    }
  } catch (error) {
    const last = JSON.stringify(taken.slice(-4));
    throw new Error(`seed ${seed}, step ${count}, after ${last}: ${String(error)}`, { cause: error });
  } finally {
    await other.close();
  }
}, 10_800_000);

/** One step at either control, or two at once; links run out by the test itself, which races nobody. */
async function advance(
  controls: readonly Control[],
  vault: Vault,
  { model, taken }: { readonly model: VaultModel; readonly taken: Step[] },
): Promise<VaultModel> {
  const step = nextStep(model);
  const rival = chance(0.2) ? nextStep(model) : undefined;
  taken.push(step);
  if (!rival || step.do === "expire" || rival.do === "expire") {
    expect((await take(pick(controls), vault, step)).kind).toBe(model.take(step));
    return model;
  }
  taken.push(rival);
  return await race(controls, vault, { model, step, rival });
}

/** Two steps at once, one at each control: they were answered as in one of the two orders. */
async function race(
  [one, other]: readonly Control[],
  vault: Vault,
  { model, step, rival }: { readonly model: VaultModel; readonly step: Step; readonly rival: Step },
): Promise<VaultModel> {
  if (!one || !other) throw new Error("there are two controls");
  const got = await Promise.all([take(one, vault, step), take(other, vault, rival)]);
  const [first, second] = got.map(({ kind }) => kind);
  const orders = [
    [step, rival, first, second],
    [rival, step, second, first],
  ] as const;
  for (const [before, after, answeredBefore, answeredAfter] of orders) {
    const tried = model.copy();
    if (tried.take(before) !== answeredBefore) continue;
    const modelled = tried.take(after);
    if (modelled !== answeredAfter && !(areOneDeletion(before, after) && answeredAfter === "done")) continue;
    if (await isAs(vault, tried)) return tried;
  }
  throw new Error(`${JSON.stringify([step, rival])} raced and were answered ${first} and ${second}`);
}

/** Each of two that found the item is told that it is removed, as a repeat is whose answer was lost. */
const areOneDeletion = (one: Step, other: Step): boolean =>
  one.do === "delete" && other.do === "delete" && one.key === other.key;

async function isAs(vault: Vault, model: VaultModel): Promise<boolean> {
  const shown = valueOf(await bed().items.list(vault.id));
  return (
    shown.length === model.items.size &&
    shown.every(({ item, fields, collect }) => {
      const known = model.items.get(item.key);
      return (
        known?.version === item.version &&
        isDeepStrictEqual(fields, fieldsOf(known)) &&
        (collect !== undefined) === (known.link?.holds === true)
      );
    })
  );
}
