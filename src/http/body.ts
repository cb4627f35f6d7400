import type { FastifyInstance, FastifyRequest } from "fastify";
import { RemudaError } from "../base/errors.js";
import { InvalidInput } from "./invalid-input.js";

/** Deeper than any enterprise policy, and far from where serialising would exhaust the stack. */
const maxDepth = 64;

declare module "fastify" {
  interface FastifyContextConfig {
    /** The route reads a `multipart/form-data` body itself (multipart.ts), and takes no other. */
    takesMultipart?: boolean;
  }
}

/** Bodies are JSON, but for those of routes that say otherwise: there is no other content type. */
export function acceptBodies(app: FastifyInstance): void {
  acceptJson(app);
  app.addContentTypeParser("multipart/form-data", (request, _payload, done) => {
    done(request.is404 || takesMultipart(request) ? null : wrongType(request), undefined);
  });
}

const takesMultipart = ({ routeOptions }: FastifyRequest): boolean =>
  routeOptions.config.takesMultipart === true;

/** Names the content type that the route takes. */
export const wrongType = (request: FastifyRequest): RemudaError =>
  new RemudaError("unsupported_media_type", {
    message: `A body must be sent as ${takesMultipart(request) ? "multipart/form-data" : "application/json"}`,
  });

/**
 * An empty body is `{}`, since clients send the header without one; every body is an object. Depth is looked
 * at only where the text is long enough for it.
 */
function acceptJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, text, done) => {
    if (takesMultipart(request)) return done(wrongType(request));
    if (text === "") return done(null, {});
    parse(request, text, (fault, value) => done(fault ?? faultOf(text, value), value));
  });
}

function faultOf(text: string, value: unknown): Error | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return InvalidInput.of("body", "must be an object");
  }
  if (text.length > 2 * maxDepth && isDeeper(value, maxDepth)) {
    return InvalidInput.of("body", `must not be nested deeper than ${maxDepth} levels`);
  }
  // Looked for only where it can be: text in UTF-8 has none.
  if (surrogateEscape.test(text) && hasHalf(value)) {
    return InvalidInput.of("body", "must not have half of a surrogate pair");
  }
  return null;
}

const surrogateEscape = /\\u[dD][89a-fA-F]/;
const half = /\p{Surrogate}/u;

/** Half of a pair is no character, and other readers of JSON, Redis among them, refuse it (RFC 8259, 8.2). */
function hasHalf(value: unknown): boolean {
  if (typeof value === "string") return half.test(value);
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(([key, inner]) => half.test(key) || hasHalf(inner));
}

function isDeeper(root: object, limit: number): boolean {
  let level: object[] = [root];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth >= limit) return true;
    level = level.flatMap(nested);
  }
  return false;
}

const nested = (value: object): object[] =>
  Object.values(value).filter((inner): inner is object => typeof inner === "object" && inner !== null);
