import { timestampOf } from "../../base/clock.js";
import { type ProjectLimits, ProjectLimitsPatch } from "../../access/project-limits.js";
import { type Project, ProjectCreate, type ProjectOperations, ProjectPatch } from "../../access/project.js";
import { refusal } from "../../base/errors.js";
import type { App } from "../bare-app.js";
import { recordedFirst } from "../audit.js";
import { callerOf, principalOf } from "../admission/caller.js";
import { sendRefusal, sendRemoved } from "../errors.js";
import { pagingOf } from "../query.js";
import type { ProjectLimitsReply, ProjectReply } from "../schemas/access-replies.js";
import { operations } from "../schemas/operations.js";
import { NoFields, ProjectQuery, ProjectRefParams } from "../schemas/requests.js";
import { pagingHeaders } from "../views/views.js";

interface Deps {
  /** Undefined where projects are not enabled. */
  readonly projects: ProjectOperations | undefined;
}

/** docs/projects.md. The paths without `/org` are those of older clients. */
export function addProjects(app: App, { projects }: Deps): void {
  if (projects === undefined) return addDisabled(app);
  addAt(app, { projects, path: "/org/projects" });
  addAt(app, { projects, path: "/projects", hide: true });
}

interface ProjectRoutes {
  readonly projects: ProjectOperations;
  readonly path: "/org/projects" | "/projects";
  /** Whether the OpenAPI document says nothing of it. */
  readonly hide?: boolean;
}

function addAt(app: App, routes: ProjectRoutes): void {
  addReads(app, routes);
  addWrites(app, routes);
  addLimitsAt(app, routes);
}

function addReads(app: App, { projects, path, hide = false }: ProjectRoutes): void {
  app.get(
    path,
    { schema: { ...operations.listProjects, hide, querystring: ProjectQuery } },
    async (request, reply) => {
      const asked = { ...request.query, ...pagingOf(request.query) };
      const page = await projects.list(asked, principalOf(request));
      return reply.headers(pagingHeaders(page, asked)).send(page.items.map(projectView));
    },
  );

  app.get(
    `${path}/:id`,
    { schema: { ...operations.getProject, hide, params: ProjectRefParams } },
    async (request, reply) => {
      const got = await projects.get(request.params.id, principalOf(request));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(projectView(got.value));
    },
  );
}

function addWrites(app: App, { projects, path, hide = false }: ProjectRoutes): void {
  app.post(
    path,
    { ...recordedFirst, schema: { ...operations.createProject, hide, body: ProjectCreate } },
    async (request, reply) => {
      const made = await projects.create(request.body, principalOf(request));
      return made.kind === "refused"
        ? sendRefusal(reply, made)
        : reply.code(201).send(projectView(made.value));
    },
  );

  app.patch(
    `${path}/:id`,
    {
      config: { ...recordedFirst.config, mayCloseProjects: true },
      schema: { ...operations.updateProject, hide, params: ProjectRefParams, body: ProjectPatch },
    },
    async (request, reply) => {
      const got = await projects.update(request.params.id, request.body, principalOf(request));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(projectView(got.value));
    },
  );

  app.delete(
    `${path}/:id`,
    {
      config: { ...recordedFirst.config, removes: "projects", mayCloseProjects: true },
      schema: { ...operations.deleteProject, hide, params: ProjectRefParams, body: NoFields },
    },
    async (request, reply) => {
      const got = await projects.remove(request.params.id, principalOf(request));
      return sendRemoved(reply, got, callerOf(request, reply));
    },
  );
}

/** docs/limits.md#of-one-project */
function addLimitsAt(app: App, { projects, path, hide = false }: ProjectRoutes): void {
  app.get(
    `${path}/:id/limits`,
    { schema: { ...operations.getProjectLimits, hide, params: ProjectRefParams } },
    async (request, reply) => {
      const got = await projects.limits(request.params.id, principalOf(request));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(limitsView(got.value));
    },
  );

  app.patch(
    `${path}/:id/limits`,
    {
      ...recordedFirst,
      schema: { ...operations.updateProjectLimits, hide, params: ProjectRefParams, body: ProjectLimitsPatch },
    },
    async (request, reply) => {
      const got = await projects.updateLimits(request.params.id, request.body, principalOf(request));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(limitsView(got.value));
    },
  );
}

/** Apps are not built, and pools count with all other browsers. */
const limitsView = ({ concurrentSessions }: ProjectLimits): ProjectLimitsReply => ({
  max_concurrent_sessions: concurrentSessions,
  max_concurrent_invocations: null,
  max_pooled_sessions: null,
});

/**
 * Where projects are not enabled there are none, whatever is asked of them: the document has no operations.
 */
function addDisabled(app: App): void {
  for (const url of ["/org/projects", "/org/projects/*", "/projects", "/projects/*"]) {
    app.route({
      method: ["GET", "POST", "PUT", "PATCH", "DELETE"],
      url,
      config: { isForEverybody: true },
      schema: { hide: true },
      // Before the body is looked at, so that no body changes the answer.
      onRequest: async (_request, reply) => sendRefusal(reply, refusal("projects_disabled")),
      handler: (_request, reply) => sendRefusal(reply, refusal("projects_disabled")),
    });
  }
}

/** A project as docs/projects.md has it. */
const projectView = ({ id, name, status, createdAt, updatedAt }: Project): ProjectReply => ({
  id,
  name,
  status,
  created_at: timestampOf(createdAt),
  updated_at: timestampOf(updatedAt),
});
