import type { Extension } from "../../registry/extensions/extension.js";
import type { ExtensionReply } from "../schemas/replies.js";

/** An extension as docs/extensions-and-profiles.md#extensions has it. */
export const extensionView = ({
  id,
  name,
  digest,
  sizeBytes,
  createdAt,
  lastUsedAt,
}: Extension): ExtensionReply => ({
  id,
  ...(name !== undefined && { name }),
  created_at: new Date(createdAt).toISOString(),
  size_bytes: sizeBytes,
  checksum: digest,
  ...(lastUsedAt !== undefined && { last_used_at: new Date(lastUsedAt).toISOString() }),
});
