import { onePage, type Operation } from "./operation.js";

const audit = "Audit logs";

/** What was done: entries of the audit log, by pages and in bulk. */
export const auditOperations = {
  listAuditLogs: {
    tag: audit,
    summary: "Search the audit log, newest first",
    success: onePage("AuditLogEntry"),
    failures: ["insufficient_scope", "archive_missing"],
  },
  exportAuditLogs: {
    tag: audit,
    summary: "Export the audit log chunk by chunk, newest first",
    success: [
      {
        status: 200,
        description: "JSON lines, of which the headers tell number and SHA-256",
        contentType: "application/octet-stream",
      },
    ],
    failures: ["insufficient_scope", "too_many_requests", "archive_missing"],
  },
} as const satisfies Record<string, Operation>;
