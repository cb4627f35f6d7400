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

const Amount = Type.Integer({ minimum: 0 });
const AmountOrNull = Type.Union([Amount, Type.Null()]);
/** The limits of the organization as docs/limits.md has them. */
export const OrganizationLimitsReply = Type.Object(
  {
    max_concurrent_sessions: AmountOrNull,
    default_project_max_concurrent_sessions: AmountOrNull,
    concurrent_sessions_used: AmountOrNull,
    concurrent_sessions_available: AmountOrNull,
    auth_connections_used: Amount,
    max_auth_connections: AmountOrNull,
    min_health_check_interval_seconds: Amount,
    vaults_used: Amount,
    max_vaults: AmountOrNull,
  },
  { $id: "OrganizationLimits" },
);
/** A project's own limits; `max_pooled_sessions` is always null, since pools count with all browsers. */
export const ProjectLimitsReply = Type.Object(
  {
    max_concurrent_sessions: AmountOrNull,
    max_concurrent_invocations: AmountOrNull,
    max_pooled_sessions: AmountOrNull,
  },
  { $id: "ProjectLimits" },
);
const Plan = Type.Enum(["FREE", "HOBBYIST", "START_UP", "ENTERPRISE"]);
export const EntitlementsReply = Type.Object(
  {
    plan: Type.Object({
      id: Plan,
      effective_id: Plan,
      status: Nullable.text,
      is_trialing: Type.Boolean(),
      trial_ends_at: Nullable.instant,
    }),
    limits: Type.Object({
      max_concurrent_browsers: AmountOrNull,
      max_concurrent_invocations: Amount,
      default_max_concurrent_invocations_per_app: Amount,
      max_vaults: AmountOrNull,
    }),
    features: Type.Record(Type.String(), Type.Object({ enabled: Type.Boolean() })),
  },
  { $id: "Entitlements" },
);

export type ProjectLimitsReply = Static<typeof ProjectLimitsReply>;
export type OrganizationLimitsReply = Static<typeof OrganizationLimitsReply>;
export type ApiKeyReply = Static<typeof ApiKeyReply>;
export type AuthContextReply = Static<typeof AuthContextReply>;
