import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import {
  findPoolId,
  findPoolIdIn,
  newRequestId,
  type Partition,
  partitionOf,
  type PoolId,
} from "../base/ids.js";
import { findPool } from "./lookup.js";
import type { PoolSpec } from "../spec/launch-template.js";
import type { SpecDefaults } from "./merge-spec.js";
import { launchTemplateOf } from "./spec-changes.js";
import type { Caller } from "../spec/caller.js";
import { isWanted, type Page, pageOf, type PoolListQuery } from "../spec/paging.js";
import type { Pool, PoolBrowser } from "./pool.js";
import type { PoolStore, PoolWrite } from "./ports/pool-store.js";
import type { ProjectBounds, ProjectStore, ReservedSize } from "./ports/project-store.js";
import type { References } from "../registry/references.js";

export interface PoolPorts extends ProjectBounds, References {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly defaults: SpecDefaults;
  readonly region: string;
  readonly maxPoolSize: number;
  /** Asks for a fill before the next tick. */
  kick(pool: PoolId): void;
}

export const writeOf = (spec: PoolSpec): PoolWrite => ({
  spec,
  template: launchTemplateOf(spec),
  // Everything that a pool may ask for is built; what an earlier release has noted goes with the next change.
  unsupported: [],
});

export const sizeRefusal = (ports: PoolPorts, size: number): Refusal | undefined =>
  size > ports.maxPoolSize
    ? refusal("bad_request", {
        details: [{ code: "invalid_input", message: `size: must be at most ${ports.maxPoolSize} here` }],
      })
    : undefined;

export async function reserveSize(
  ports: PoolPorts,
  pool: PoolId,
  size: number,
): Promise<ReservedSize | Refusal> {
  const reserved = await ports.projects.reserveSize(pool, size, ports);
  if (reserved.kind === "reserved") return reserved;
  const { of, message } = reachedLimits[reserved.kind];
  return refusal("limit_exceeded", { message, reached: { of, most: reserved.most } });
}
const reachedLimits = {
  pooled: {
    of: "organization",
    message: "The sizes of all pools together would exceed the organization's limit of pooled sessions",
  },
  concurrent: {
    of: "organization",
    message:
      "Sessions on demand and the sizes of all pools would exceed the organization's limit of concurrent sessions",
  },
  ofProject: {
    of: "project",
    message:
      "Sessions on demand and the sizes of the project's pools would exceed the project's limit of concurrent sessions",
  },
  many: { of: "project", message: "The project has as many pools as it may have" },
} as const;

export async function findOne(ports: PoolPorts, ref: string): Promise<Done<Pool> | Refusal> {
  const pool = await findPool(ports, ref);
  return pool ? done(pool) : refusal("pool_not_found");
}

type ListPorts = Pick<PoolPorts, "poolStore" | "projects">;

/** GET /browser_pools, newest first. Reads the pools of the page, and no others where there is no filter. */
export const makeListPools =
  ({ region, ...ports }: ListPorts & Pick<PoolPorts, "region">) =>
  async (query: PoolListQuery): Promise<Page<Pool>> => {
    const { limit, offset } = query;
    if (query.region !== undefined && query.region !== region) return pageOf<Pool>([], query);
    const hasFilter = query.name !== undefined || query.query !== undefined;
    const ids = hasFilter
      ? await wantedPools(ports, query)
      : await ports.projects.newestPools(offset, limit + 1);
    const pools = await Promise.all(
      ids.slice(0, limit).map((id) => ports.poolStore.findPool(partitionOf(id))),
    );
    const items = pools.flatMap((pool) => pool ?? []);
    return { items, hasMore: ids.length > limit, nextOffset: offset + items.length };
  };

/** A filter looks at so many pools at a time, and no further than the page goes. */
const searchedAtOnce = 100;

/** The pools of the page and one more, which tells that there are more. */
async function wantedPools(
  { poolStore, projects }: ListPorts,
  query: PoolListQuery,
): Promise<readonly PoolId[]> {
  const wanted: PoolId[] = [];
  const end = query.offset + query.limit + 1;
  for (let from = 0; wanted.length < end; from += searchedAtOnce) {
    const ids = await projects.newestPools(from, searchedAtOnce);
    // Specifications, which may have megabytes, are read of the page only.
    const found = await Promise.all(ids.map((id) => poolStore.findTerms(partitionOf(id))));
    wanted.push(...ids.filter((_, place) => found[place] && isWanted(found[place], query)));
    if (ids.length < searchedAtOnce) break;
  }
  return wanted.slice(query.offset, end);
}

export const makeGetPool =
  (ports: PoolPorts) =>
  (ref: string): Promise<Done<Pool> | Refusal> =>
    findOne(ports, ref);

/** More than these pieces are left to the ticks; they are some 100,000 browsers. */
const mostRetiring = 5000;

/**
 * Retires what a pool is rid of, in pieces between which others are served: what was discarded, what is above
 * its size (`isToSize`: after it has shrunk), or all of a deleted one. None of what was discarded is lent
 * meanwhile, and what a control that dies leaves is retired by the reap of any other.
 */
export async function retireLeft(
  poolStore: Pick<PoolStore, "retireLeft">,
  partition: Partition,
  { isToSize = false }: { readonly isToSize?: boolean } = {},
): Promise<void> {
  for (let piece = 0; piece < mostRetiring; piece += 1) {
    const left = await poolStore.retireLeft(partition, { isToSize, request: newRequestId() });
    if (left === "rid") return;
  }
}

/** DELETE /browser_pools/{x}: its name is free at the reply. */
export const makeRemovePool =
  (ports: PoolPorts) =>
  async (ref: string, options: { force: boolean }): Promise<Done<null> | Refusal> => {
    const pool = await findPool(ports, ref);
    if (!pool) return (await finishRemoval(ports, ref)) ? done(null) : refusal("pool_not_found");
    const deleted = await ports.poolStore.deletePool(partitionOf(pool.id), {
      force: options.force,
      request: newRequestId(),
    });
    if (deleted === "leased") return refusal("pool_in_use");
    if (deleted === "missing") return refusal("pool_not_found");
    await retireLeft(ports.poolStore, partitionOf(pool.id));
    await ports.projects.dropPool(pool.id, pool.name);
    return done(null);
  };

/**
 * What the first attempt at a removal has left undone, where that was cut off; whether there was something.
 */
async function finishRemoval({ projects, poolStore }: PoolPorts, ref: string): Promise<boolean> {
  const finish = async (pool: PoolId): Promise<boolean> => {
    await retireLeft(poolStore, partitionOf(pool));
    return await projects.settlePool(pool);
  };
  const id = findPoolIdIn(projects.project, ref);
  if (id && (await finish(id))) return true;
  const owner = findPoolId((await projects.findName("pool", ref))?.owner ?? "");
  return owner !== undefined && (await finish(owner));
}

/** Each finds what another flush or change has discarded since the one before has retired all that was. */
const flushTries = 10;

/** POST /browser_pools/{x}/flush: idle browsers only; replaced at the fill rate. */
export const makeFlushPool =
  (ports: PoolPorts) =>
  async (ref: string, caller: Caller): Promise<Done<null> | Refusal> => {
    const pool = await findPool(ports, ref);
    if (!pool) return refusal("pool_not_found");
    const partition = partitionOf(pool.id);
    for (let tries = 0; tries < flushTries; tries += 1) {
      const flushed = await ports.poolStore.flush(partition, caller.request);
      if (flushed === "missing") return refusal("pool_not_found");
      await retireLeft(ports.poolStore, partition);
      if (flushed === "busy") continue;
      ports.kick(pool.id);
      return done(null);
    }
    return refusal("conflict");
  };

/** GET /browser_pools/{x}/browsers: every browser of the pool, oldest first. */
export const makePoolBrowsers =
  (ports: PoolPorts) =>
  async (ref: string): Promise<Done<readonly PoolBrowser[]> | Refusal> => {
    const pool = await findPool(ports, ref);
    if (!pool) return refusal("pool_not_found");
    const { browsers, at } = await ports.poolStore.browsers(partitionOf(pool.id));
    return done(
      browsers
        .toSorted((one, other) => one.createdAt - other.createdAt)
        .map((browser) => ({
          id: browser.id,
          state: browser.state,
          node: browser.node,
          generation: browser.generation,
          served: browser.served,
          stale: browser.generation < pool.generation || browser.networkGeneration < pool.networkGeneration,
          ageMs: at - browser.createdAt,
          ...(browser.lastError === undefined ? {} : { lastError: browser.lastError }),
        })),
    );
  };
