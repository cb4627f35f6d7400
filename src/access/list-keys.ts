import type { Principal } from "./principal.js";
import type { Millis } from "../base/clock.js";
import type { ApiKeyId } from "../base/ids.js";
import { folded, type Page, pageOf } from "../spec/paging.js";
import type { ApiKey, ApiKeyListQuery, ApiKeyStore, KeyScope, KnownProjects } from "./api-key.js";

interface Search {
  readonly store: ApiKeyStore;
  readonly projects: KnownProjects;
  /** Aborts when nobody waits for the page any more. */
  readonly gone?: AbortSignal | undefined;
}

/**
 * One page of the keys that the caller may see. The plain list reads no more than its page; a search reads
 * keys of the caller's scope, a part at a time, until it has the page or there are no more.
 */
export async function listKeys(
  { store, projects, gone }: Search,
  query: ApiKeyListQuery,
  { credentialScope }: Principal,
): Promise<Page<ApiKey>> {
  const { limit, offset, status } = query;
  if (!isKeySearch(query)) return await store.page(query, credentialScope);
  const isInOrder = isInReadOrder(query);
  const isWanted = makeIsAsked(query, projects);
  // One more than the page needs tells whether there are more.
  const found = new FirstKeys(offset + limit + 1, query);
  for await (const part of eachOf(store, credentialScope, status)) {
    const wanted = await Promise.all(part.map((key) => hasStatus(key, status) && isWanted(key)));
    found.add(part.filter((_, at) => wanted[at]));
    if (gone?.aborted === true || (isInOrder && found.isFull)) break;
  }
  const page = pageOf(found.ids(), query);
  const shown = await Promise.all(page.items.map((id) => store.find(id)));
  return { ...page, items: shown.flatMap((key) => (key && hasStatus(key, status) ? key : [])) };
}

/**
 * Searches of one caller, one after the other: each keeps what it has found, and takes its part of the event
 * loop. Those of others go on beside it.
 */
export class SearchTurns {
  /** The end of each caller's last search. */
  readonly #last = new Map<string, Promise<void>>();

  async take<Found>(who: string, search: () => Promise<Found>): Promise<Found> {
    const found = (this.#last.get(who) ?? Promise.resolve()).then(search);
    const over = found.then(
      () => {},
      () => {},
    );
    this.#last.set(who, over);
    try {
      return await found;
    } finally {
      if (this.#last.get(who) === over) this.#last.delete(who);
    }
  }
}

/** A search holds what comes before its page: so much of it is shown, and no more is read for it. */
export const mostSearched = 10_000;

const isInReadOrder = ({ sort_by, sort_direction, status }: ApiKeyListQuery): boolean =>
  sort_by === "created_at" && sort_direction === "desc" && status === "active";

/** Whether keys have to be read for it that are not on its page. */
export const isKeySearch = (query: ApiKeyListQuery): boolean =>
  query.name !== undefined || query.query !== undefined || !isInReadOrder(query);

/**
 * What a key is sorted by, and no more of it: a policy may have 40 KB, and a late page comes after 10,000
 * keys.
 */
interface Ranked extends Pick<ApiKey, "id" | "createdAt"> {
  readonly expiresAt: Millis | undefined;
  readonly name: string;
}

/** The keys that come first, of all that are added. */
class FirstKeys {
  #found: Ranked[] = [];
  readonly #inOrder: (one: Ranked, other: Ranked) => number;
  readonly #isByName: boolean;

  constructor(
    private readonly most: number,
    query: ApiKeyListQuery,
  ) {
    this.#inOrder = inOrder(query);
    this.#isByName = query.sort_by === "name";
  }

  /** Sorts them now and then: each time would be much work where a late page of many is asked for. */
  add(keys: readonly ApiKey[]): void {
    for (const { id, createdAt, expiresAt, name } of keys)
      this.#found.push({ id, createdAt, expiresAt, name: this.#isByName ? folded(name) : "" });
    if (this.#found.length > 2 * this.most + leastSorted) this.#cut();
  }

  get isFull(): boolean {
    return this.#found.length >= this.most;
  }

  ids(): readonly ApiKeyId[] {
    this.#cut();
    return this.#found.map(({ id }) => id);
  }

  #cut(): void {
    this.#found = this.#found.toSorted(this.#inOrder).slice(0, this.most);
  }
}
const leastSorted = 1000;

async function* eachOf(
  store: ApiKeyStore,
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

/**
 * `name` is the whole name; `query` a part of the name, the creator or the project, or how id or mask begin.
 */
function makeIsAsked(
  { name, query }: ApiKeyListQuery,
  projects: KnownProjects,
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
function inOrder({ sort_by, sort_direction }: ApiKeyListQuery): (one: Ranked, other: Ranked) => number {
  const sign = sort_direction === "asc" ? 1 : -1;
  const rank = {
    created_at: (one: Ranked, other: Ranked) => one.createdAt - other.createdAt,
    name: (one: Ranked, other: Ranked) => compareTexts(one.name, other.name),
    expires_at: (one: Ranked, other: Ranked) => compareEnds(one.expiresAt, other.expiresAt),
  }[sort_by];
  return (one, other) => sign * (rank(one, other) || one.createdAt - other.createdAt);
}

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);
const compareEnds = (one = Infinity, other = Infinity): number => (one === other ? 0 : one - other);
