import type { FastifyReply } from "fastify";
import { seesLimits } from "../access/organization-limits.js";
import type { Principal } from "../access/principal.js";
import { bearerOf } from "../base/crypto/bearer.js";
import { isExhausted } from "../base/errno.js";
import { type Detail, type Done, errors, RemudaError, type Refusal, refusal } from "../base/errors.js";
import type { Caller } from "../spec/caller.js";
import { InvalidInput } from "./invalid-input.js";

/** The flat body of every failure (docs/errors.md). */
interface ErrorBody {
  readonly code: string;
  readonly message: string;
  readonly details?: readonly Detail[];
  readonly inner_error?: Detail;
}

export const errorBody = (refused: Refusal): ErrorBody => ({
  code: refused.code,
  message: refused.message ?? errors[refused.code].message,
  ...(refused.details && { details: boundedDetails(refused.details) }),
});

/** A body of 256 KiB may have tens of thousands of faults, which would be answered by megabytes. */
const mostDetails = 100;
function boundedDetails(details: readonly Detail[]): readonly Detail[] {
  const left = details.length - mostDetails;
  if (left <= 0) return details;
  return [...details.slice(0, mostDetails), { code: "more", message: `${left} more are left out` }];
}

/** The headers a failure carries besides its body. */
export function errorHeaders(refused: Refusal): Record<string, string> {
  const { status, retry } = errors[refused.code];
  const headers: Record<string, string> = {};
  Object.assign(headers, retryHeaders(refused));
  // The headers are like those of a rate: nothing is left of what was asked for. More would tell what others
  // have.
  if (refused.reached)
    Object.assign(headers, {
      "x-ratelimit-limit": String(refused.reached.most),
      "x-ratelimit-remaining": "0",
    });
  if (!retry && isRepeatedByClients(status)) headers["x-should-retry"] = "false";
  // RFC 6750, 3.1.
  if (refused.code === "insufficient_scope")
    headers["www-authenticate"] = 'Bearer error="insufficient_scope"';
  if (status === 401) headers["www-authenticate"] = "Bearer";
  return headers;
}

/**
 * `retry-after-ms` is the official client's own header, which it prefers (docs/api.md#clients). It is spread,
 * since all who are refused at once would else come back at once, and all but one in vain.
 */
function retryHeaders({ code, retryAfterMs, retryAfterSeconds }: Refusal): Record<string, string> {
  if (retryAfterMs !== undefined) {
    const spreadMs = Math.random() * Math.max(retryAfterMs, leastSpreadMs);
    return {
      "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1000))),
      "retry-after-ms": String(Math.ceil(retryAfterMs + spreadMs)),
    };
  }
  const { status, retry } = errors[code];
  const seconds = retryAfterSeconds ?? (retry && asksForRetryAfter.has(status) ? 1 : undefined);
  return seconds === undefined ? {} : { "retry-after": String(Math.ceil(seconds)) };
}
const leastSpreadMs = 1000;

/** RFC 6750, 3.1: only who has shown a token is told that it is not valid. */
const challenge = (reply: FastifyReply, refused: Refusal): Record<string, string> =>
  errors[refused.code].status === 401 && bearerOf(reply.request.headers.authorization) !== undefined
    ? { "www-authenticate": 'Bearer error="invalid_token"' }
    : {};

export const sendRefusal = (reply: FastifyReply, refused: Refusal): FastifyReply =>
  reply.send(headedAs(reply, refused));

/** Makes an answer that was about to be sent one that refuses; gives its text. */
export function showRefusal(reply: FastifyReply, refused: Refusal): string {
  for (const header of ["content-length", "retry-after", "retry-after-ms", "x-should-retry"])
    reply.removeHeader(header);
  return JSON.stringify(headedAs(reply, refused));
}

/** Gives the body. */
function headedAs(reply: FastifyReply, refused: Refusal): ErrorBody {
  const told = toldTo(reply.request.principal, refused);
  // The type is set, since the reply may already have that of a stream which has failed.
  reply
    .code(errors[told.code].status)
    .headers({ ...errorHeaders(told), ...challenge(reply, told) })
    .type("application/json; charset=utf-8");
  return errorBody(told);
}

/** Who may not see the organization's limits is not told that one of them is reached, nor what it is. */
function toldTo(principal: Principal | undefined, refused: Refusal): Refusal {
  if (refused.reached?.of !== "organization" || !principal || seesLimits(principal)) return refused;
  const { reached: _reached, message: _message, ...rest } = refused;
  return rest;
}

/** Answers 204, or why the request is refused. */
export const sendDone = (reply: FastifyReply, got: Done<null> | Refusal): FastifyReply =>
  got.kind === "refused" ? sendRefusal(reply, got) : reply.code(204).send();

/**
 * The answer to a `DELETE`. A repeat whose first attempt was cut off finds nothing there any more, which is
 * what it asked for.
 */
export const sendRemoved = (
  reply: FastifyReply,
  got: Done<null> | Refusal,
  { retryCount }: Pick<Caller, "retryCount">,
): FastifyReply =>
  got.kind === "refused" && retryCount > 0 && errors[got.code].status === 404
    ? reply.code(204).send()
    : sendDone(reply, got);

/** Anything thrown, as the failure it is answered as. Nothing of an unexpected error's text goes out. */
export function refusalOfError(thrown: unknown): Refusal {
  if (thrown instanceof InvalidInput) return refusal("bad_request", { details: thrown.details });
  if (thrown instanceof RemudaError) return refusal(thrown.code, { message: thrown.message });
  const { code, statusCode } = partsOf(thrown);
  const known = typeof code === "string" ? frameworkErrors[code] : undefined;
  if (known) return known;
  if (isExhausted(thrown))
    return refusal("unavailable", {
      message: "This daemon has run out of disk space, descriptors or memory, or its disk fails",
    });
  const isCallersFault = typeof statusCode === "number" && statusCode >= 400 && statusCode < 500;
  return refusal(isCallersFault ? "bad_request" : "internal");
}

const asksForRetryAfter: ReadonlySet<number> = new Set([429, 503, 529]);
/** What the official client repeats by itself (docs/api.md#clients). */
const isRepeatedByClients = (status: number): boolean => status === 409 || status === 429 || status >= 500;

const partsOf = (thrown: unknown): { code?: unknown; statusCode?: unknown } =>
  typeof thrown === "object" && thrown !== null ? thrown : {};

const frameworkErrors: Readonly<Record<string, Refusal>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: refusal("unsupported_media_type", {
    message: "A body must be sent as application/json",
  }),
  FST_ERR_CTP_BODY_TOO_LARGE: refusal("body_too_large"),
  FST_ERR_CTP_INVALID_JSON_BODY: refusal("invalid_json"),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: refusal("bad_request", {
    message: "The body is not as long as Content-Length says",
  }),
  FST_ERR_BAD_URL: refusal("bad_request", { message: "The URL is not validly percent-encoded" }),
  FST_ERR_MAX_PARAM_LENGTH: refusal("not_found"),
} satisfies Record<string, Refusal>;
