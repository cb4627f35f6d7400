import type { Principal } from "./principal.js";
import { folded, type Page, pageOf } from "../spec/paging.js";
import type { ApiKey, ApiKeyListQuery, KeyScope } from "./api-key.js";
import type { ApiKeyPorts } from "./api-key-operations.js";

/**
 * One page of the keys that the caller may see. The plain list reads no more than its page; a search reads keys
 * of the caller's scope, a part at a time, until it has the page or there are no more.
 */
export async function listKeys(
  { store, projects }: Pick<ApiKeyPorts, "store" | "projects">,
  query: ApiKeyListQuery,
  { credentialScope }: Principal,
): Promise<Page<ApiKey>> {
  const { name, query: text, limit, offset, status } = query;
  const isInReadOrder =
    query.sort_by === "created_at" && query.sort_direction === "desc" && status === "active";
  if (name === undefined && text === undefined && isInReadOrder)
    return await store.page(query, credentialScope);
  const isWanted = makeIsAsked(query, projects);
  // One more than the page needs tells whether there are more.
  const most = offset + limit + 1;
  let found: readonly ApiKey[] = [];
  for await (const part of eachOf(store, credentialScope, status)) {
    const wanted = await Promise.all(part.map((key) => hasStatus(key, status) && isWanted(key)));
    const all = [...found, ...part.filter((_, at) => wanted[at])];
    found = all.toSorted(inOrder(query)).slice(0, most);
    if (isInReadOrder && found.length === most) break;
  }
  return pageOf(found, query);
}

async function* eachOf(
  store: ApiKeyPorts["store"],
  scope: KeyScope,
  status: ApiKeyListQuery["status"],
): AsyncGenerator<readonly ApiKey[]> {
  const seen = new Set<string>();
  const isNew = ({ id }: ApiKey): boolean => seen.size < seen.add(id).size;
  for (const state of ["living", "deleted"] as const) {
    if (status === (state === "living" ? "deleted" : "active")) continue;
    for await (const part of store.each(scope, state)) {
      // One that is deleted while the living are read is found once more.
      yield status === "all" ? part.filter(isNew) : part;
    }
  }
}

/** `active`: not deleted. A key that has expired is still listed. */
const hasStatus = ({ deletedAt }: ApiKey, status: ApiKeyListQuery["status"]): boolean =>
  status === "all" || (status === "deleted") === (deletedAt !== undefined);

/** `name` is the whole name; `query` a part of the name, the creator or the project, or how id or mask begin. */
function makeIsAsked(
  { name, query }: ApiKeyListQuery,
  projects: ApiKeyPorts["projects"],
): (key: ApiKey) => Promise<boolean> {
  // Each project is asked for its name once, however many keys it has.
  const names = new Map<string, Promise<string | undefined>>();
  const nameOf = (id: string): Promise<string | undefined> => {
    const asked = names.get(id) ?? projects.nameOf(id);
    names.set(id, asked);
    return asked;
  };
  return async (key) => {
    if (name !== undefined && folded(key.name) !== folded(name)) return false;
    if (query === undefined || key.id.startsWith(query) || key.mask.startsWith(query)) return true;
    const { id, email, name: person } = key.createdBy;
    const project = key.projectId === undefined ? [] : [key.projectId, await nameOf(key.projectId)];
    const wanted = folded(query);
    return [key.name, id, email, person, ...project].some((text) => text && folded(text).includes(wanted));
  };
}

/** Keys that never expire come after all others; equal ones by when they were made. */
function inOrder({ sort_by, sort_direction }: ApiKeyListQuery): (one: ApiKey, other: ApiKey) => number {
  const sign = sort_direction === "asc" ? 1 : -1;
  const rank = {
    created_at: (one: ApiKey, other: ApiKey) => one.createdAt - other.createdAt,
    name: (one: ApiKey, other: ApiKey) => compareTexts(folded(one.name), folded(other.name)),
    expires_at: (one: ApiKey, other: ApiKey) => compareEnds(one.expiresAt, other.expiresAt),
  }[sort_by];
  return (one, other) => sign * (rank(one, other) || one.createdAt - other.createdAt);
}

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
const compareEnds = (one = Infinity, other = Infinity): number => (one === other ? 0 : one - other);
