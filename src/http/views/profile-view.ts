import type { ProfileFacts } from "../../registry/profiles/selectors.js";
import type { ProfileReply } from "../schemas/replies.js";

/** wire-facts.md 2.5. */
export const profileView = ({ id, name, createdAt, updatedAt, lastUsedAt }: ProfileFacts): ProfileReply => ({
  id,
  ...(name !== undefined && { name }),
  created_at: new Date(createdAt).toISOString(),
  ...(updatedAt !== undefined && { updated_at: new Date(updatedAt).toISOString() }),
  ...(lastUsedAt !== undefined && { last_used_at: new Date(lastUsedAt).toISOString() }),
});
