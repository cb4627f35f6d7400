import type { Static } from "typebox";
import { type Clock, timestampOf } from "../../base/clock.js";
import type { Extension, NamedQuery } from "../../registry/extensions/extension.js";
import type { App } from "../bare-app.js";
import { callerOf, type InProject, judgeUpload } from "../admission/caller.js";
import type { UploadLimits } from "../deps.js";
import { sendRefusal, sendRemoved } from "../errors.js";
import { openUpload } from "../uploads/extension-upload.js";
import { readParts } from "../uploads/multipart.js";
import { pagingOf } from "../query.js";
import { parseExtensionRef } from "../refs.js";
import { operations } from "../schemas/operations.js";
import {
  ExtensionCreate,
  ExtensionQuery,
  ExtensionRefParams,
  NoFields,
  StoreQuery,
} from "../schemas/requests.js";
import type { ExtensionReply } from "../schemas/replies.js";
import { pagingHeaders } from "../views/views.js";

interface Deps {
  readonly inProject: InProject;
  readonly uploads: UploadLimits;
  readonly clock: Clock;
}

/** docs/extensions-and-profiles.md#extensions. */
export function addExtensions(app: App, deps: Deps): void {
  addReads(app, deps);
  addDownloads(app, deps);
  addRemove(app, deps);
  addUpload(app, deps);
}

function addReads(app: App, { inProject }: Deps): void {
  app.get(
    "/extensions",
    { schema: { ...operations.listExtensions, querystring: ExtensionQuery } },
    async (request, reply) => {
      const { query } = request;
      const asked = listQueryOf(query);
      const page = await inProject(request).extensions.list(asked);
      return reply.headers(pagingHeaders(page, asked)).send(page.items.map(extensionView));
    },
  );

  app.get(
    "/extensions/:id_or_name/metadata",
    { schema: { ...operations.getExtension, params: ExtensionRefParams } },
    async (request, reply) => {
      const { params } = request;
      const got = await inProject(request).extensions.get(parseExtensionRef(params));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(extensionView(got.value));
    },
  );
}

/** A HEAD would open what it then throws away. The framework destroys a stream when the client goes away. */
const streamed = { exposeHeadRoute: false, config: { audit: "started" } } as const;
const archiveHeaders = (sizeBytes: number) => ({
  "content-type": "application/octet-stream",
  "content-length": sizeBytes,
});

function addDownloads(app: App, { inProject }: Deps): void {
  app.get(
    "/extensions/:id_or_name",
    { ...streamed, schema: { ...operations.downloadExtension, params: ExtensionRefParams } },
    async (request, reply) => {
      const { params } = request;
      const got = await inProject(request).extensions.download(parseExtensionRef(params));
      if (got.kind === "refused") return sendRefusal(reply, got);
      return reply.headers(archiveHeaders(got.value.extension.sizeBytes)).send(got.value.bytes);
    },
  );

  app.get(
    "/extensions/from_chrome_store",
    { ...streamed, schema: { ...operations.downloadExtensionFromChromeStore, querystring: StoreQuery } },
    async (request, reply) => {
      const { url, os = "linux" } = request.query;
      const got = await inProject(request).extensions.fromStore({
        url,
        os,
        signal: callerOf(request, reply).gone,
      });
      if (got.kind === "refused") return sendRefusal(reply, got);
      return reply.headers(archiveHeaders(got.value.sizeBytes)).send(got.value.bytes);
    },
  );
}

function addRemove(app: App, { inProject }: Deps): void {
  app.delete(
    "/extensions/:id_or_name",
    {
      config: { removes: "extensions" },
      schema: { ...operations.deleteExtension, params: ExtensionRefParams, body: NoFields },
    },
    async (request, reply) => {
      const got = await inProject(request).extensions.remove(parseExtensionRef(request.params));
      return sendRemoved(reply, got, callerOf(request, reply));
    },
  );
}

/** A name and a file, and room for what is sent beside them by mistake, so that it can be told. */
const maxParts = 10;
const maxFieldBytes = 1024;

function addUpload(app: App, { inProject, uploads, clock }: Deps): void {
  app.post(
    "/extensions",
    {
      config: { takesMultipart: true, audit: "started" },
      schema: { ...operations.uploadExtension, consumes: ["multipart/form-data"], body: ExtensionCreate },
      // The body comes as it is read: its parts are checked one by one.
      validatorCompiler: () => () => true,
    },
    async (request, reply) => {
      const { maxFileBytes, stallMs, limitMs } = uploads;
      const parts = readParts(
        { request: request.raw, response: reply.raw },
        { maxParts, maxFieldBytes, maxFileBytes, stallMs, limitMs },
        clock,
      );
      try {
        const { file, name } = await openUpload(parts);
        const made = await inProject(request).extensions.create({
          file,
          // Asked for when the file is read; what comes after it is read here.
          name: async () => {
            const given = await name();
            await judgeUpload(request);
            return given;
          },
          signal: callerOf(request, reply).gone,
        });
        return made.kind === "refused"
          ? sendRefusal(reply, made)
          : reply.code(201).send(extensionView(made.value));
      } finally {
        await parts.return();
      }
    },
  );
}

const listQueryOf = ({ limit, offset, name, query }: Static<typeof ExtensionQuery>): NamedQuery => ({
  ...pagingOf({ limit, offset }),
  ...(name !== undefined && { name }),
  ...(query !== undefined && { query }),
});

/** An extension as docs/extensions-and-profiles.md#extensions has it. */
const extensionView = ({
  id,
  name,
  digest,
  sizeBytes,
  createdAt,
  lastUsedAt,
}: Extension): ExtensionReply => ({
  id,
  ...(name !== undefined && { name }),
  created_at: timestampOf(createdAt),
  size_bytes: sizeBytes,
  checksum: digest,
  ...(lastUsedAt !== undefined && { last_used_at: timestampOf(lastUsedAt) }),
});
