import type { Extension } from "../../registry/extensions/extension.js";
import type { ExtensionReply } from "../schemas/replies.js";

/** wire-facts.md 2.4. */
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
