import { type Static, Type } from "typebox";
import { Policy } from "../../access/policy.js";

const Instant = Type.String({ format: "date-time" });
const Scope = Type.Object({ project_id: Type.Union([Type.String(), Type.Null()]) });
/** Who a key is (docs/api.md#operations). */
export const AuthContextReply = Type.Object(
  {
    authentication: Type.Object({
      method: Type.Enum(["api_key", "jwt"]),
      source: Type.Enum(["api_key", "oauth", "dashboard"]),
      credential_id: Type.Union([Type.String(), Type.Null()]),
    }),
    principal: Type.Object({ type: Type.Enum(["api_key", "user"]), id: Type.String() }),
    organization: Type.Object({ id: Type.String() }),
    authorization: Type.Object({ credential_scope: Scope, effective_scope: Scope }),
  },
  { $id: "AuthContext" },
);
const Nullable = {
  text: Type.Union([Type.String(), Type.Null()]),
  instant: Type.Union([Instant, Type.Null()]),
};
const apiKey = {
  id: Type.String(),
  name: Type.String(),
  created_at: Instant,
  created_by: Type.Object({
    id: Type.String(),
    email: Type.String({ format: "email" }),
    name: Nullable.text,
  }),
  expires_at: Nullable.instant,
  deleted_at: Nullable.instant,
  project_id: Nullable.text,
  project_name: Nullable.text,
  masked_key: Type.String(),
  policy: Type.Optional(Policy),
};
/** An API key as docs/access.md has it. */
export const ApiKeyReply = Type.Object(apiKey, { $id: "ApiKey" });
export const CreatedApiKeyReply = Type.Object(
  { ...apiKey, key: Type.String({ description: "The key itself: it is told this once" }) },
  { $id: "CreatedApiKey" },
);

/** A project as docs/projects.md has it. */
export const ProjectReply = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    status: Type.Enum(["active", "archived"]),
    created_at: Instant,
    updated_at: Instant,
  },
  { $id: "Project" },
);

export type ProjectReply = Static<typeof ProjectReply>;
export type ApiKeyReply = Static<typeof ApiKeyReply>;
export type AuthContextReply = Static<typeof AuthContextReply>;
