import type { Static } from "typebox";
import type { RateLimiter } from "../../access/rate-limiter.js";
import { SessionCreate, SessionPatch } from "../../spec/bodies.js";
import { CurlBody } from "../../spec/curl.js";
import type { SessionListQuery } from "../../spec/paging.js";
import type { App } from "../bare-app.js";
import { callerOf, type InProject } from "../admission/caller.js";
import { sendDone, sendRefusal } from "../errors.js";
import { pagingOf } from "../query.js";
import { limitedBy } from "../admission/rates.js";
import { parseSessionRef } from "../refs.js";
import { operations } from "../schemas/operations.js";
import { NoFields, SessionGetQuery, SessionQuery, SessionRef } from "../schemas/requests.js";
import { settleWithReply } from "../settle.js";
import { anySessionView, pagingHeaders, sessionView, type ViewContext } from "../views/views.js";

interface Deps {
  readonly inProject: InProject;
  readonly context: ViewContext;
  readonly policyBodyBytes: number;
  readonly creations?: RateLimiter | undefined;
}

export function addSessions(app: App, deps: Deps): void {
  addReads(app, deps);
  addWrites(app, deps);
  addRemoval(app, deps);
}

function addReads(app: App, { inProject, context }: Deps): void {
  app.get(
    "/browsers",
    { schema: { ...operations.listBrowsers, querystring: SessionQuery } },
    async (request, reply) => {
      const asked = { ...listQueryOf(request.query), ...pagingOf(request.query, request) };
      const page = await inProject(request).sessions.list(asked);
      return reply
        .headers(pagingHeaders(page, asked))
        .send(page.items.map((item) => anySessionView(item, context)));
    },
  );

  app.get(
    "/browsers/:id_or_name",
    { schema: { ...operations.getBrowser, params: SessionRef, querystring: SessionGetQuery } },
    async (request, reply) => {
      const { params, query } = request;
      const got = await inProject(request).sessions.get(parseSessionRef(params), {
        includeDeleted: query.include_deleted ?? false,
      });
      return got.kind === "refused"
        ? sendRefusal(reply, got)
        : reply.send(anySessionView(got.value, context));
    },
  );

  app.get(
    "/browsers/:id_or_name/flight_recording",
    { schema: { ...operations.getFlightRecording, params: SessionRef } },
    async (request, reply) => {
      const got = await inProject(request).sessions.recording(
        parseSessionRef(request.params),
        callerOf(request, reply),
      );
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(got.value);
    },
  );
}

function addWrites(app: App, { inProject, context, policyBodyBytes, creations }: Deps): void {
  app.post(
    "/browsers",
    {
      bodyLimit: policyBodyBytes,
      schema: { ...operations.createBrowser, body: SessionCreate },
      onRequest: limitedBy(creations, "creations"),
    },
    async (request, reply) => {
      const got = await inProject(request).sessions.create(request.body, callerOf(request, reply));
      if (got.kind === "refused") return sendRefusal(reply, got);
      settleWithReply(reply, got);
      return reply.send(sessionView(got.session, context));
    },
  );

  app.patch(
    "/browsers/:id_or_name",
    { schema: { ...operations.updateBrowser, params: SessionRef, body: SessionPatch } },
    async (request, reply) => {
      const got = await inProject(request).sessions.update(
        parseSessionRef(request.params),
        request.body,
        callerOf(request, reply),
      );
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(sessionView(got.value, context));
    },
  );

  app.post(
    "/browsers/:id_or_name/curl",
    {
      bodyLimit: policyBodyBytes,
      config: { audit: "started" },
      schema: { ...operations.curlBrowser, params: SessionRef, body: CurlBody },
    },
    async (request, reply) => {
      const got = await inProject(request).sessions.curl(
        parseSessionRef(request.params),
        request.body,
        callerOf(request, reply),
      );
      if (got.kind === "refused") return sendRefusal(reply, got);
      return reply.header("content-type", "application/json; charset=utf-8").send(got.value);
    },
  );
}

function addRemoval(app: App, { inProject }: Deps): void {
  app.delete(
    "/browsers/:id_or_name",
    {
      config: { removes: "browsers" },
      schema: { ...operations.deleteBrowser, params: SessionRef, body: NoFields },
    },
    async (request, reply) =>
      sendDone(
        reply,
        await inProject(request).sessions.remove(parseSessionRef(request.params), callerOf(request, reply)),
      ),
  );
}

function listQueryOf(query: Static<typeof SessionQuery>): SessionListQuery {
  const {
    include_deleted = false,
    status = include_deleted ? "all" : "active",
    query: text,
    tags,
    region,
  } = query;
  return {
    ...pagingOf(query),
    status,
    ...(text !== undefined && { query: text }),
    ...(tags !== undefined && { tags }),
    ...(region !== undefined && { region }),
  };
}
