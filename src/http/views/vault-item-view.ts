import { timestampOf } from "../../base/clock.js";
import type { FillOutcome } from "../../vault/fill.js";
import type { ItemEvent } from "../../vault/item.js";
import type { ShownItem } from "../../vault/shown-item.js";
import { operationName, providerName, type WireNames } from "../../vault/wire-names.js";
import type { FillReply, VaultItemEventReply, VaultItemReply } from "../schemas/vault-replies.js";

/** An item as docs/vault.md#items has it. */
export function itemView(
  { item, status, fields, operations, collect }: ShownItem,
  names: WireNames,
): VaultItemReply {
  const { description, fields: definitions, allowedOrigins } = item.spec;
  const provider = providerName("native", names);
  return {
    id: item.id,
    key: item.key,
    type: "credential",
    version: item.version,
    spec: {
      provider,
      ...(description !== "" && { description }),
      fields: [...definitions],
      ...(allowedOrigins.length > 0 && { allowed_origins: [...allowedOrigins] }),
    },
    state: {
      provider,
      status,
      // A field may be called as what every object has.
      fields: Object.fromEntries(
        fields.map(({ name, hasValue, value }) => [
          name,
          { has_value: hasValue, ...(value !== undefined && { value }) },
        ]),
      ),
    },
    available_operations: operations.map(({ type, description: text }) => ({
      type: operationName(type, names),
      description: text,
    })),
    available_expansions: [],
    ...(collect && {
      action: { name: "collect", url: collect.url, expires_at: timestampOf(collect.expiresAt) },
    }),
    created_at: timestampOf(item.createdAt),
    updated_at: timestampOf(item.updatedAt),
  };
}

export const eventView = ({ id, createdAt, name, browserId, data }: ItemEvent): VaultItemEventReply => ({
  id,
  created_at: timestampOf(createdAt),
  name,
  ...(browserId !== undefined && { browser_id: browserId }),
  ...(data && { data: { ...data } }),
});

export const fillView = ({ status, fields }: FillOutcome): FillReply => ({
  type: "fill",
  status,
  fields: fields.map(({ index, status: of, errorCode }) => ({
    index,
    status: of,
    ...(errorCode && { error_code: errorCode }),
  })),
});
