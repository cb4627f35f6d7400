import { timestampOf } from "../../base/clock.js";
import {
  type OtlpDestination,
  OtlpDestinationCreate,
  OtlpDestinationPatch,
} from "../../registry/destinations/destination.js";
import type { App } from "../bare-app.js";
import { recordedFirst } from "../audit.js";
import { callerOf, type InProject } from "../admission/caller.js";
import { sendRefusal, sendRemoved } from "../errors.js";
import { pagingOf } from "../query.js";
import { parseOtlpDestinationRef } from "../refs.js";
import { operations } from "../schemas/operations.js";
import { NoFields, OtlpDestinationQuery, OtlpDestinationRefParams } from "../schemas/requests.js";
import type { OtlpDestinationReply } from "../schemas/telemetry-replies.js";
import { pagingHeaders } from "../views/views.js";

interface Deps {
  readonly inProject: InProject;
}
const path = "/telemetry/destinations";
const params = OtlpDestinationRefParams;

/** docs/telemetry.md#destinations. */
export function addTelemetryDestinations(app: App, deps: Deps): void {
  addReads(app, deps);
  addWrites(app, deps);
}

function addReads(app: App, { inProject }: Deps): void {
  app.get(
    path,
    { schema: { ...operations.listTelemetryDestinations, querystring: OtlpDestinationQuery } },
    async (request, reply) => {
      const { name, query } = request.query;
      const asked = {
        ...pagingOf(request.query, request),
        ...(name !== undefined && { name }),
        ...(query !== undefined && { query }),
      };
      const page = await inProject(request).otlpDestinations.list(asked);
      return reply.headers(pagingHeaders(page, asked)).send(page.items.map(viewOf));
    },
  );

  app.get(
    `${path}/:id_or_name`,
    { schema: { ...operations.getTelemetryDestination, params } },
    async (request, reply) => {
      const ref = parseOtlpDestinationRef(request.params);
      const got = await inProject(request).otlpDestinations.get(ref);
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(viewOf(got.value));
    },
  );
}

function addWrites(app: App, { inProject }: Deps): void {
  app.post(
    path,
    { ...recordedFirst, schema: { ...operations.createTelemetryDestination, body: OtlpDestinationCreate } },
    async (request, reply) => {
      const made = await inProject(request).otlpDestinations.create(request.body);
      return made.kind === "refused" ? sendRefusal(reply, made) : reply.code(201).send(viewOf(made.value));
    },
  );

  app.patch(
    `${path}/:id_or_name`,
    {
      ...recordedFirst,
      schema: { ...operations.updateTelemetryDestination, params, body: OtlpDestinationPatch },
    },
    async (request, reply) => {
      const ref = parseOtlpDestinationRef(request.params);
      const made = await inProject(request).otlpDestinations.update(ref, request.body);
      return made.kind === "refused" ? sendRefusal(reply, made) : reply.send(viewOf(made.value));
    },
  );

  app.delete(
    `${path}/:id_or_name`,
    {
      config: { ...recordedFirst.config, removes: "otlpDestinations" },
      schema: { ...operations.deleteTelemetryDestination, params, body: NoFields },
    },
    async (request, reply) => {
      const got = await inProject(request).otlpDestinations.remove(parseOtlpDestinationRef(request.params));
      return sendRemoved(reply, got, callerOf(request, reply));
    },
  );
}

/** Shows of the headers only that they are there. */
function viewOf(destination: OtlpDestination): OtlpDestinationReply {
  const { failures, lastExportAt, lastErrorAt, lastError } = destination.health;
  return {
    id: destination.id,
    name: destination.name,
    endpoint: destination.endpoint,
    headers: Object.fromEntries(destination.headerNames.map((name) => [name, ""])),
    ...(destination.description !== undefined && { description: destination.description }),
    created_at: timestampOf(destination.createdAt),
    updated_at: timestampOf(destination.updatedAt),
    consecutive_failures: failures,
    ...(lastExportAt !== undefined && { last_export_at: timestampOf(lastExportAt) }),
    ...(lastError !== undefined && { last_error: lastError }),
    ...(lastErrorAt !== undefined && { last_error_at: timestampOf(lastErrorAt) }),
  };
}
