import { openRelyingParty } from "./relying-party.js";
import { isOnForm, type ModelField, type ModelItem, type Step, type VaultModel } from "./vault-model.js";

export const seed = Number(process.env["VAULT_SEED"] ?? 1);

/** Numbers from 0 to below 1, the same for the same seed (mulberry32). */
function randomOf(start: number): () => number {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
const random = randomOf(seed);
export const pick = <Item>(items: readonly Item[]): Item =>
  items[Math.floor(random() * items.length)] as Item;
export const chance = (of: number): boolean => random() < of;

const otpSeed = "JBSWY3DPEHPK3PXP";
const keys = ["shop", "bank"];
const passkey = JSON.stringify(openRelyingParty("https://site.example").passkey);
const names = ["user", "password", "code", "note", "key"];
const types: Readonly<Record<string, ModelField["type"]>> = {
  code: "totp",
  password: "password",
  key: "passkey",
};
export const typeOf = (name: string): ModelField["type"] => types[name] ?? "text";
const hasForm = (name: string): boolean => name !== "code" && name !== "key";
const valueFor = (name: string): string =>
  name === "code" ? otpSeed : name === "key" ? passkey : `v${Math.floor(random() * 1000)}`;
const fieldOf = (name: string): ModelField => ({
  name,
  type: typeOf(name),
  required: name !== "note" && chance(0.8),
});

function fieldsOf(): readonly ModelField[] {
  const chosen = names.filter(() => chance(0.6));
  const fields = (chosen.length > 0 ? chosen : ["user"]).map(fieldOf);
  return fields.map((field) =>
    (field.required && !isOnForm(field)) || chance(0.5) ? { ...field, value: valueFor(field.name) } : field,
  );
}

/** What comes next, by what the model has. */
export function nextStep(model: VaultModel): Step {
  const key = pick(keys);
  const item = model.items.get(key);
  const token = pick([...model.tokens.keys(), "default." + "A".repeat(43)].slice(-6));
  if (!item) return { do: "put", key, fields: fieldsOf() };
  const choice = random();
  if (choice < 0.05) return { do: "put", key, fields: fieldsOf() };
  if (choice < 0.4) return patchOf(key, item);
  if (choice < 0.5) return { do: chance(0.3) ? "wait" : "get", key };
  if (choice < 0.6) return { do: "collect", key };
  if (choice < 0.63) return { do: "delete", key };
  if (choice < 0.7) return { do: "expire", key };
  if (choice < 0.76) return { do: "open", token };
  const values = names
    .filter((name) => hasForm(name) && chance(0.6))
    .map((name) => [name, chance(0.1) ? "" : valueFor(name)]);
  const shown = values.filter(
    ([name = ""]) => chance(0.05) || item.fields.some((field) => field.name === name),
  );
  const by = item.link?.token && chance(0.8) ? item.link.token : token;
  // Two that race without a value are the same bytes, and so one submission that came twice.
  if (shown.length === 0) return { do: "open", token: by };
  return { do: "submit", token: by, values: Object.fromEntries(shown) };
}

function patchOf(key: string, item: ModelItem): Step {
  const version = chance(0.1) ? Math.max(1, item.version - 1) : item.version;
  const set = names
    .filter(() => chance(0.4))
    .filter((name) => chance(0.1) || item.fields.some((field) => field.name === name))
    .map((name) => [name, chance(0.3) ? null : valueFor(name)] as const);
  const add = chance(0.2) ? fieldOf(pick(names)) : undefined;
  const brought = add && !isOnForm(add) ? [[add.name, valueFor(add.name)] as const] : [];
  return {
    do: "patch",
    key,
    version,
    ...(chance(0.15) && { remove: pick(names) }),
    ...(add && { add }),
    isEncrypted: chance(0.3),
    ...(set.length + brought.length > 0 && { set: Object.fromEntries([...set, ...brought]) }),
  };
}
