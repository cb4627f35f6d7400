import { type Done, done, type Refusal, refusal } from "../../base/errors.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";
import {
  checkBrought,
  checkDefinitions,
  checkDescription,
  checkOrigins,
  checkUnique,
  definitionOf,
} from "./credential-fields.js";
import { credentialBounds, type CredentialSpec, type FieldDefinition, isOnForm } from "./credential.js";
import type { FieldUpdate, ItemCreate, ItemPatch } from "../item-bodies.js";

/** A value as a request brings it. */
export type SentValue = { readonly plain: string } | { readonly encrypted: string } | "cleared";

/** What a credential is to become: its definitions, and what is to be written of its values. */
export interface CredentialPlan {
  readonly spec: CredentialSpec;
  readonly writes: ReadonlyMap<string, SentValue>;
  /** Values that go with their definitions, also of fields that are added anew. */
  readonly dropped: ReadonlySet<string>;
}

type CredentialBody = ItemCreate["spec"];
const createKeys: ReadonlySet<string> = new Set(["provider", "description", "fields", "allowed_origins"]);
const patchKeys: ReadonlySet<string> = new Set([
  "remove_fields",
  "add_fields",
  "fields",
  "description",
  "allowed_origins",
]);

function checkKeys(faults: FieldFaults, spec: object, known: ReadonlySet<string>): void {
  for (const key of Object.keys(spec))
    if (!known.has(key)) fieldFault(faults, `spec.${key}`, "is not a known field");
}

const judged = (faults: FieldFaults, plan: CredentialPlan): Done<CredentialPlan> | Refusal =>
  faults.length > 0 ? refusal("bad_request", { details: faults }) : done(plan);

/** A new credential of the native provider. */
export function planCredential(body: CredentialBody): Done<CredentialPlan> | Refusal {
  const faults: FieldFaults = [];
  checkKeys(faults, body, createKeys);
  const { fields = [], description = "", allowed_origins: allowedOrigins = [] } = body;
  if (fields.length === 0) fieldFault(faults, "spec.fields", "is required");
  const added = fields.map(definitionOf);
  const writes = new Map<string, SentValue>();
  for (const [at, { name, value, encrypted_value: encrypted }] of fields.entries()) {
    if (value !== undefined && encrypted !== undefined)
      fieldFault(faults, `spec.fields[${at}]`, "must not have both value and encrypted_value");
    if (value !== undefined) writes.set(name, { plain: value });
    else if (encrypted !== undefined) writes.set(name, { encrypted });
  }
  const brought = new Set(writes.keys());
  checkDefinitions(faults, "spec.fields", added);
  checkUnique(faults, "spec.fields", { added, present: new Set() });
  checkBrought(faults, "spec.fields", { added, brought });
  checkEncrypted(faults, added, writes);
  checkDescription(faults, description);
  checkOrigins(faults, allowedOrigins);
  return judged(faults, { spec: { description, fields: added, allowedOrigins }, writes, dropped: new Set() });
}

/**
 * What a PATCH makes of a credential: fields are removed first, then added, then set. Everything that is
 * wrong with it is told at once.
 */
export function planUpdate(present: CredentialSpec, body: ItemPatch["spec"]): Done<CredentialPlan> | Refusal {
  const faults: FieldFaults = [];
  checkKeys(faults, body, patchKeys);
  if (Object.keys(body).length === 0) fieldFault(faults, "spec", "must have at least one property");
  const removed = checkRemoved(faults, present, body.remove_fields ?? []);
  const kept = present.fields.filter(({ name }) => !removed.has(name));
  const added = (body.add_fields ?? []).map(definitionOf);
  const fields = [...kept, ...added];
  const writes = sentValues(faults, fields, body.fields ?? {});
  checkDefinitions(faults, "spec.add_fields", added);
  checkUnique(faults, "spec.add_fields", { added, present: new Set(kept.map(({ name }) => name)) });
  if (fields.length === 0) fieldFault(faults, "spec.remove_fields", "must leave a field");
  if (fields.length > credentialBounds.fields)
    fieldFault(faults, "spec.add_fields", `must leave at most ${credentialBounds.fields} fields`);
  const brought = new Set([...writes].flatMap(([name, sent]) => (sent === "cleared" ? [] : [name])));
  checkBrought(faults, "spec.add_fields", { added, brought });
  checkEncrypted(faults, fields, writes);
  const { description = present.description, allowed_origins: allowedOrigins = present.allowedOrigins } =
    body;
  checkDescription(faults, description);
  checkOrigins(faults, allowedOrigins);
  return judged(faults, { spec: { description, fields, allowedOrigins }, writes, dropped: removed });
}

function checkRemoved(
  faults: FieldFaults,
  { fields }: CredentialSpec,
  names: readonly string[],
): ReadonlySet<string> {
  for (const [at, name] of names.entries())
    if (!fields.some((field) => field.name === name))
      fieldFault(faults, `spec.remove_fields[${at}]`, "is no field of the item");
  return new Set(names);
}

function sentValues(
  faults: FieldFaults,
  fields: readonly FieldDefinition[],
  updates: Readonly<Record<string, FieldUpdate>>,
): ReadonlyMap<string, SentValue> {
  const writes = new Map<string, SentValue>();
  for (const [name, update] of Object.entries(updates)) {
    const field = fields.find((one) => one.name === name);
    const sent = sentValue(update);
    if (!field) fieldFault(faults, "spec.fields", `has a field that the item has not`);
    else if (sent === undefined)
      fieldFault(faults, `spec.fields.${name}`, "must have exactly one of value and encrypted_value");
    else if (sent === "cleared" && mustStay(field))
      fieldFault(faults, `spec.fields.${name}`, `a required field of type ${field.type} can not be cleared`);
    else writes.set(name, sent);
  }
  return writes;
}

/** No form could bring the value back. */
export const mustStay = (field: FieldDefinition): boolean => field.required && !isOnForm(field);

function sentValue({ value, encrypted_value: encrypted }: FieldUpdate): SentValue | undefined {
  if ((value === undefined) === (encrypted === undefined)) return undefined;
  if (encrypted !== undefined) return { encrypted };
  return value === null || value === undefined || value === "" ? "cleared" : { plain: value };
}

/**
 * Nothing binds an encrypted value to its field: whoever has seen one could have it written into a field that
 * is shown, and so read it (docs/vault.md#encrypted-values).
 */
function checkEncrypted(
  faults: FieldFaults,
  fields: readonly FieldDefinition[],
  writes: ReadonlyMap<string, SentValue>,
): void {
  for (const { name, sensitive } of fields) {
    const sent = writes.get(name);
    if (!sensitive && sent !== undefined && sent !== "cleared" && "encrypted" in sent)
      fieldFault(faults, `spec.fields: ${name}`, "takes no encrypted_value, since it is not sensitive");
  }
}
