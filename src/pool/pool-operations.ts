import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import {
  findPoolId,
  findPoolIdIn,
  newPoolId,
  newRequestId,
  type Partition,
  partitionOf,
  type PoolId,
} from "../base/ids.js";
import type { PoolCreate } from "../spec/bodies.js";
import { findPool } from "./lookup.js";
import { idempotencyKeyOf } from "./idempotency.js";
import type { PoolSpec } from "../spec/launch-template.js";
import { createPoolSpec, type SpecDefaults } from "./merge-spec.js";
import { launchTemplateOf } from "./spec-changes.js";
import type { Caller } from "../spec/caller.js";
import { isWanted, type Page, pageOf, type PoolListQuery } from "../spec/paging.js";
import type { Pool, PoolBrowser } from "./pool.js";
import type { PoolStore, IdempotencyKey, PoolWrite } from "./ports/pool-store.js";
import type { ProjectBounds, ProjectStore, ReservedSize } from "./ports/project-store.js";
import { withFaults } from "../registry/proxies/selectors.js";
import { type References, resolveReferences } from "../registry/references.js";

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

/** POST /browser_pools: name and size are reserved first, the record makes them final. */
export const makeCreatePool =
  (ports: PoolPorts) =>
  async (body: PoolCreate, caller: Caller): Promise<Done<Pool> | Refusal> => {
    const spec = await specOf(ports, body);
    const key = idempotencyKeyOf(caller, "create pool", body);
    if (spec.kind === "refused") return (key && (await madeUnder(ports, key))) ?? spec;
    return await createOnce(ports, spec.value, key);
  };

async function specOf(ports: PoolPorts, body: PoolCreate): Promise<Done<PoolSpec> | Refusal> {
  const resolved = await resolveReferences(ports, body);
  const spec = withFaults(createPoolSpec(resolved.body, ports.defaults), resolved.faults);
  if (spec.kind === "refused") return spec;
  const elsewhere = refusal("not_supported", { message: `This deployment is in ${ports.region}` });
  const isHere = body.region === undefined || body.region === ports.region;
  return sizeRefusal(ports, body.size) ?? (isHere ? spec : elsewhere);
}

/** Stands before the pool that a key remembers while it is to be made. One made and gone was deleted. */
const unmade = "unmade ";

async function createOnce(
  ports: PoolPorts,
  spec: PoolSpec,
  idempotencyKey: IdempotencyKey | undefined,
): Promise<Done<Pool> | Refusal> {
  const { projects } = ports;
  const id = newPoolId(projects.project);
  if (!idempotencyKey) return (await writePool(ports, id, spec)) ?? (await findOne(ports, id));
  const earlier = await projects.remember(idempotencyKey, unmade + id);
  if (earlier.kind === "mismatch") return refusal("idempotency_mismatch");
  const value = earlier.kind === "same" ? earlier.value : unmade + id;
  return value.startsWith(unmade)
    ? await makeUnderKey(ports, { id: value.slice(unmade.length) as PoolId, spec, idempotencyKey })
    : await findOne(ports, value);
}

/** What a first request is refused for now is no matter to the repeat of one that has made its pool. */
async function madeUnder(ports: PoolPorts, key: IdempotencyKey): Promise<Done<Pool> | Refusal | undefined> {
  const value = await ports.projects.recall(key);
  if (!value?.startsWith(unmade)) return value === undefined ? undefined : await findOne(ports, value);
  const id = value.slice(unmade.length) as PoolId;
  const pool = await ports.poolStore.findPool(partitionOf(id));
  return pool && (await makeUnderKey(ports, { id, spec: pool.spec, idempotencyKey: key }));
}

/** An earlier attempt may have failed anywhere on its way: it is gone on with, under the same id. */
async function makeUnderKey(
  ports: PoolPorts,
  { id, spec, idempotencyKey }: { id: PoolId; spec: PoolSpec; idempotencyKey: IdempotencyKey },
): Promise<Done<Pool> | Refusal> {
  const { projects } = ports;
  const refused = await writePool(ports, id, spec);
  if (refused) await projects.forgetKey(idempotencyKey);
  else await projects.settleKey(idempotencyKey, id);
  return refused ?? (await findOne(ports, id));
}

async function writePool(ports: PoolPorts, id: PoolId, spec: PoolSpec): Promise<Refusal | undefined> {
  const { projects, poolStore } = ports;
  const { name } = spec;
  // Noted before anything is reserved for it, so that what comes to nothing is found again.
  await projects.addPool(id);
  const isNamed =
    name === undefined ||
    (await projects.reserveName({ kind: "pool", name, owner: id, partition: partitionOf(id) }));
  const reserved = isNamed
    ? await reserveSize(ports, id, spec.size)
    : refusal("name_taken", { message: `A pool named ${name} exists` });
  if (reserved.kind === "refused") {
    if (name !== undefined) await projects.freeName({ kind: "pool", name, owner: id });
    await projects.forgetPool(id);
    return reserved;
  }
  await poolStore.createPool(partitionOf(id), { id, write: writeOf(spec), request: newRequestId() });
  await projects.openPool(id);
  ports.kick(id);
  return undefined;
}

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
