import type { Principal } from "./principal.js";
import { folded, type Page, pageOf } from "../spec/paging.js";
import type { ApiKey, ApiKeyListQuery } from "./api-key.js";
import type { ApiKeyPorts } from "./api-key-operations.js";

/**
 * One page of the keys that the caller may see. The plain list reads no more than its page; any other reads
 * all keys, a part at a time.
 */
export async function listKeys(
  { store, projects }: Pick<ApiKeyPorts, "store" | "projects">,
  query: ApiKeyListQuery,
  { credentialScope }: Principal,
): Promise<Page<ApiKey>> {
  const { name, query: text, sort_by, sort_direction, status } = query;
  const isFiltered = name !== undefined || text !== undefined || credentialScope !== null;
  if (!isFiltered && sort_by === "created_at" && sort_direction === "desc" && status === "active")
    return await store.page(query);
  const found: ApiKey[] = [];
  for await (const part of store.all()) {
    const seen = part.filter((key) => isInScope(key, credentialScope) && hasStatus(key, status));
    const asked = await Promise.all(seen.map((key) => isAsked(key, query, projects)));
    found.push(...seen.filter((_, at) => asked[at]));
  }
  return pageOf(found.toSorted(inOrder(query)), query);
}

const isInScope = ({ projectId }: ApiKey, scope: Principal["credentialScope"]): boolean =>
  scope === null || projectId === scope;

/** `active`: not deleted. A key that has expired is still listed. */
const hasStatus = ({ deletedAt }: ApiKey, status: ApiKeyListQuery["status"]): boolean =>
  status === "all" || (status === "deleted") === (deletedAt !== undefined);

/** `name` is the whole name; `query` a part of the name, the creator or the project, or how id or mask begin. */
async function isAsked(
  key: ApiKey,
  { name, query }: ApiKeyListQuery,
  projects: ApiKeyPorts["projects"],
): Promise<boolean> {
  if (name !== undefined && folded(key.name) !== folded(name)) return false;
  if (query === undefined || key.id.startsWith(query) || key.mask.startsWith(query)) return true;
  const { id, email, name: person } = key.createdBy;
  const project = key.projectId === undefined ? [] : [key.projectId, await projects.nameOf(key.projectId)];
  const wanted = folded(query);
  return [key.name, id, email, person, ...project].some((text) => text && folded(text).includes(wanted));
}

/** Keys that never expire come after all others; equal ones in the order in which they were made. */
function inOrder({ sort_by, sort_direction }: ApiKeyListQuery): (one: ApiKey, other: ApiKey) => number {
  const sign = sort_direction === "asc" ? 1 : -1;
  const rank = {
    created_at: (one: ApiKey, other: ApiKey) => one.createdAt - other.createdAt,
    name: (one: ApiKey, other: ApiKey) => compareTexts(folded(one.name), folded(other.name)),
    expires_at: (one: ApiKey, other: ApiKey) => compareEnds(one.expiresAt, other.expiresAt),
  }[sort_by];
  return (one, other) =>
    sign * (rank(one, other) || one.createdAt - other.createdAt || compareTexts(one.id, other.id));
}

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
const compareEnds = (one = Infinity, other = Infinity): number => (one === other ? 0 : one - other);
