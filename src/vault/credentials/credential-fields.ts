import { isRegistrable } from "../../base/net/public-suffix.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";
import { credentialBounds, type FieldDefinition, isOnForm, secretTypes } from "./credential.js";
import type { FieldAddition } from "../item-bodies.js";

/** A definition with its defaults. */
export const definitionOf = ({
  name,
  type,
  required = true,
  sensitive = true,
  label,
}: FieldAddition): FieldDefinition => ({
  name,
  type,
  required,
  sensitive,
  ...(label !== undefined && { label }),
});

/** Lines, and what turns or hides text. */
const notShown = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

export function checkDefinitions(
  faults: FieldFaults,
  where: string,
  fields: readonly Pick<FieldDefinition, "name" | "type" | "sensitive" | "label">[],
): void {
  for (const [at, { type, sensitive, label }] of fields.entries()) {
    const field = `${where}[${at}]`;
    if (!sensitive && secretTypes.has(type))
      fieldFault(faults, `${field}.sensitive`, `must be true for a field of type ${type}`);
    if (label !== undefined) checkLabel(faults, `${field}.label`, label);
  }
}

function checkLabel(faults: FieldFaults, field: string, label: string): void {
  if (Buffer.byteLength(label) > credentialBounds.labelBytes)
    fieldFault(faults, field, `must have at most ${credentialBounds.labelBytes} bytes`);
  if (label !== label.trim()) fieldFault(faults, field, "must not begin or end with a space");
  if (notShown.test(label)) fieldFault(faults, field, "must not have control or formatting characters");
}

export function checkDescription(faults: FieldFaults, description: string): void {
  if (Buffer.byteLength(description) > credentialBounds.descriptionBytes)
    fieldFault(faults, "spec.description", `must have at most ${credentialBounds.descriptionBytes} bytes`);
}

export function checkOrigins(faults: FieldFaults, origins: readonly string[]): void {
  for (const [at, text] of origins.entries()) {
    const fault = originFault(text);
    if (fault !== undefined) fieldFault(faults, `spec.allowed_origins[${at}]`, fault);
  }
}

const wildHost = /^https?:\/\/\*\.([^*/]+?)(?::\d+)?$/;

/** In the form in which a browser has it: https://host[:port] in lower case, without the usual port. */
function originFault(text: string): string | undefined {
  const form = "must be an origin, such as https://login.example or https://*.login.example";
  if (!URL.canParse(text)) return form;
  const { origin, protocol } = new URL(text);
  if (origin !== text || (protocol !== "https:" && protocol !== "http:")) return form;
  if (!text.includes("*")) return undefined;
  const [, host] = wildHost.exec(text) ?? [];
  if (host === undefined) return form;
  return isRegistrable(host) ? undefined : "must not stand for hosts of everybody: name a domain below that";
}

/** Each definition that has the name of one before it. */
export function checkUnique(
  faults: FieldFaults,
  where: string,
  { added, present }: { readonly added: readonly FieldDefinition[]; readonly present: ReadonlySet<string> },
): void {
  const known = new Set(present);
  for (const [at, { name }] of added.entries()) {
    if (known.has(name)) fieldFault(faults, `${where}[${at}].name`, "is there already");
    known.add(name);
  }
}

/** A value that no form can bring has to come with its definition. */
export function checkBrought(
  faults: FieldFaults,
  where: string,
  { added, brought }: { readonly added: readonly FieldDefinition[]; readonly brought: ReadonlySet<string> },
): void {
  for (const [at, field] of added.entries())
    if (field.required && !isOnForm(field) && !brought.has(field.name))
      fieldFault(faults, `${where}[${at}]`, `a required field of type ${field.type} needs its value`);
}
