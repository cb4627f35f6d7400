import type { Millis } from "./clock.js";

/** One row per code: its status, whether a retry may help, and the text a person reads. */
interface ErrorKind {
  readonly status: number;
  readonly retry: boolean;
  readonly message: string;
}

/**
 * Every failure the API can answer (docs/errors.md). A code is stable; its message may be made
 * more exact. `retry: false` on a 409 sends `x-should-retry: false`, since the official client would repeat
 * it.
 */
export const errors = {
  bad_request: { status: 400, retry: false, message: "The request is not valid" },
  invalid_json: { status: 400, retry: false, message: "The body is not valid JSON" },
  unsupported_media_type: {
    status: 400,
    retry: false,
    message: "The body's content type is not accepted here",
  },
  body_too_large: { status: 400, retry: false, message: "The body is larger than is accepted" },
  not_supported: { status: 400, retry: false, message: "This needs something this deployment does not have" },
  pool_in_use: {
    status: 400,
    retry: false,
    message: "Browsers of the pool are leased; send force to end them",
  },
  resource_in_use: { status: 400, retry: false, message: "Something else names it" },
  egress_denied: {
    status: 400,
    retry: false,
    message: "The browser's network does not allow this destination",
  },
  idempotency_mismatch: {
    status: 400,
    retry: false,
    message: "The idempotency key was used with another body",
  },
  cannot_delete_current_key: {
    status: 400,
    retry: false,
    message: "A key cannot delete itself; use another one",
  },
  encryption_key_mismatch: {
    status: 400,
    retry: false,
    message: "The value was encrypted for another vault's key",
  },
  invalid_request: { status: 400, retry: false, message: "An encrypted value cannot be opened" },
  field_unavailable: { status: 400, retry: false, message: "The item has no value for this field" },
  unauthorized: {
    status: 401,
    retry: false,
    message: "The API key or token of the Authorization header is missing or not valid",
  },
  insufficient_scope: { status: 403, retry: false, message: "This credential may not do that" },
  insufficient_plan: { status: 403, retry: false, message: "No node of this deployment offers this" },
  destination_denied: {
    status: 403,
    retry: false,
    message: "The item may not be filled on this page, or in one of its frames",
  },
  limit_exceeded: { status: 403, retry: false, message: "A configured limit does not allow this" },
  not_found: { status: 404, retry: false, message: "There is no such thing" },
  route_not_found: { status: 404, retry: false, message: "There is no such operation" },
  pool_not_found: { status: 404, retry: false, message: "There is no such pool" },
  browser_not_found: { status: 404, retry: false, message: "There is no such browser" },
  node_not_found: { status: 404, retry: false, message: "There is no such node" },
  extension_not_found: { status: 404, retry: false, message: "There is no such extension" },
  profile_not_found: { status: 404, retry: false, message: "There is no such profile" },
  proxy_not_found: { status: 404, retry: false, message: "There is no such proxy" },
  otlp_destination_not_found: { status: 404, retry: false, message: "There is no such OTLP destination" },
  vault_not_found: { status: 404, retry: false, message: "There is no such vault" },
  vault_item_not_found: { status: 404, retry: false, message: "The vault has no such item" },
  projects_disabled: { status: 404, retry: false, message: "Projects are not enabled" },
  project_not_found: { status: 404, retry: false, message: "There is no such project" },
  method_not_allowed: { status: 404, retry: false, message: "There is no such operation on this path" },
  project_not_empty: { status: 409, retry: false, message: "The project still has something" },
  last_active_project: {
    status: 409,
    retry: false,
    message: "The default project, which is the last one there is, stays active",
  },
  name_taken: { status: 409, retry: false, message: "The name is in use" },
  otlp_destination_in_use: {
    status: 409,
    retry: false,
    message: "Pools or sessions export to this destination",
  },
  stale_network: {
    status: 409,
    retry: false,
    message: "The network configuration has changed since it was read",
  },
  stale_version: { status: 409, retry: false, message: "The item has changed since it was read" },
  item_mismatch: { status: 409, retry: false, message: "The key names another item than is meant" },
  item_exists: { status: 409, retry: false, message: "The key has an item of another specification" },
  operation_unavailable: {
    status: 409,
    retry: false,
    message: "The item does not offer this now: see its available_operations",
  },
  vault_not_attached: { status: 409, retry: false, message: "The browser was not created with this vault" },
  lease_ended: { status: 409, retry: false, message: "The lease this idempotency key was given is over" },
  lease_superseded: { status: 409, retry: false, message: "The browser is no longer held by that lease" },
  profile_loaded: {
    status: 409,
    retry: false,
    message: "The browser has a profile already; another goes only into a new one",
  },
  conflict: { status: 409, retry: true, message: "The resource was changed by others meanwhile" },
  browser_gone: { status: 410, retry: false, message: "The browser is gone" },
  pool_deleted: { status: 410, retry: false, message: "The pool was deleted" },
  secret_unreadable: {
    status: 422,
    retry: false,
    message: "What is kept encrypted cannot be opened with this deployment's encryption key",
  },
  misdirected: {
    status: 421,
    retry: false,
    message: "This daemon is not known by the name in the Host header",
  },
  rate_limit_exceeded: {
    status: 429,
    retry: true,
    message: "More requests have come than the configured rate allows",
  },
  too_many_waiters: {
    status: 429,
    retry: true,
    message: "Too many callers are waiting for a browser of this pool",
  },
  too_many_clients: {
    status: 429,
    retry: true,
    message: "As many clients are connected to the browser as may be",
  },
  too_many_requests: {
    status: 429,
    retry: true,
    message: "As much is in flight through this browser, or this daemon, as may be",
  },
  too_many_sessions: {
    status: 429,
    retry: true,
    message: "There are as many on-demand sessions as there may be",
  },
  internal: { status: 500, retry: true, message: "Something went wrong here" },
  archive_missing: {
    status: 500,
    retry: true,
    message: "An archive that the registry names is not in the store",
  },
  extension_failed: {
    status: 500,
    retry: true,
    message: "The extensions could not be loaded; the browser is as it was",
  },
  launch_failed: { status: 500, retry: true, message: "The browser could not be launched" },
  destination_failed: {
    status: 502,
    retry: true,
    message: "The destination could not be reached, or gave no whole answer",
  },
  node_unreachable: { status: 502, retry: true, message: "The browser's node cannot be reached" },
  unavailable: { status: 503, retry: true, message: "The service cannot answer now" },
  audit_unavailable: {
    status: 503,
    retry: true,
    message: "The audit log takes nothing now, and this may not be done unrecorded",
  },
  audit_unconfirmed: {
    status: 503,
    retry: false,
    message: "This was done, but the audit log did not confirm its entry in time: look before you ask again",
  },
  store_unavailable: { status: 503, retry: true, message: "The store cannot be reached" },
  draining: { status: 503, retry: true, message: "This daemon is stopping" },
  node_silent: { status: 503, retry: true, message: "The browser's node did not answer in time" },
  capacity_exhausted: { status: 529, retry: true, message: "No node has room for another browser" },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof errors;
const isErrorCode = (text: string): text is ErrorCode => Object.hasOwn(errors, text);
export const errorCodes = Object.keys(errors).filter(isErrorCode);

const rowOf = (code: ErrorCode): string => {
  const { status, retry, message } = errors[code];
  return `| \`${code}\` | ${status} | ${retry ? "yes" : "no"} | ${message} |`;
};

/** Every code the API answers, for docs/errors.md: a test holds the two equal. */
export const errorsTable = (): string =>
  [
    "| code | status | may a retry help | meaning |",
    "| --- | --- | --- | --- |",
    ...errorCodes.map(rowOf),
  ].join("\n");

/**
 * One of several faults (docs/errors.md). Its code is `invalid_input`, or one of the table.
 */
export interface Detail {
  readonly code: string;
  readonly message: string;
}

/** A limit of how many there may be at once, which is reached: whose it is, and how many it allows. */
interface ReachedCount {
  readonly of: "organization" | "project";
  readonly most: number;
}

/** A refusal is a result: nothing was changed, but for what docs/errors.md names. */
export interface Refusal {
  readonly kind: "refused";
  readonly code: ErrorCode;
  /** Replaces the table's message with a more exact one. */
  readonly message?: string;
  readonly details?: readonly Detail[];
  readonly retryAfterSeconds?: number;
  /** The same where it is known to the ms. */
  readonly retryAfterMs?: Millis;
  /** The message says whose limit it is. */
  readonly reached?: ReachedCount;
}

export const refusal = (code: ErrorCode, more: Omit<Refusal, "kind" | "code"> = {}): Refusal => ({
  kind: "refused",
  code,
  ...more,
});

export interface Done<Value> {
  readonly kind: "done";
  readonly value: Value;
}

export const done = <Value>(value: Value): Done<Value> => ({ kind: "done", value });

/** A broken promise with a code of the table: thrown, answered as that code. */
export class RemudaError extends Error {
  constructor(
    readonly code: ErrorCode,
    options: { message?: string; cause?: unknown } = {},
  ) {
    super(options.message ?? errors[code].message, { cause: options.cause });
    this.name = "RemudaError";
  }
}
