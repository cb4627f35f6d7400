import { Ajv, type ErrorObject, type ValidateFunction } from "ajv";
import type { FastifySchemaCompiler } from "fastify";
import { wordFaults } from "../spec/schema-faults.js";
import { credentialBounds } from "../vault/credentials/credential.js";
import { InvalidInput } from "./invalid-input.js";
import { malformedQuery } from "./query.js";

type ValidatedInput = { readonly value: unknown } | { readonly error: Error };

/** A body with more values than this may have too many faults to answer: then only the first is answered. */
const manyValues = 10_000;

/**
 * What fits is decided at the first fault; only a refused request is searched for all of them. Bodies are
 * taken as they are, queries are text and so are converted; nothing is ever removed.
 */
export function makeValidatorCompiler(): FastifySchemaCompiler<object> {
  // Unoptimised code is made three times as fast and checks no slower; still, each is made when first needed.
  const common = {
    strict: true,
    removeAdditional: false,
    useDefaults: false,
    code: { optimize: false },
  } as const;
  const first = new Ajv({ ...common, coerceTypes: false });
  const all = new Ajv({ ...common, coerceTypes: false, allErrors: true });
  const queries = new Ajv({ ...common, coerceTypes: true, allErrors: true });
  return ({ schema, httpPart }) => {
    if (httpPart === "body")
      return bodyCheck(
        once(() => first.compile(schema)),
        once(() => all.compile(schema)),
      );
    if (httpPart === "querystring") return queryCheck(once(() => queries.compile(schema)));
    return (value: unknown) => ({ value });
  };
}

type LazyValidator = () => ValidateFunction;

function bodyCheck(findFirst: LazyValidator, findAll: LazyValidator): (body: unknown) => ValidatedInput {
  return (sent) => {
    const fits = findFirst();
    // Fastify gives null where there was no body; a body that is null does not get this far.
    const body = sent ?? {};
    if (fits(body)) return { value: body };
    const search = hasMoreValues(body, manyValues) ? fits : findAll();
    search(body);
    return invalid(search.errors);
  };
}

const queryCheck =
  (check: LazyValidator) =>
  (query: object): ValidatedInput => {
    const fits = check();
    if (query === malformedQuery)
      return { error: InvalidInput.of("query", "is not validly percent-encoded") };
    const isFitting = fits(query);
    const endless = findEndless(query);
    if (endless !== undefined) return { error: InvalidInput.of(endless, "must be a whole number") };
    return isFitting ? { value: query } : invalid(fits.errors);
  };

/** Ajv converts `1e400` to Infinity and then holds no bound against it. */
const findEndless = (query: object): string | undefined =>
  Object.entries(query).find(([, value]) => value === Infinity || value === -Infinity)?.[0];

const vaultPatterns: ReadonlyMap<string, string> = new Map([
  [credentialBounds.fieldName, "must be a letter and up to 63 letters, digits and underscores after it"],
]);

function invalid(found: readonly ErrorObject[] | null | undefined): ValidatedInput {
  const messages = wordFaults(found ?? [], vaultPatterns).map(
    ({ path, words }) => `${path || "body"}: ${words}`,
  );
  const details = [...new Set(messages)].map((message) => ({ code: "invalid_input" as const, message }));
  return { error: new InvalidInput(details) };
}

function hasMoreValues(root: unknown, limit: number): boolean {
  const waiting = [root];
  for (let seen = 0; waiting.length > 0; seen += 1) {
    if (seen + waiting.length > limit) return true;
    const next = waiting.pop();
    if (typeof next === "object" && next !== null) pushAll(waiting, Object.values(next));
  }
  return false;
}

/** `push(...values)` would put a million arguments on the stack. */
function pushAll(list: unknown[], values: readonly unknown[]): void {
  for (const value of values) list.push(value);
}

function once<Value>(make: () => Value): () => Value {
  let made: Value | undefined;
  return () => (made ??= make());
}
