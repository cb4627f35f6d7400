import { Type } from "typebox";

/** An entry as docs/audit.md#entries has it. */
export const AuditEntryReply = Type.Object(
  {
    timestamp: Type.String({ format: "date-time" }),
    auth_strategy: Type.Enum(["api_key", "dashboard", "oauth", "lease", "none"]),
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
