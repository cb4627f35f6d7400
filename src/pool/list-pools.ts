import { partitionOf } from "../base/ids.js";
import { isWanted, type Page, pageOf, type PoolListQuery } from "../spec/paging.js";
import type { Pool } from "./pool.js";
import type { PoolStore } from "./ports/pool-store.js";
import type { ProjectStore } from "./ports/project-store.js";

interface Ports {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly region: string;
}

/** GET /browser_pools, newest first. Configurations, which may have megabytes, are read of the page only. */
export const makeListPools =
  ({ poolStore, projects, region }: Ports) =>
  async (query: PoolListQuery): Promise<Page<Pool>> => {
    if (query.region !== undefined && query.region !== region) return pageOf<Pool>([], query);
    const all = (
      await Promise.all((await projects.pools()).map((id) => poolStore.findTerms(partitionOf(id))))
    ).flatMap((terms) => terms ?? []);
    const wanted = all
      .filter((terms) => isWanted(terms, query))
      .toSorted((one, other) => other.createdAt - one.createdAt || (one.id < other.id ? -1 : 1));
    const page = pageOf(wanted, query);
    const pools = await Promise.all(page.items.map(({ id }) => poolStore.findPool(partitionOf(id))));
    const items = pools.flatMap((pool) => pool ?? []);
    return { ...page, items, nextOffset: query.offset + items.length };
  };
