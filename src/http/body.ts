import type { FastifyInstance } from "fastify";
import { InvalidInput } from "./invalid-input.js";

/** Deeper than any enterprise policy, and far from where serialising would exhaust the stack. */
const maxDepth = 64;

/**
 * The only content type there is. An empty body is `{}`, since clients send the header without one; every body is an object.
 * Depth is looked at only where the text is long enough for it.
 */
export function acceptJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>("application/json", { parseAs: "string" }, (request, text, done) => {
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
  return null;
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
