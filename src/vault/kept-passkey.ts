import type { Millis } from "../base/clock.js";
import { refusal, type Refusal, RemudaError } from "../base/errors.js";
import { isRecord } from "../base/is-record.js";
import { type Passkey, parsePasskey } from "./credentials/field-values.js";
import { openValue } from "./credentials/sent-values.js";
import type { DataKey } from "./encryption/data-key.js";
import type { VaultItem } from "./item.js";
import type { VaultPorts } from "./ports.js";
import type { Vault } from "./vault.js";

/** Who has the passkey, until when (the control's clock), and from which counter on. */
export interface ArmedRecord {
  readonly browser: string;
  readonly lease: string;
  readonly until: Millis;
  readonly from: number;
}

/** The value of a passkey's field as it is kept: the passkey that was given, with this beside. */
interface KeptPasskey {
  readonly passkey: Passkey;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly armed?: ArmedRecord;
}

export interface OpenedVault {
  readonly vault: Vault;
  readonly dataKey: DataKey;
}
interface PasskeyField {
  readonly item: VaultItem;
  readonly field: string;
}

/** The fields of an item that are for passkeys, or the one of them that is named. */
export const fieldsForPasskeys = ({ spec }: Pick<VaultItem, "spec">, named?: string): readonly string[] =>
  spec.fields
    .filter(({ name, type }) => type === "passkey" && (named === undefined || name === named))
    .map(({ name }) => name);

/** Those that have one. */
export const passkeyFields = (item: Pick<VaultItem, "spec" | "values">, named?: string): readonly string[] =>
  fieldsForPasskeys(item, named).filter((name) => item.values.has(name));

/** Throws `secret_unreadable` where it is damaged. */
export function openKept(
  ports: Pick<VaultPorts, "project">,
  vault: OpenedVault,
  of: PasskeyField,
): KeptPasskey {
  const kept = findKept(ports, vault, of);
  if (!kept)
    throw new RemudaError("secret_unreadable", { message: `A value of item ${of.item.id} is damaged` });
  return kept;
}

export function findKept(
  { project }: Pick<VaultPorts, "project">,
  vault: OpenedVault,
  { item, field: name }: PasskeyField,
): KeptPasskey | undefined {
  const stored = item.values.get(name);
  const text = stored && openValue({ project, ...vault }, item, { name, stored })?.reveal();
  const passkey = text === undefined ? undefined : parsePasskey(text);
  const fields: unknown = passkey && JSON.parse(text ?? "");
  if (!passkey || !isRecord(fields)) return undefined;
  const armed = fields["armed"];
  return { passkey, fields, ...(isArmedRecord(armed) && { armed }) };
}

const armedTypes = { browser: "string", lease: "string", until: "number", from: "number" } as const;
const isArmedRecord = (found: unknown): found is ArmedRecord =>
  isRecord(found) && Object.entries(armedTypes).every(([name, type]) => typeof found[name] === type);

/** Whether a browser that is still there has it. */
export async function isArmed(
  { clock, findSession }: Pick<VaultPorts, "clock" | "findSession">,
  armed: ArmedRecord | undefined,
): Promise<boolean> {
  if (!armed || armed.until <= clock.now()) return false;
  return (await findSession(armed.browser))?.lease === armed.lease;
}

/**
 * Refused where a browser has the passkey of one of these fields: who has it stands in the value, and another
 * value in its place would leave it there with nobody to take it away.
 */
export async function refuseArmed(
  ports: Pick<VaultPorts, "project" | "clock" | "findSession">,
  vault: OpenedVault,
  { item, changed }: { readonly item: VaultItem; readonly changed: ReadonlySet<string> },
): Promise<Refusal | undefined> {
  for (const field of passkeyFields(item)) {
    const armed = changed.has(field) ? findKept(ports, vault, { item, field })?.armed : undefined;
    if (await isArmed(ports, armed))
      return refusal("conflict", { message: "A browser has the passkey; disarm_passkey takes it away" });
  }
  return undefined;
}
