import {
  ApiKeyCreate,
  type ApiKeyOperations,
  ApiKeyPatch,
  ApiKeyRotate,
  type IssuedKey,
  type ShownKey,
} from "../../access/api-key.js";
import { type Millis, timestampOf } from "../../base/clock.js";
import type { App } from "../bare-app.js";
import { recordedFirst } from "../audit.js";
import { callerOf, principalOf } from "../admission/caller.js";
import { sendRefusal, sendRemoved } from "../errors.js";
import { pagingOf } from "../query.js";
import { operations } from "../schemas/operations.js";
import type { ApiKeyReply } from "../schemas/access-replies.js";
import { ApiKeyGetQuery, ApiKeyQuery, ApiKeyRefParams, NoFields } from "../schemas/requests.js";
import { pagingHeaders } from "../views/views.js";

interface Deps {
  readonly apiKeys: ApiKeyOperations;
}

/** docs/access.md#api-keys; keys go by their ids only. */
export function addApiKeys(app: App, deps: Deps): void {
  addReads(app, deps);
  addIssues(app, deps);
  addChanges(app, deps);
}

function addReads(app: App, { apiKeys }: Deps): void {
  app.get(
    "/org/api_keys",
    { schema: { ...operations.listApiKeys, querystring: ApiKeyQuery } },
    async (request, reply) => {
      const { include_deleted: withDeleted, sort_by, sort_direction, status, ...query } = request.query;
      const asked = {
        ...query,
        ...pagingOf(query),
        sort_by: sort_by ?? "created_at",
        sort_direction: sort_direction ?? "desc",
        status: withDeleted === true ? "all" : (status ?? "active"),
      } as const;
      const { principal, gone } = callerOf(request, reply);
      const got = await apiKeys.list(asked, principal, gone);
      if (got.kind === "refused") return sendRefusal(reply, got);
      return reply.headers(pagingHeaders(got.value, asked)).send(got.value.items.map(apiKeyView));
    },
  );

  app.get(
    "/org/api_keys/:id",
    { schema: { ...operations.getApiKey, params: ApiKeyRefParams, querystring: ApiKeyGetQuery } },
    async (request, reply) => {
      const withDeleted = request.query.include_deleted === true;
      const how = { withDeleted, principal: principalOf(request) };
      const got = await apiKeys.get(request.params.id, how);
      if (got.kind === "refused") return sendRefusal(reply, got);
      const { lastUsedAt } = got.value;
      if (lastUsedAt !== undefined) reply.header("x-remuda-last-used-at", timestampOf(lastUsedAt));
      return reply.send(apiKeyView(got.value));
    },
  );
}

/** Replies with a key's text are kept by no cache (RFC 9111, 5.2.2.5). */
const unkept = { "cache-control": "no-store" } as const;

function addIssues(app: App, { apiKeys }: Deps): void {
  app.post(
    "/org/api_keys",
    { ...recordedFirst, schema: { ...operations.createApiKey, body: ApiKeyCreate } },
    async (request, reply) => {
      const got = await apiKeys.create(request.body, callerOf(request, reply));
      if (got.kind === "refused") return sendRefusal(reply, got);
      return reply.code(201).headers(unkept).send(issuedView(got.value));
    },
  );

  app.post(
    "/org/api_keys/:id/rotate",
    {
      config: { ...recordedFirst.config, mayEndItsKey: true },
      schema: { ...operations.rotateApiKey, params: ApiKeyRefParams, body: ApiKeyRotate },
    },
    async (request, reply) => {
      const got = await apiKeys.rotate(request.params.id, request.body, callerOf(request, reply));
      if (got.kind === "refused") return sendRefusal(reply, got);
      return reply.code(201).headers(unkept).send(issuedView(got.value));
    },
  );
}

function addChanges(app: App, { apiKeys }: Deps): void {
  app.patch(
    "/org/api_keys/:id",
    { ...recordedFirst, schema: { ...operations.renameApiKey, params: ApiKeyRefParams, body: ApiKeyPatch } },
    async (request, reply) => {
      const got = await apiKeys.rename(request.params.id, request.body, principalOf(request));
      return got.kind === "refused" ? sendRefusal(reply, got) : reply.send(apiKeyView(got.value));
    },
  );

  app.delete(
    "/org/api_keys/:id",
    { ...recordedFirst, schema: { ...operations.deleteApiKey, params: ApiKeyRefParams, body: NoFields } },
    async (request, reply) => {
      const caller = callerOf(request, reply);
      return sendRemoved(reply, await apiKeys.remove(request.params.id, caller), caller);
    },
  );
}

const timestampOrNull = (at: Millis | undefined): string | null =>
  at === undefined ? null : timestampOf(at);

/** An API key as docs/access.md has it: of its text only the mask. */
const apiKeyView = ({ key, projectName }: ShownKey): ApiKeyReply => ({
  id: key.id,
  name: key.name,
  created_at: timestampOf(key.createdAt),
  created_by: { id: key.createdBy.id, email: key.createdBy.email, name: key.createdBy.name },
  expires_at: timestampOrNull(key.expiresAt),
  deleted_at: timestampOrNull(key.deletedAt),
  project_id: key.projectId ?? null,
  project_name: projectName,
  masked_key: key.mask,
  ...(key.policy && { policy: key.policy }),
});

const issuedView = (issued: IssuedKey): ApiKeyReply & { key: string } => ({
  ...apiKeyView(issued),
  key: issued.text.reveal(),
});
