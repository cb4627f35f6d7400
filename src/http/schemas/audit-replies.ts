import { type Static, Type } from "typebox";

/** An entry as docs/audit.md#entries has it. */
export const AuditEntryReply = Type.Object(
  {
    timestamp: Type.String({ format: "date-time" }),
    auth_strategy: Type.Enum(["api_key", "dashboard", "oauth", "lease", "form", "none"]),
    user_id: Type.String(),
    email: Type.String(),
    status: Type.Integer(),
    method: Type.String(),
    path: Type.String({ description: "Without the query string" }),
    route: Type.String({ description: "The operation's path; empty where there is no such operation" }),
    domain: Type.String(),
    duration_ms: Type.Integer({ minimum: 0 }),
    client_ip: Type.String(),
    user_agent: Type.String(),
  },
  { $id: "AuditLogEntry" },
);

const Instant = Type.String({ format: "date-time" });
/** A destination as docs/audit.md#export-destinations has it. */
export const DestinationReply = Type.Object(
  {
    id: Type.String(),
    type: Type.Enum(["s3"]),
    region: Type.String(),
    bucket: Type.String(),
    prefix: Type.String(),
    role_arn: Type.String(),
    external_id: Type.String({ description: "The role's trust policy has to ask for it" }),
    service_role_arn: Type.String({ description: "Who assumes the role; empty where nobody does" }),
    format: Type.Enum(["jsonl.gz"]),
    status: Type.Enum(["active", "paused"]),
    consecutive_failures: Type.Integer({ minimum: 0 }),
    created_at: Instant,
    updated_at: Instant,
    kms_key_id: Type.Optional(Type.String()),
    last_error: Type.Optional(Type.String()),
    last_error_at: Type.Optional(Instant),
    last_exported_cursor: Type.Optional(
      Type.String({ description: "How far the delivery is; no page token, and none of a chunk" }),
    ),
    last_success_at: Type.Optional(Instant),
    next_attempt_at: Type.Optional(Instant),
  },
  { $id: "AuditLogExportDestination" },
);
export const DestinationTestReply = Type.Object(
  {
    success: Type.Boolean(),
    stage: Type.Enum(["assume_role", "put_object", "complete"]),
    error: Type.Optional(
      Type.Object({ code: Type.Enum(["assume_role_failed", "put_object_failed"]), message: Type.String() }),
    ),
  },
  { $id: "AuditLogExportDestinationTestResult" },
);
export type DestinationReply = Static<typeof DestinationReply>;
export type DestinationTestReply = Static<typeof DestinationTestReply>;
