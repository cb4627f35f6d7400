import { type Static, Type } from "typebox";
import { fillErrorCodes } from "../../spec/page-fill.js";
import { itemTypes } from "../../vault/item.js";

const Instant = Type.String({ format: "date-time" });

/** A vault as docs/vault.md#vaults has it. */
const VaultReply = Type.Object(
  { id: Type.String(), name: Type.String(), created_at: Instant, updated_at: Instant },
  { $id: "Vault" },
);
export type VaultReply = Static<typeof VaultReply>;

/** Values may be encrypted for it (docs/vault.md#encrypted-values). */
const EncryptionKeyReply = Type.Object(
  {
    alg: Type.Literal("ECDH-ES"),
    enc: Type.Literal("A256GCM"),
    kid: Type.String(),
    jwk: Type.Object({ kty: Type.String(), crv: Type.String(), x: Type.String(), y: Type.String() }),
  },
  { $id: "VaultEncryptionKey" },
);

const Available = Type.Object({ type: Type.String(), description: Type.String() });
/** An item as docs/vault.md#items has it; sensitive values are never in it. */
const VaultItemReply = Type.Object(
  {
    id: Type.String(),
    key: Type.String(),
    type: Type.Enum([...itemTypes]),
    version: Type.Integer({ minimum: 1, description: "Of credentials; one more after each change" }),
    spec: Type.Object({
      provider: Type.String(),
      description: Type.Optional(Type.String()),
      fields: Type.Array(
        Type.Object({
          name: Type.String(),
          type: Type.String(),
          required: Type.Boolean(),
          sensitive: Type.Boolean(),
          label: Type.Optional(Type.String()),
        }),
      ),
      allowed_origins: Type.Optional(Type.Array(Type.String())),
    }),
    state: Type.Object({
      provider: Type.String(),
      status: Type.Enum(["pending_collection", "ready"]),
      fields: Type.Record(
        Type.String(),
        Type.Object({
          has_value: Type.Boolean(),
          value: Type.Optional(Type.String({ description: "Of fields that are not sensitive" })),
        }),
      ),
    }),
    available_operations: Type.Array(Available),
    available_expansions: Type.Array(Available),
    action: Type.Optional(
      Type.Object(
        { name: Type.Literal("collect"), url: Type.String(), expires_at: Instant },
        { description: "A form that a person is to open" },
      ),
    ),
    created_at: Instant,
    updated_at: Instant,
  },
  { $id: "VaultItem" },
);
export type VaultItemReply = Static<typeof VaultItemReply>;

const VaultItemEventReply = Type.Object(
  {
    id: Type.String(),
    created_at: Instant,
    name: Type.String(),
    browser_id: Type.Optional(Type.String()),
    data: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { $id: "VaultItemEvent" },
);
export type VaultItemEventReply = Static<typeof VaultItemEventReply>;

/** What a fill has come to: never with a value, nor with a text of the page. */
const FillReply = Type.Object(
  {
    type: Type.Literal("fill"),
    status: Type.Enum(["completed", "failed", "unknown"]),
    fields: Type.Array(
      Type.Object({
        index: Type.Integer({ minimum: 0 }),
        status: Type.Enum(["filled", "failed", "not_attempted", "unknown"]),
        error_code: Type.Optional(Type.Enum([...fillErrorCodes])),
      }),
    ),
  },
  { $id: "VaultFill" },
);
export type FillReply = Static<typeof FillReply>;

/** An operation answers the item, or what filling has come to. */
const OperatedReply = Type.Unsafe<VaultItemReply | FillReply>({
  $id: "VaultOperated",
  anyOf: [{ $ref: "VaultItem#" }, { $ref: "VaultFill#" }],
});

export const vaultComponents = [
  VaultReply,
  EncryptionKeyReply,
  VaultItemReply,
  VaultItemEventReply,
  FillReply,
  OperatedReply,
] as const;
