import { forEachConcurrently } from "../base/concurrently.js";
import type { Log } from "../base/log.js";
import { type BrowserPool, isResourceName } from "./browser-pool.js";
import type { Cluster } from "./cluster.js";
import { ApiRefusal, type PoolApi, type RemotePool } from "./pool-api.js";

/** A pool that is made for a resource. It is made once under its key, however often it is asked for. */
interface Creation {
  readonly name: string;
  /** The resource's. */
  readonly uid: string;
  readonly key: string;
  readonly wanted: { readonly size: number };
}

/** `poolId` is known once the API has answered. */
interface Unsettled extends Creation {
  readonly poolId?: string;
}

interface CreationParts {
  readonly cluster: Pick<Cluster, "find">;
  readonly api: Pick<PoolApi, "create" | "find" | "remove">;
  readonly log: Log;
}

/** Whether a pool that was made for a resource called `name` was given the name of another resource since. */
export const isOfAnother = async (
  cluster: Pick<Cluster, "find">,
  { name: now }: RemotePool,
  name: string,
): Promise<boolean> =>
  now !== undefined && now !== name && isResourceName(now) && (await cluster.find(now)) !== undefined;

const most = 1000;
/** So many are seen to at once. */
const width = 8;
/** There is nothing to be taken back, or its leases are waited for. */
const expected = ["pool_not_found", "name_taken", "pool_in_use"];

/**
 * Makes the pools of resources. One whose resource was deleted meanwhile has nobody who would delete it, so
 * it is taken back here. Where a failure leaves open whether there is such a pool, it is seen to in each
 * round until that is known.
 */
export class Creations {
  readonly #unsettled = new Map<string, Unsettled>();

  constructor(private readonly parts: CreationParts) {}

  /** Undefined where the resource is gone: the pool is taken back. */
  async make(creation: Creation): Promise<RemotePool | undefined> {
    const pool = await this.#create(creation);
    return (await this.#isOwned({ ...creation, poolId: pool.id })) ? pool : undefined;
  }

  /** Sees once more to what a failure has left open. */
  async settle(): Promise<void> {
    const failures = await forEachConcurrently([...this.#unsettled.values()], width, (creation) =>
      this.#settle(creation),
    );
    const failure = failures.find((error) => !(error instanceof ApiRefusal && expected.includes(error.code)));
    if (failure !== undefined) throw failure;
  }

  /** Whatever fails notes it again. */
  async #settle(creation: Unsettled): Promise<void> {
    this.#unsettled.delete(creation.key);
    const { poolId, ...unmade } = creation;
    if (poolId !== undefined) await this.#isOwned({ ...unmade, poolId });
    // While the resource lives, its next look or its deletion finds what was made without an answer.
    else if ((await this.#owner(creation))?.metadata.uid !== creation.uid) await this.make(unmade);
  }

  async #create(creation: Creation): Promise<RemotePool> {
    const { name, wanted, key } = creation;
    try {
      return await this.parts.api.create({ ...wanted, name }, key);
    } catch (error) {
      const isUnmade = error instanceof ApiRefusal && error.status < 500;
      if (!isUnmade) this.#note(creation);
      throw error;
    }
  }

  /** Whether the pool is its resource's. It is left to another resource of that name that has it already. */
  async #isOwned(made: Creation & { readonly poolId: string }): Promise<boolean> {
    const owner = await this.#owner(made);
    if (owner?.metadata.uid === made.uid) return true;
    if (owner?.status?.poolId !== made.poolId) await this.#noting(made, this.#takeBack(made));
    return false;
  }

  async #takeBack({ name, poolId }: Creation & { readonly poolId: string }): Promise<void> {
    const { api, cluster } = this.parts;
    const pool = await api.find(poolId);
    // A pool may be called like the id of another.
    if (pool?.id !== poolId || (await isOfAnother(cluster, pool, name))) return;
    await api.remove(poolId, false);
  }

  async #owner(creation: Unsettled): Promise<BrowserPool | undefined> {
    return await this.#noting(creation, this.parts.cluster.find(creation.name));
  }

  async #noting<Answer>(creation: Unsettled, asking: Promise<Answer>): Promise<Answer> {
    try {
      return await asking;
    } catch (error) {
      this.#note(creation);
      throw error;
    }
  }

  #note(creation: Unsettled): void {
    this.#unsettled.set(creation.key, creation);
    const [oldest] = this.#unsettled.values();
    if (this.#unsettled.size <= most || !oldest) return;
    this.#unsettled.delete(oldest.key);
    this.parts.log.warn({ pool: oldest.name }, "a pool of a deleted BrowserPool may be left");
  }
}
