import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import Fastify, {
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerFactory,
  type preHandlerHookHandler,
} from "fastify";
import { errors } from "../base/errors.js";
import { securityHeaders } from "../base/net/security-headers.js";
import { wrongType } from "./body.js";
import type { HttpDeps } from "./deps.js";
import { refusalOfError, sendRefusal } from "./errors.js";
import { parseQuery } from "./query.js";
import { requestIdOf } from "./request-id.js";
import { pathOf } from "./request-path.js";

/** Fastify with our limits and refusals, before it has any route. */
export const makeBare = (deps: HttpDeps, serverFactory?: FastifyServerFactory) =>
  Fastify({
    genReqId: requestIdOf,
    // The default limit of 100 is shorter than a name; the longest URL the parser takes is the limit.
    routerOptions: { maxParamLength: 16_384, querystringParser: parseQuery },
    bodyLimit: smallBodyBytes,
    return503OnClosing: false,
    // What is malformed is answered below Fastify (sockets.ts).
    clientErrorHandler: () => {},
    // The hooks of such a request have not run: its URL could not be routed.
    frameworkErrors: (error, request, reply) =>
      fail(deps, error, {
        request,
        reply: reply.headers({ ...securityHeaders, "x-request-id": request.id }),
      }),
    ...(serverFactory && { serverFactory }),
  }).withTypeProvider<TypeBoxTypeProvider>();

/** The limit of bodies that carry no policy: 50 tags, 200 method names and a URL fit four times over. */
const smallBodyBytes = 256 * 1024;

export type App = ReturnType<typeof makeBare>;

/** Runs it after the hooks of all routes and before others of this one; other routes pay nothing for it. */
export function addPreHandler(
  route: { preHandler?: preHandlerHookHandler | preHandlerHookHandler[] | undefined },
  hook: preHandlerHookHandler,
): void {
  route.preHandler = [hook, ...[route.preHandler ?? []].flat()];
}

interface FastifyExchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Answers an error that was thrown, and logs it where the daemon is to blame. */
export function fail({ log }: HttpDeps, error: unknown, { request, reply }: FastifyExchange): FastifyReply {
  const told = refusalOfError(error);
  const refused = told.code === "unsupported_media_type" ? refusalOfError(wrongType(request)) : told;
  if (errors[refused.code].status >= 500) {
    const fields = {
      request: request.id,
      method: request.method,
      path: pathOf(request.url),
      code: refused.code,
      error,
    };
    if (refused.code === "internal") log.error(fields, "request failed");
    else log.warn(fields, "request refused");
  }
  return sendRefusal(reply, refused);
}
