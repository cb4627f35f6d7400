import { timestampOf } from "../../base/clock.js";
import type { ProfileFacts } from "../../registry/profiles/selectors.js";
import type { ProfileReply } from "../schemas/replies.js";

/** A profile as docs/extensions-and-profiles.md#profiles has it. */
export const profileView = ({ id, name, createdAt, updatedAt, lastUsedAt }: ProfileFacts): ProfileReply => ({
  id,
  ...(name !== undefined && { name }),
  created_at: timestampOf(createdAt),
  ...(updatedAt !== undefined && { updated_at: timestampOf(updatedAt) }),
  ...(lastUsedAt !== undefined && { last_used_at: timestampOf(lastUsedAt) }),
});
