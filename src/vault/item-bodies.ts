import { type Static, Type } from "typebox";
import { Name } from "../spec/bodies.js";
import { credentialBounds, fieldTypes } from "./credentials/credential.js";
import { itemTypes } from "./item.js";
import { operationNames, providerNames } from "./wire-names.js";

const closed = { additionalProperties: false } as const;
/** The rest depends on the type and the provider, and is judged where these are known. */
const open = { additionalProperties: true } as const;
const { fields, fieldName, descriptionBytes, encryptedLength, valueBytes } = credentialBounds;

export const itemKeyLength = 255;

/** POST /vaults (docs/vault.md#vaults). */
export const VaultCreate = Type.Object({ name: Name }, closed);
export type VaultCreate = Static<typeof VaultCreate>;

const FieldName = Type.String({ pattern: fieldName });
const definition = {
  name: FieldName,
  type: Type.Enum([...fieldTypes]),
  required: Type.Optional(Type.Boolean({ default: true })),
  sensitive: Type.Optional(
    Type.Boolean({
      default: true,
      description: "false: the API shows the value, and forms are prefilled with it",
    }),
  ),
  label: Type.Optional(
    Type.String({ minLength: 1, maxLength: 128, description: "At most 128 bytes in one line; for display" }),
  ),
};
const encryptedValue = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: encryptedLength,
    description: "A compact JWE for the vault's encryption key; of sensitive fields only",
  }),
);
const FieldAddition = Type.Object(definition, closed);
export type FieldAddition = Static<typeof FieldAddition>;
const FieldCreate = Type.Object(
  {
    ...definition,
    value: Type.Optional(
      Type.String({ minLength: 1, maxLength: valueBytes, description: "Its initial value" }),
    ),
    encrypted_value: encryptedValue,
  },
  closed,
);
export type FieldCreate = Static<typeof FieldCreate>;
const FieldUpdate = Type.Object(
  {
    value: Type.Optional(
      Type.Union([Type.String({ maxLength: valueBytes }), Type.Null()], {
        description: "Null or an empty text clears the field",
      }),
    ),
    encrypted_value: encryptedValue,
  },
  closed,
);
export type FieldUpdate = Static<typeof FieldUpdate>;

const Description = Type.Optional(
  Type.String({
    maxLength: descriptionBytes,
    description: "What the credential is for, shown as the form's title; at most 16 KiB",
  }),
);
const AllowedOrigins = Type.Optional(
  Type.Array(Type.String({ minLength: 1, maxLength: credentialBounds.originLength }), {
    maxItems: credentialBounds.origins,
    description: "Origins of pages and frames that may be filled; without one, all may",
  }),
);

/** PUT /vaults/{id_or_name}/items/{key} (docs/vault.md#items). */
export const ItemCreate = Type.Object(
  {
    type: Type.Enum([...itemTypes]),
    spec: Type.Object(
      {
        provider: Type.Enum([...providerNames]),
        description: Description,
        fields: Type.Optional(Type.Array(FieldCreate, { minItems: 1, maxItems: fields })),
        allowed_origins: AllowedOrigins,
      },
      open,
    ),
  },
  closed,
);
export type ItemCreate = Static<typeof ItemCreate>;

/** PATCH of the same (docs/vault.md#updates). */
export const ItemPatch = Type.Object(
  {
    type: Type.Optional(Type.Enum(["card", "credential"])),
    version: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 31, description: "Of the latest read" })),
    expected_item_id: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    spec: Type.Object(
      {
        remove_fields: Type.Optional(
          Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
            minItems: 1,
            maxItems: fields,
            uniqueItems: true,
          }),
        ),
        add_fields: Type.Optional(Type.Array(FieldAddition, { minItems: 1, maxItems: fields })),
        fields: Type.Optional(
          Type.Record(Type.String({ minLength: 1, maxLength: 64 }), FieldUpdate, {
            minProperties: 1,
            maxProperties: fields,
          }),
        ),
        description: Description,
        allowed_origins: AllowedOrigins,
      },
      open,
    ),
  },
  closed,
);
export type ItemPatch = Static<typeof ItemPatch>;

const FillField = Type.Object(
  {
    field: Type.String({ minLength: 1, maxLength: 64 }),
    selector: Type.String({
      minLength: 1,
      maxLength: 4096,
      description: "CSS; matches one editable element",
    }),
    format: Type.Optional(Type.Enum(["MM/YY", "MM/YYYY"], { description: "Of cards' expirations" })),
  },
  closed,
);
/** POST …/operations (docs/vault.md#operations): beside the type, what it takes. */
export const ItemOperation = Type.Object(
  {
    type: Type.Enum([...operationNames]),
    browser_id: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "The session's id" })),
    fields: Type.Optional(Type.Array(FillField, { minItems: 1, maxItems: fields })),
    field: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 64,
        description:
          "Of a passkey; without it the only one, or for a disarm_passkey with a browser_id all that the browser has",
      }),
    ),
    page_url: Type.Optional(
      Type.String({ minLength: 1, maxLength: 8192, description: "The page's URL; the only page without it" }),
    ),
    timeout_ms: Type.Optional(Type.Integer({ minimum: 1, maximum: 30_000, default: 10_000 })),
  },
  open,
);
export type ItemOperation = Static<typeof ItemOperation>;
