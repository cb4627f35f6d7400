import { Secret } from "../../base/crypto/secret.js";
import { type Done, done, type Refusal, refusal } from "../../base/errors.js";
import type { ProjectId } from "../../base/ids.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";
import { type CredentialPlan, mustStay, type SentValue } from "./credential-changes.js";
import type { FieldDefinition } from "./credential.js";
import type { DataKey } from "../encryption/data-key.js";
import { keptText, valueFault } from "./field-values.js";
import type { StoredValue, VaultItem } from "../item.js";
import { openDecrypter } from "../encryption/transport-key.js";
import type { Vault } from "../vault.js";

/** A value to be written; null: none. */
export type ReadValues = ReadonlyMap<string, Secret | null>;

interface OpenVault {
  readonly project: ProjectId;
  readonly vault: Vault;
  readonly dataKey: DataKey;
}

/** Opens what was sent encrypted, and holds every value against its field's type. */
export async function readSent(
  reading: OpenVault,
  plan: CredentialPlan,
): Promise<Done<ReadValues> | Refusal> {
  const faults: FieldFaults = [];
  const values = new Map<string, Secret | null>();
  const isEncrypted = [...plan.writes.values()].some((sent) => sent !== "cleared" && "encrypted" in sent);
  const decrypt = isEncrypted ? await openDecrypter(reading, reading.vault) : undefined;
  for (const field of plan.spec.fields) {
    const sent = plan.writes.get(field.name);
    if (sent === undefined) continue;
    const read = await readOne(field, sent, decrypt);
    if (read.kind === "refused") return read;
    checkValue(faults, field, read.value);
    values.set(field.name, read.value && new Secret(keptText(field.type, read.value.reveal())));
  }
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : done(values);
}

type Decrypt = Awaited<ReturnType<typeof openDecrypter>>;

async function readOne(
  { name }: FieldDefinition,
  sent: SentValue,
  decrypt: Decrypt | undefined,
): Promise<Done<Secret | null> | Refusal> {
  if (sent === "cleared") return done(null);
  if ("plain" in sent) return done(new Secret(sent.plain));
  const got = await decrypt?.(sent.encrypted);
  if (got?.kind === "foreign-key") return refusal("encryption_key_mismatch");
  // What a form has encrypted is for that form alone.
  const isMeant = got?.kind === "decrypted" && got.link === undefined && (got.field ?? name) === name;
  if (!isMeant)
    return refusal("invalid_request", { message: `The encrypted value of ${name} can not be opened` });
  return done(got.value.reveal() === "" ? null : got.value);
}

function checkValue(faults: FieldFaults, field: FieldDefinition, value: Secret | null): void {
  const where = `spec.fields.${field.name}`;
  const fault = value && valueFault(field.type, value.reveal());
  if (fault) fieldFault(faults, where, fault);
  if (value === null && mustStay(field))
    fieldFault(faults, where, `a required field of type ${field.type} can not be cleared`);
}

/** The values of an item after a change: those that were written, and the others as they were. */
export function mergeValues(
  { project, vault, dataKey }: OpenVault,
  { id, version, values }: Pick<VaultItem, "id" | "version" | "values">,
  { spec, dropped, read }: Pick<CredentialPlan, "spec" | "dropped"> & { readonly read: ReadValues },
): ReadonlyMap<string, StoredValue> {
  const merged = new Map<string, StoredValue>();
  for (const { name } of spec.fields) {
    const written = read.get(name);
    const kept = dropped.has(name) ? undefined : values.get(name);
    const place = { project, vault: vault.id, item: id, field: name, version };
    if (written) merged.set(name, { sealed: dataKey.seal(written.reveal(), place), version });
    else if (written === undefined && kept) merged.set(name, kept);
  }
  return merged;
}

/** Opens a kept value; undefined where it does not open, though its key did. */
export function openValue(
  { project, vault, dataKey }: OpenVault,
  { id }: Pick<VaultItem, "id">,
  { name, stored }: { readonly name: string; readonly stored: StoredValue },
): Secret | undefined {
  const place = { project, vault: vault.id, item: id, field: name, version: stored.version };
  const opened = dataKey.open(stored.sealed, place);
  return opened.kind === "opened" ? opened.text : undefined;
}
