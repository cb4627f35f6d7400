import { noContent, onePage, type Operation, reply } from "./operation.js";

const audit = "Audit logs";
const destination = (description: string) => reply(200, "AuditLogExportDestination", description);

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
  listExportDestinations: {
    tag: audit,
    summary: "List where the audit log is delivered to, newest first",
    success: onePage("AuditLogExportDestination"),
  },
  createExportDestination: {
    tag: audit,
    summary: "Create an export destination; it is paused until it is made active",
    takesBody: true,
    success: reply(201, "AuditLogExportDestination", "The new destination"),
    failures: ["audit_unavailable", "limit_exceeded", "not_supported"],
  },
  getExportDestination: {
    tag: audit,
    summary: "Read an export destination, and how its delivery stands",
    success: destination("The destination"),
    failures: ["not_found"],
  },
  updateExportDestination: {
    tag: audit,
    summary: "Change an export destination; pause it, or have it delivered to from now on",
    takesBody: true,
    success: destination("The destination as it is now"),
    failures: ["audit_unavailable", "conflict", "not_found", "not_supported"],
  },
  deleteExportDestination: {
    tag: audit,
    summary: "Delete an export destination; an upload that is under way may still end",
    takesBody: true,
    success: noContent("Nothing more is delivered there"),
    failures: ["audit_unavailable", "not_found"],
  },
  testExportDestination: {
    tag: audit,
    summary: "Try an export destination: its role is assumed, and an object put and removed",
    takesBody: true,
    success: reply(200, "AuditLogExportDestinationTestResult", "How far the trial came, and why no further"),
    failures: ["not_found", "not_supported", "too_many_requests"],
  },
} as const satisfies Record<string, Operation>;
