import type { Entry, Position } from "../../../src/audit/entry.js";
import type { AuditReader } from "../../../src/audit/read-page.js";
import type {
  Destination,
  DestinationCreate,
  DestinationOperations,
} from "../../../src/audit/export/destination.js";
import { done } from "../../../src/base/errors.js";
import type { DestinationId } from "../../../src/base/ids.js";

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

export const roleArn = "arn:aws:iam::123456789012:role/logs";
export const serviceRoleArn = "arn:aws:iam::210987654321:role/remuda";
export const destinationBody = (over: Partial<DestinationCreate> = {}): DestinationCreate => ({
  type: "s3",
  format: "jsonl.gz",
  region: "us-east-1",
  bucket: "archives",
  prefix: "remuda",
  role_arn: roleArn,
  ...over,
});

export const destination: Destination = {
  id: "destinationdestination01" as DestinationId,
  region: "us-east-1",
  bucket: "logs",
  prefix: "remuda",
  roleArn,
  externalId: "x".repeat(32),
  status: "paused",
  revision: 1,
  createdAt: 1_700_000_000_000,
  updatedAt: 1_700_000_001_000,
  failures: 0,
};

type Run = <Result>(operation: string, args: readonly unknown[], usual: Result) => Promise<Result>;

export const recordedDestinations = (run: Run): DestinationOperations => ({
  create: (...args) => run("destinations.create", args, done(destination)),
  all: (...args) => run("destinations.all", args, [destination]),
  get: (...args) => run("destinations.get", args, done(destination)),
  update: (...args) => run("destinations.update", args, done(destination)),
  remove: (...args) => run("destinations.remove", args, done(null)),
  test: (...args) => run("destinations.test", args, done({ stage: "complete" })),
  serviceRoleArn,
});

/** Reads of the audit log, as the other operations are recorded. */
export const recordedAudit = (run: Run): AuditReader => ({
  page: (...args) => run("auditLog.page", args, done({ entries: [auditEntry] })),
  chunk: (...args) => run("auditLog.chunk", args, done({ bytes: Buffer.from("{}\n"), count: 1 })),
});
