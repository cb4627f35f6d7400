import { createHash } from "node:crypto";
import { type Static, Type } from "typebox";
import { readonlyList } from "../../base/parser.js";

export const fieldTypes = ["text", "email", "password", "totp", "passkey"] as const;
export type FieldType = (typeof fieldTypes)[number];

/** What a person can type into a form; the others come by the API only. */
const formTypes: ReadonlySet<FieldType> = new Set(["text", "email", "password"]);
export const isOnForm = ({ type }: Pick<FieldDefinition, "type">): boolean => formTypes.has(type);
/** Types whose values are never shown. */
export const secretTypes: ReadonlySet<FieldType> = new Set(["password", "totp", "passkey"]);

export const credentialBounds = {
  fields: 32,
  fieldName: "^[a-zA-Z][a-zA-Z0-9_]{0,63}$",
  valueBytes: 16_384,
  /** A compact JWE of a value of that size. */
  encryptedLength: 32_768,
  descriptionBytes: 16_384,
  labelBytes: 128,
  origins: 32,
  originLength: 255,
} as const;

const FieldDefinition = Type.Object({
  name: Type.String(),
  type: Type.Enum([...fieldTypes]),
  required: Type.Boolean(),
  sensitive: Type.Boolean(),
  label: Type.Optional(Type.String()),
});
export type FieldDefinition = Readonly<Static<typeof FieldDefinition>>;

/** A credential's definitions, in the order in which a form shows them. No values. */
export const CredentialSpec = Type.Object({
  description: Type.String(),
  fields: readonlyList(FieldDefinition),
  allowedOrigins: readonlyList(Type.String()),
});
export type CredentialSpec = Readonly<Static<typeof CredentialSpec>>;

export type CredentialStatus = "pending_collection" | "ready";

/** Required values that only the API can bring are always there, since no item is without them. */
export const statusOf = (spec: CredentialSpec, filled: { has(name: string): boolean }): CredentialStatus =>
  spec.fields.some((field) => field.required && isOnForm(field) && !filled.has(field.name))
    ? "pending_collection"
    : "ready";

/** Tells one set of definitions from another, whatever values came with them. */
export const specDigest = ({ description, fields, allowedOrigins }: CredentialSpec): string =>
  createHash("sha256")
    .update(
      JSON.stringify([
        description,
        allowedOrigins,
        fields.map(({ name, type, required, sensitive, label }) => [name, type, required, sensitive, label]),
      ]),
    )
    .digest("base64url");
