import { createHash } from "node:crypto";
import type { Static } from "typebox";
import type { AuditFilter } from "../../audit/filter.js";
import type { AuditReader } from "../../audit/read-page.js";
import { entryView } from "../../audit/entry.js";
import type { Principal } from "../../access/principal.js";
import { RemudaError } from "../../base/errors.js";
import type { Millis } from "../../base/clock.js";
import type { App } from "../bare-app.js";
import { callerOf, principalOf } from "../admission/caller.js";
import { sendRefusal } from "../errors.js";
import { findInstant } from "../time.js";
import { InvalidInput } from "../invalid-input.js";
import { operations } from "../schemas/operations.js";
import { AuditChunkQuery, AuditQuery } from "../schemas/requests.js";

interface Deps {
  readonly auditLog: AuditReader;
}

/** docs/audit.md */
export function addAudit(app: App, deps: Deps): void {
  addList(app, deps);
  addChunks(app, deps);
}

function addList(app: App, { auditLog }: Deps): void {
  app.get(
    "/audit-logs",
    { schema: { ...operations.listAuditLogs, querystring: AuditQuery } },
    async (request, reply) => {
      checkReachOfLog(principalOf(request));
      const { query } = request;
      const { limit = 100, page_token: token } = query;
      const got = await auditLog.page({
        filter: filterOf(query),
        limit,
        gone: callerOf(request, reply).gone,
        ...(token && { token }),
      });
      if (got.kind === "refused") return sendRefusal(reply, got);
      const { entries, next } = got.value;
      return reply
        .headers({ "x-limit": limit, "x-has-more": String(next !== undefined) })
        .headers(next === undefined ? {} : { "x-next-page-token": next })
        .send(entries.map(entryView));
    },
  );
}

function addChunks(app: App, { auditLog }: Deps): void {
  app.get(
    "/audit-logs/export/chunk",
    // A HEAD would make the whole chunk to throw it away.
    {
      exposeHeadRoute: false,
      config: { audit: "started" },
      schema: { ...operations.exportAuditLogs, querystring: AuditChunkQuery },
    },
    async (request, reply) => {
      checkReachOfLog(principalOf(request));
      const { query } = request;
      const { limit = 50_000, cursor: token, format = "jsonl.gz" } = query;
      const filter = filterOf(query);
      const got = await auditLog.chunk({
        filter,
        limit,
        isPacked: format === "jsonl.gz",
        gone: callerOf(request, reply).gone,
        ...(token && { token }),
      });
      if (got.kind === "refused") return sendRefusal(reply, got);
      const { bytes, count, next } = got.value;
      return (
        reply
          .headers({ "x-has-more": String(next !== undefined), "x-row-count": count })
          .headers({ "x-content-sha256": createHash("sha256").update(bytes).digest("hex") })
          .headers(next === undefined ? {} : { "x-next-cursor": next })
          // Not as an encoding: a client would unpack it, and the sum is over the bytes as they are sent.
          .type("application/octet-stream")
          .send(bytes)
      );
    },
  );
}

/** The log is that of the whole organization. */
export function checkReachOfLog({ credentialScope }: Principal): void {
  if (credentialScope !== null)
    throw new RemudaError("insufficient_scope", { message: "The audit log is the whole organization's" });
}

type Query = Omit<Static<typeof AuditQuery>, "limit" | "page_token">;

const longestRangeMs: Millis = 30 * 24 * 3_600_000;

function filterOf(query: Query): AuditFilter {
  const start = instantOf("start", query.start);
  const end = instantOf("end", query.end);
  if (end <= start) throw InvalidInput.of("end", "must be after start");
  if (end - start > longestRangeMs) throw InvalidInput.of("end", "must be at most 30 days after start");
  const excludedMethods = listOf("exclude_method", query.exclude_method, 10);
  const searchUserIds = listOf("search_user_id", query.search_user_id, 100);
  return {
    start,
    end,
    ...(query.auth_strategy !== undefined && { authStrategy: query.auth_strategy }),
    ...(query.service && { service: query.service }),
    ...(query.method && { method: query.method.toUpperCase() }),
    ...(excludedMethods && { excludedMethods: excludedMethods.map((method) => method.toUpperCase()) }),
    ...(query.search && { search: query.search }),
    ...(searchUserIds && { searchUserIds }),
  };
}

function instantOf(field: string, text: string): Millis {
  const at = findInstant(text);
  if (at === undefined) throw InvalidInput.of(field, "must be an instant such as 2026-01-31T12:00:00Z");
  return at;
}

function listOf(field: string, text: string | undefined, most: number): readonly string[] | undefined {
  if (!text) return undefined;
  const values = text.split(",").filter((value) => value !== "");
  if (values.length > most) throw InvalidInput.of(field, `must have at most ${most} values`);
  return values.length === 0 ? undefined : values;
}
