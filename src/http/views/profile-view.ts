import type { ProfileFacts } from "../../registry/profiles/selectors.js";
import type { ProfileReply } from "../schemas/replies.js";

/** A profile as docs/extensions-and-profiles.md#profiles has it. */
export const profileView = ({ id, name, createdAt, updatedAt, lastUsedAt }: ProfileFacts): ProfileReply => ({
  id,
  ...(name !== undefined && { name }),
  created_at: new Date(createdAt).toISOString(),
  ...(updatedAt !== undefined && { updated_at: new Date(updatedAt).toISOString() }),
  ...(lastUsedAt !== undefined && { last_used_at: new Date(lastUsedAt).toISOString() }),
});
