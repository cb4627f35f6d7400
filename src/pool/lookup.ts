import { LRUCache } from "lru-cache";
import {
  type BrowserId,
  findBrowserIdIn,
  findLeaseId,
  findPoolId,
  findPoolIdIn,
  type Partition,
  partitionOf,
  type PoolId,
} from "../base/ids.js";
import type { LeasedBrowser } from "./browser.js";
import type { Pool } from "./pool.js";
import type { PoolStore } from "./ports/pool-store.js";
import type { ProjectStore } from "./ports/project-store.js";
import type { Tombstone } from "./session.js";

interface LookUpPorts {
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
}

/** Ids win over names in `{id_or_name}` (docs/api.md#names-and-ids). */
export async function findPool({ poolStore, projects }: LookUpPorts, ref: string): Promise<Pool | undefined> {
  const id = findPoolIdIn(projects.project, ref);
  const byId = id && (await poolStore.findPool(partitionOf(id)));
  if (byId && byId.id === id) return byId;
  const named = await projects.findName("pool", ref);
  const pool = named && (await poolStore.findPool(named.partition));
  return pool && pool.id === named.owner ? pool : undefined;
}

/** A pool that a reference may mean; `name` where it was found by that. */
export interface PoolCandidate {
  readonly id: PoolId;
  readonly partition: Partition;
  readonly name?: string;
}

const calledBy = (name: string, id: PoolId): PoolCandidate => ({ id, partition: partitionOf(id), name });

/**
 * Remembers the pool that each name meant last. It decides nothing: whoever goes by it compares the name with
 * the pool's own.
 */
export class PoolNameCache {
  readonly #kept = new LRUCache<string, PoolId>({ max: 1000 });

  constructor(private readonly projects: ProjectStore) {}

  /**
   * Gives the pools that an id or a name may mean, ids first. Take the next one where the script says that
   * this one is not meant.
   */
  *candidates(ref: string): Generator<PoolCandidate | Promise<PoolCandidate | undefined>, void> {
    const id = findPoolIdIn(this.projects.project, ref);
    if (id) yield { id, partition: partitionOf(id) };
    const kept = this.#kept.get(ref);
    if (kept) yield calledBy(ref, kept);
    yield this.#look(ref, kept);
  }

  async #look(name: string, known: PoolId | undefined): Promise<PoolCandidate | undefined> {
    const owner = findPoolId((await this.projects.findName("pool", name))?.owner ?? "");
    if (owner) this.#kept.set(name, owner);
    else this.#kept.delete(name);
    return owner === undefined || owner === known ? undefined : calledBy(name, owner);
  }
}

/** A browser by its id, or by the name of its lease. Only a leased one is a session. */
export async function findSession(
  { poolStore, projects }: LookUpPorts,
  ref: string,
): Promise<{ browser: LeasedBrowser; at: number } | undefined> {
  const id = findBrowserIdIn(projects.project, ref);
  const byId = id && (await poolStore.findBrowser(id));
  if (byId?.browser.state === "leased") return { browser: byId.browser, at: byId.at };
  const named = await projects.findName("session", ref);
  const lease = named && findLeaseId(named.owner);
  return lease && (await poolStore.findHeld(named.partition, lease));
}

/** The browser id that a reference means, live or not. */
export async function findSessionId(ports: LookUpPorts, ref: string): Promise<BrowserId | undefined> {
  const found = await findSession(ports, ref);
  return found?.browser.id ?? findBrowserIdIn(ports.projects.project, ref);
}

/**
 * What is kept of a session that is over, by its id or, of several that bore the name, the last. Whoever has
 * ended it may have died before the tombstone was moved to where it is looked up: so it is moved now.
 */
export async function findTombstone(projects: ProjectStore, ref: string): Promise<Tombstone | undefined> {
  const found = await findMoved(projects, ref);
  if (found) return found;
  const id = findBrowserIdIn(projects.project, ref);
  const partition = id ? partitionOf(id) : (await projects.findName("session", ref))?.partition;
  if (!partition) return undefined;
  await projects.moveTombstones(partition);
  return await findMoved(projects, ref);
}

async function findMoved(projects: ProjectStore, ref: string): Promise<Tombstone | undefined> {
  const id = findBrowserIdIn(projects.project, ref);
  const byId = id && (await projects.findTombstone(id));
  return byId ?? (await projects.findTombstoneNamed(ref));
}
