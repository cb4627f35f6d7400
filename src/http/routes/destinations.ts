import {
  type Destination,
  DestinationCreate,
  type DestinationOperations,
  DestinationPatch,
  type Trial,
} from "../../audit/export/destination.js";
import { timestampOf } from "../../base/clock.js";
import { pageOf } from "../../spec/paging.js";
import type { App } from "../bare-app.js";
import { recordedFirst } from "../audit.js";
import { callerOf, principalOf } from "../admission/caller.js";
import { sendRefusal, sendRemoved } from "../errors.js";
import { pagingOf } from "../query.js";
import type { DestinationReply, DestinationTestReply } from "../schemas/audit-replies.js";
import { operations } from "../schemas/operations.js";
import { DestinationQuery, DestinationRefParams, NoFields } from "../schemas/requests.js";
import { pagingHeaders } from "../views/views.js";
import { checkReachOfLog } from "./audit.js";

interface Deps {
  readonly destinations: DestinationOperations;
}
const path = "/audit-logs/export/destinations";

/** docs/audit.md#export-destinations; they are the whole organization's, as the log is. */
export function addDestinations(app: App, deps: Deps): void {
  addReads(app, deps);
  addCreate(app, deps);
  addChanges(app, deps);
  addTest(app, deps);
}

function addReads(app: App, { destinations }: Deps): void {
  app.get(
    path,
    { schema: { ...operations.listExportDestinations, querystring: DestinationQuery } },
    async (request, reply) => {
      checkReachOfLog(principalOf(request));
      const asked = pagingOf(request.query);
      const page = pageOf(await destinations.all(), asked);
      const views = page.items.map((destination) => viewOf(destinations, destination));
      return reply.headers(pagingHeaders(page, asked)).send(views);
    },
  );

  app.get(
    `${path}/:id`,
    { schema: { ...operations.getExportDestination, params: DestinationRefParams } },
    async (request, reply) => {
      checkReachOfLog(principalOf(request));
      const got = await destinations.get(request.params.id);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(viewOf(destinations, got.value));
    },
  );
}

function addCreate(app: App, { destinations }: Deps): void {
  app.post(
    path,
    { ...recordedFirst, schema: { ...operations.createExportDestination, body: DestinationCreate } },
    async (request, reply) => {
      checkReachOfLog(principalOf(request));
      const got = await destinations.create(request.body);
      if (got.kind === "refused") return sendRefusal(reply, got);
      return reply.code(201).send(viewOf(destinations, got.value));
    },
  );
}

function addChanges(app: App, { destinations }: Deps): void {
  const params = DestinationRefParams;
  app.patch(
    `${path}/:id`,
    { ...recordedFirst, schema: { ...operations.updateExportDestination, params, body: DestinationPatch } },
    async (request, reply) => {
      checkReachOfLog(principalOf(request));
      const got = await destinations.update(request.params.id, request.body);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(viewOf(destinations, got.value));
    },
  );

  app.delete(
    `${path}/:id`,
    { ...recordedFirst, schema: { ...operations.deleteExportDestination, params, body: NoFields } },
    async (request, reply) => {
      checkReachOfLog(principalOf(request));
      const caller = callerOf(request, reply);
      return sendRemoved(reply, await destinations.remove(request.params.id, caller.request), caller);
    },
  );
}

function addTest(app: App, { destinations }: Deps): void {
  app.post(
    `${path}/:id/test`,
    { schema: { ...operations.testExportDestination, params: DestinationRefParams, body: NoFields } },
    async (request, reply) => {
      checkReachOfLog(principalOf(request));
      const got = await destinations.test(request.params.id);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(trialView(got.value));
    },
  );
}

function viewOf(
  { serviceRoleArn }: Pick<DestinationOperations, "serviceRoleArn">,
  destination: Destination,
): DestinationReply {
  const { kmsKeyId, lastError, lastErrorAt, cursor, lastSuccessAt, nextAttemptAt } = destination;
  return {
    id: destination.id,
    type: "s3",
    region: destination.region,
    bucket: destination.bucket,
    prefix: destination.prefix,
    role_arn: destination.roleArn,
    external_id: destination.externalId,
    service_role_arn: serviceRoleArn,
    format: "jsonl.gz",
    status: destination.status,
    consecutive_failures: destination.failures,
    created_at: timestampOf(destination.createdAt),
    updated_at: timestampOf(destination.updatedAt),
    ...(kmsKeyId !== undefined && { kms_key_id: kmsKeyId }),
    ...(lastError !== undefined && { last_error: lastError }),
    ...(lastErrorAt !== undefined && { last_error_at: timestampOf(lastErrorAt) }),
    ...(cursor !== undefined && { last_exported_cursor: Buffer.from(`1 ${cursor}`).toString("base64url") }),
    ...(lastSuccessAt !== undefined && { last_success_at: timestampOf(lastSuccessAt) }),
    ...(nextAttemptAt !== undefined && { next_attempt_at: timestampOf(nextAttemptAt) }),
  };
}

const trialView = (trial: Trial): DestinationTestReply =>
  trial.stage === "complete"
    ? { success: true, stage: trial.stage }
    : { success: false, stage: trial.stage, error: { code: `${trial.stage}_failed`, message: trial.why } };
