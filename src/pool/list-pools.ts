import { homeOf } from "../base/ids.js";
import type { Page, Paging, PoolListQuery } from "./operations.js";
import type { Pool } from "./pool.js";
import type { Homes, Projects } from "./ports/pool-store.js";

interface Ports {
  readonly homes: Homes;
  readonly projects: Projects;
  readonly region: string;
}

/** Without regard to case and accents (wire-facts.md 2.1). */
export const folded = (text: string): string => text.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();

export function pageOf<Item>(all: readonly Item[], { limit, offset }: Paging): Page<Item> {
  const items = all.slice(offset, offset + limit);
  return { items, hasMore: offset + limit < all.length, nextOffset: offset + items.length };
}

/** GET /browser_pools, newest first. Configurations, which may have megabytes, are read of the page only. */
export const makeListPools = ({ homes, projects, region }: Ports) => async (query: PoolListQuery): Promise<Page<Pool>> => {
  if (query.region !== undefined && query.region !== region) return pageOf<Pool>([], query);
  const all = (await Promise.all((await projects.pools()).map((id) => homes.findTerms(homeOf(id))))).flatMap((terms) => terms ?? []);
  const wanted = all.filter((terms) => isWanted(terms, query)).toSorted((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? -1 : 1));
  const page = pageOf(wanted, query);
  const pools = await Promise.all(page.items.map(({ id }) => homes.findPool(homeOf(id))));
  const items = pools.flatMap((pool) => pool ?? []);
  return { ...page, items, nextOffset: query.offset + items.length };
};

/** Whether a named thing is one that a list was asked for: `name` is all of its name, `query` a part of it or the id. */
export function isWanted(thing: { readonly id: string; readonly name?: string }, { name, query }: Pick<PoolListQuery, "name" | "query">): boolean {
  const ownName = folded(thing.name ?? "");
  if (name !== undefined && ownName !== folded(name)) return false;
  return query === undefined || thing.id === query || ownName.includes(folded(query));
}
