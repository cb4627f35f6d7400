import { createHash } from "node:crypto";
import { Secret } from "../base/crypto/secret.js";
import { newRequestId, type ProjectId } from "../base/ids.js";
import type {
  CollectionForms,
  FieldFault,
  FormEnd,
  FormField,
  OpenForm,
  Submission,
  Submitted,
} from "./collection-form.js";
import { parseToken } from "./collection-links.js";
import { credentialBounds, type FieldDefinition, isOnForm } from "./credentials/credential.js";
import type { DataKey } from "./encryption/data-key.js";
import { isEmail } from "./credentials/field-values.js";
import type { VaultItem } from "./item.js";
import { withDataKey } from "./encryption/key-provider.js";
import type { VaultPorts } from "./ports.js";
import { mergeValues, openValue, type ReadValues } from "./credentials/sent-values.js";
import { encryptionKeyOf, openDecrypter } from "./encryption/transport-key.js";
import type { KnownLink, Vault } from "./vault.js";

type FormPorts = Pick<VaultPorts, "project" | "provider" | "store">;

/** `portsOf`: of the project that a token names, whether there is one or not. */
export const makeCollectionForms = (portsOf: (project: ProjectId) => FormPorts): CollectionForms => ({
  async open(token) {
    const found = await findForm(portsOf, token);
    return found.kind === "found" ? await openForm(found) : { kind: found.kind };
  },
  async submit(token, submission) {
    const found = await findForm(portsOf, token);
    if (found.kind === "used") return await submitAgain(found, submission);
    return found.kind === "found" ? await submitForm(found, submission) : found;
  },
});

interface FoundForm {
  readonly kind: "found";
  readonly ports: FormPorts;
  readonly digest: string;
  readonly link: Extract<KnownLink, { readonly kind: "known" }>;
  readonly vault: Vault;
  readonly item: VaultItem;
}

/** A link that was used, and by which submission. */
interface UsedForm extends Pick<FoundForm, "ports" | "digest"> {
  readonly kind: "used";
  readonly submission: string;
}

async function findForm(
  portsOf: (project: ProjectId) => FormPorts,
  token: string,
): Promise<FoundForm | UsedForm | { readonly kind: Exclude<FormEnd["kind"], "used"> }> {
  const parsed = parseToken(token);
  if (!parsed) return { kind: "gone" };
  const ports = portsOf(parsed.project);
  const { digest } = parsed;
  const link = await ports.store.findLink(digest);
  if (link.kind === "used") return { ...link, ports, digest };
  if (link.kind === "gone") return link;
  const [vault, item, now] = await Promise.all([
    ports.store.find(link.vault),
    ports.store.findItem(link.vault, link.key),
    ports.store.now(),
  ]);
  if (!vault || item?.id !== link.item) return { kind: "gone" };
  if (item.version !== link.version) {
    // It may have been submitted between the two reads.
    const again = await ports.store.findLink(digest);
    if (again.kind === "used") return { ...again, ports, digest };
    return again.kind === "known" ? { kind: "replaced" } : again;
  }
  if (link.expiresAt <= now) return { kind: "expired" };
  return { kind: "found", ports, digest, link, vault, item };
}

const openForm = ({ ports, vault, item, link }: FoundForm): Promise<OpenForm> =>
  withDataKey(ports, vault, async (dataKey) => ({
    kind: "form",
    title: item.spec.description,
    vaultName: vault.name,
    item: { vault: vault.id, key: item.key },
    fields: item.spec.fields
      .filter(isOnForm)
      .map((field) => formField({ ports, vault, item, dataKey }, field)),
    version: item.version,
    encryptionKey: encryptionKeyOf(vault.transport),
    expiresAt: link.expiresAt,
  }));

type OpenedForm = Pick<FoundForm, "ports" | "vault" | "item"> & { readonly dataKey: DataKey };

function formField({ ports, vault, item, dataKey }: OpenedForm, field: FieldDefinition): FormField {
  const { name, type, required, sensitive, label = null } = field;
  const stored = item.values.get(name);
  const shown =
    stored && !sensitive
      ? openValue({ project: ports.project, vault, dataKey }, item, { name, stored })
      : undefined;
  const about = { name, label, required, sensitive, hasValue: stored !== undefined };
  return { ...about, type: type as FormField["type"], value: shown?.reveal() ?? null };
}

const submitForm = (found: FoundForm, submission: Submission): Promise<Submitted> =>
  withDataKey(found.ports, found.vault, async (dataKey): Promise<Submitted> => {
    const { ports, vault, item, digest } = found;
    if (submission.version !== item.version) return { kind: "replaced" };
    const { faults, read } = await readSubmitted({ ports, vault, item, dataKey, digest }, submission);
    if (faults.length > 0) return { kind: "invalid", fields: faults };
    const next = { ...item, version: item.version + 1 };
    const reading = { project: ports.project, vault, dataKey };
    const values = mergeValues(reading, next, { spec: item.spec, dropped: new Set(), read });
    const write = { ...next, values, link: undefined, event: "credential.submitted" } as const;
    const request = newRequestId();
    const consumes = { digest, submission: submissionDigest(submission) };
    const changed = await ports.store.changeItem(vault.id, { ...write, request, consumes });
    if (changed === "full") return { kind: "invalid", fields: [...read.keys()].map(tooLong) };
    return ends[changed];
  });

/** Tells a submission from any other: each value is encrypted anew for it. */
const submissionDigest = ({ version, values }: Submission): string =>
  createHash("sha256")
    .update(JSON.stringify([version, values]))
    .digest("base64url");

/**
 * A page that has heard no answer sends the same bytes again, to whichever control. The first may have been
 * made and not synced.
 */
async function submitAgain(
  { ports, submission }: UsedForm,
  sent: Submission,
): Promise<{ readonly kind: "done" | "used" }> {
  if (submission !== submissionDigest(sent)) return { kind: "used" };
  await ports.store.settle();
  return { kind: "done" };
}

/** There is no room for it: a shorter one may fit. */
const tooLong = (name: string): FieldFault => ({ name, fault: "too_long" });

const ends = {
  changed: { kind: "done" },
  stale: { kind: "replaced" },
  missing: { kind: "gone" },
  used: { kind: "used" },
  expired: { kind: "expired" },
} as const satisfies Readonly<Record<string, Submitted>>;

/** Every fault of a submission, or what it writes. A field that no form shows is at fault. */
async function readSubmitted(
  { ports, vault, item, dataKey, digest }: OpenedForm & Pick<FoundForm, "digest">,
  { values }: Submission,
): Promise<{ readonly faults: readonly FieldFault[]; readonly read: ReadValues }> {
  const decrypt = await openDecrypter({ project: ports.project, dataKey }, vault);
  const shown = new Map(item.spec.fields.filter(isOnForm).map((field) => [field.name, field]));
  const faults: FieldFault[] = [];
  const read = new Map<string, Secret | null>();
  for (const [name, jwe] of Object.entries(values).slice(0, credentialBounds.fields + 1)) {
    const got = shown.has(name) ? await decrypt(jwe) : undefined;
    // What was encrypted for a password must not come into a field that is shown, of this item or another.
    if (got?.kind !== "decrypted" || got.field !== name || got.link !== digest)
      faults.push({ name, fault: "undecryptable" });
    else read.set(name, got.value.reveal() === "" ? null : got.value);
  }
  const seen = new Set(faults.map(({ name }) => name));
  for (const field of shown.values()) {
    const fault = seen.has(field.name) ? undefined : fieldFaultOf(field, read.get(field.name), item);
    if (fault) faults.push({ name: field.name, fault });
  }
  return { faults, read };
}

function fieldFaultOf(
  { name, type, required }: FieldDefinition,
  value: Secret | null | undefined,
  { values }: VaultItem,
): FieldFault["fault"] | undefined {
  const isLeft = value ?? (value === undefined && values.has(name));
  if (required && !isLeft) return "required";
  if (!value) return undefined;
  const text = value.reveal();
  if (Buffer.byteLength(text) > credentialBounds.valueBytes) return "too_long";
  return type === "email" && !isEmail(text) ? "invalid_email" : undefined;
}
