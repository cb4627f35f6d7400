import type { FastifyRequest } from "fastify";
import type { Paging } from "../spec/paging.js";

/**
 * Stands for a query string that is not validly percent-encoded: the router gives parsers no way to refuse.
 */
export const malformedQuery: Readonly<Record<string, never>> = Object.freeze({});

/**
 * `limit=5&tags[team]=a` gives `{ limit: "5", tags: { team: "a" } }` (docs/api.md#lists). A key given twice
 * becomes a list, which few schemas here accept.
 */
export function parseQuery(text: string): Record<string, unknown> {
  const query = emptyQuery();
  if (text === "") return query;
  try {
    for (const pair of text.split("&")) addPair(query, pair);
    return query;
  } catch (error) {
    if (error instanceof URIError) return malformedQuery;
    throw error;
  }
}

/** The object has no prototype, so that a key such as `__proto__` is only a key. */
const emptyQuery = (): Record<string, unknown> => Object.create(null) as Record<string, unknown>;

function addPair(query: Record<string, unknown>, pair: string): void {
  if (pair === "") return;
  const at = pair.indexOf("=");
  const key = decode(at < 0 ? pair : pair.slice(0, at));
  const value = at < 0 ? "" : decode(pair.slice(at + 1));
  const [, name, inner] = /^([^[\]]+)\[(.*)\]$/s.exec(key) ?? [];
  if (name === undefined || inner === undefined) return put(query, key, value);
  const map = typeof query[name] === "object" && !Array.isArray(query[name]) ? query[name] : undefined;
  if (query[name] !== undefined && !map) return put(query, name, value);
  query[name] = map ?? emptyQuery();
  put(query[name] as Record<string, unknown>, inner, value);
}

function put(map: Record<string, unknown>, key: string, value: string): void {
  const given = map[key];
  if (Array.isArray(given)) given.push(value);
  else map[key] = key in map ? [given, value] : value;
}

const decode = (text: string): string => decodeURIComponent(text.replaceAll("+", " "));

/** The defaults of docs/api.md#lists. */
export const pagingOf = (
  { limit = 20, offset = 0 }: PageQuery,
  { sees }: Pick<FastifyRequest, "sees"> = { sees: undefined },
): Paging => ({ limit, offset, ...(sees && { sees }) });

interface PageQuery {
  readonly limit?: number | undefined;
  readonly offset?: number | undefined;
}
