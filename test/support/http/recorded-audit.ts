import type { Entry, Position } from "../../../src/audit/entry.js";
import type { AuditReader } from "../../../src/audit/read-page.js";
import { done } from "../../../src/base/errors.js";

const auditEntry: Entry = {
  position: "1700000000123-000004" as Position,
  at: 1_700_000_000_000,
  authStrategy: "api_key",
  userId: "root",
  email: "root@remuda.invalid",
  status: 200,
  method: "GET",
  path: "/browsers",
  route: "/browsers",
  domain: "127.0.0.1",
  durationMs: 3,
  clientIp: "127.0.0.1",
  userAgent: "Kernel/JS 0.84.0",
};

/** Reads of the audit log, as the other operations are recorded. */
export const recordedAudit = (
  run: <Result>(operation: string, args: readonly unknown[], usual: Result) => Promise<Result>,
): AuditReader => ({
  page: (...args) => run("auditLog.page", args, done({ entries: [auditEntry] })),
  chunk: (...args) => run("auditLog.chunk", args, done({ bytes: Buffer.from("{}\n"), count: 1 })),
});
