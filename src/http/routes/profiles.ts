import type { Static } from "typebox";
import type { NamedQuery } from "../../registry/extensions/extension.js";
import type { App } from "../bare-app.js";
import { callerOf, type InProject } from "../admission/caller.js";
import { sendRefusal, sendRemoved } from "../errors.js";
import { pagingOf } from "../query.js";
import { profileView } from "../views/profile-view.js";
import { parseProfileRef } from "../refs.js";
import { operations } from "../schemas/operations.js";
import {
  NoFields,
  ProfileCreate,
  ProfileDownload,
  ProfilePatch,
  ProfileQuery,
  ProfileRefParams,
} from "../schemas/requests.js";
import { pagingHeaders } from "../views/views.js";

interface Deps {
  readonly inProject: InProject;
}

/** docs/extensions-and-profiles.md#profiles. */
export function addProfiles(app: App, deps: Deps): void {
  addReads(app, deps);
  addWrites(app, deps);
  addDownload(app, deps);
}

function addReads(app: App, { inProject }: Deps): void {
  app.get(
    "/profiles",
    { schema: { ...operations.listProfiles, querystring: ProfileQuery } },
    async (request, reply) => {
      const asked = { ...listQueryOf(request.query), ...pagingOf(request.query, request) };
      const page = await inProject(request).profiles.list(asked);
      return reply.headers(pagingHeaders(page, asked)).send(page.items.map(profileView));
    },
  );

  app.get(
    "/profiles/:id_or_name",
    { schema: { ...operations.getProfile, params: ProfileRefParams } },
    async (request, reply) => {
      const { params } = request;
      const got = await inProject(request).profiles.get(parseProfileRef(params));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(profileView(got.value));
    },
  );
}

function addWrites(app: App, { inProject }: Deps): void {
  app.post(
    "/profiles",
    { schema: { ...operations.createProfile, body: ProfileCreate } },
    async (request, reply) => {
      const { body } = request;
      const made = await inProject(request).profiles.create(body);
      return made.kind === "refused"
        ? sendRefusal(reply, made)
        : reply.code(201).send(profileView(made.value));
    },
  );

  app.patch(
    "/profiles/:id_or_name",
    { schema: { ...operations.updateProfile, params: ProfileRefParams, body: ProfilePatch } },
    async (request, reply) => {
      const { params, body } = request;
      const made = await inProject(request).profiles.rename(parseProfileRef(params), body.name);
      return made.kind === "refused" ? sendRefusal(reply, made) : reply.send(profileView(made.value));
    },
  );

  app.delete(
    "/profiles/:id_or_name",
    {
      config: { removes: "profiles" },
      schema: { ...operations.deleteProfile, params: ProfileRefParams, body: NoFields },
    },
    async (request, reply) => {
      const got = await inProject(request).profiles.remove(parseProfileRef(request.params));
      return sendRemoved(reply, got, callerOf(request, reply));
    },
  );
}

function addDownload(app: App, { inProject }: Deps): void {
  app.get(
    "/profiles/:id_or_name/download",
    {
      // The length is known only at the end: a HEAD would read all of it to throw it away.
      exposeHeadRoute: false,
      config: { audit: "started" },
      schema: { ...operations.downloadProfile, params: ProfileRefParams, querystring: ProfileDownload },
    },
    async (request, reply) => {
      const { params, query } = request;
      const got = await inProject(request).profiles.download(
        parseProfileRef(params),
        query.format === "tar" ? "tar" : "zstd",
      );
      if (got.kind === "refused") return sendRefusal(reply, got);
      if (!got.value) return reply.code(202).send();
      // The framework destroys the stream when the client goes away, and cuts the connection when the stream
      // fails.
      return reply.header("content-type", "application/octet-stream").send(got.value.bytes);
    },
  );
}

const listQueryOf = ({ limit, offset, name, query }: Static<typeof ProfileQuery>): NamedQuery => ({
  ...pagingOf({ limit, offset }),
  ...(name !== undefined && { name }),
  ...(query !== undefined && { query }),
});
