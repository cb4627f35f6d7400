import type { ServerResponse } from "node:http";
import { type DeferredAdmission, type Principal, projectOfRequest } from "../../access/principal.js";
import type { FastifyReply, FastifyRequest } from "fastify";
import { RemudaError } from "../../base/errors.js";
import { findLeaseId, type LeaseId, type RequestId } from "../../base/ids.js";
import { findTrace, type TraceContext } from "../../base/trace-context.js";
import type { Caller, CapturingLease } from "../../spec/caller.js";
import type { HttpDeps, OperationsInProject } from "../deps.js";
import { InvalidInput } from "../invalid-input.js";
import { ownRequestId } from "../request-id.js";

/** Reads who asks and how from the headers; throws `InvalidInput` where one is malformed. */
export const callerOf = (request: FastifyRequest, reply: FastifyReply): Caller =>
  new HttpCaller(request, reply);

declare module "fastify" {
  interface FastifyRequest {
    /** Who it is from; undefined on open routes, and where nobody is known by its credential. */
    principal: Principal | undefined;
  }
}

/** The caller of a route that wants a credential. Throws on any other route: nobody is let in there. */
export function principalOf({ principal }: FastifyRequest): Principal {
  if (principal === undefined) throw new Error("a route without admission asked who its caller is");
  return principal;
}

/** Gives the operations of the project that a request is about. */
export type InProject = (request: FastifyRequest) => OperationsInProject;
export const makeInProject =
  ({ operationsIn }: Pick<HttpDeps, "operationsIn">): InProject =>
  (request) =>
    operationsIn(projectOfRequest(principalOf(request)));

/**
 * A class for its speed: an object literal with a getter has a hidden class of its own each time. Its signal
 * is made when first asked for, since most operations never wait.
 */
class HttpCaller implements Caller {
  readonly request: RequestId;
  readonly principal: Principal;
  readonly retryCount: number;
  declare readonly idempotencyKey?: string;
  declare readonly lease?: LeaseId;
  readonly #reply: FastifyReply;
  readonly #asked: FastifyRequest;
  #gone: AbortSignal | undefined;

  constructor(request: FastifyRequest, reply: FastifyReply) {
    const { headers, raw, id, body } = request;
    this.#reply = reply;
    this.#asked = request;
    this.request = ownRequestId(raw, id);
    this.principal = principalOf(request);
    this.retryCount = retryCountOf(headers["x-stainless-retry-count"]);
    const key = idempotencyKeyOf(headers["idempotency-key"]);
    if (key !== undefined) this.idempotencyKey = key;
    const lease = leaseOf(headers["x-remuda-lease-id"], body);
    if (lease !== undefined) this.lease = lease;
  }

  get gone(): AbortSignal {
    this.#gone ??= goneSignal(this.#reply.raw);
    return this.#gone;
  }

  get trace(): TraceContext | undefined {
    return findTrace(this.#asked.headers);
  }

  get admission(): DeferredAdmission | undefined {
    return this.#asked.deferred;
  }

  hasEnded(): Promise<boolean> | undefined {
    return this.#asked.open?.hasEnded();
  }

  concerns(lease: CapturingLease | Promise<CapturingLease>): void {
    this.#asked.tellAnswered(this.#reply, lease);
  }
}

/** Aborts when the connection closes before the reply ended. */
function goneSignal(raw: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => {
    if (!raw.writableEnded) controller.abort();
  };
  if (raw.destroyed) abort();
  else raw.once("close", abort);
  return controller.signal;
}

/** How many attempts of the same request its client says came before it. */
export const retryCountOf = (text: unknown): number =>
  typeof text === "string" && /^\d{1,3}$/.test(text) ? Number(text) : 0;

function idempotencyKeyOf(text: unknown): string | undefined {
  if (text === undefined) return undefined;
  if (typeof text === "string" && /^[\x21-\x7e]{1,255}$/.test(text)) return text;
  throw InvalidInput.of("Idempotency-Key", "must be 1 to 255 visible ASCII characters");
}

/** The header's, else the body's `lease_id` (release only). */
function leaseOf(header: unknown, body: unknown): LeaseId | undefined {
  const inHeader = header === undefined ? undefined : parseLease("X-Remuda-Lease-Id", header);
  const named = typeof body === "object" && body !== null && "lease_id" in body ? body.lease_id : undefined;
  const inBody = named === undefined ? undefined : parseLease("lease_id", named);
  if (inHeader !== undefined && inBody !== undefined && inHeader !== inBody) {
    throw InvalidInput.of("lease_id", "differs from X-Remuda-Lease-Id");
  }
  return inHeader ?? inBody;
}

function parseLease(where: string, text: unknown): LeaseId {
  const lease = typeof text === "string" ? findLeaseId(text) : undefined;
  if (lease === undefined)
    throw InvalidInput.of(where, "must be a lease id, 24 lower-case letters and digits");
  return lease;
}

/** Throws where its credential has ended while its body was read, which is whole by now. */
export async function judgeUpload({ open }: FastifyRequest): Promise<void> {
  if (await open?.hasEnded()) throw new RemudaError("unauthorized");
}
