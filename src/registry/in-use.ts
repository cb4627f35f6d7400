import { type Refusal, refusal } from "../base/errors.js";
import { homeOf } from "../base/ids.js";
import type { PoolConfig } from "../pool/launch-config.js";
import type { Homes, Projects } from "../pool/ports.js";

interface Ports {
  readonly homes: Pick<Homes, "findPool">;
  readonly projects: Pick<Projects, "pools">;
}

/** Why a named thing cannot be deleted, with each pool whose configuration uses it; undefined where none does. */
export async function refuseInUse({ homes, projects }: Ports, message: string, isUsedBy: (config: PoolConfig) => boolean): Promise<Refusal | undefined> {
  const pools = await Promise.all((await projects.pools()).map((pool) => homes.findPool(homeOf(pool))));
  const uses = pools.flatMap((pool) => (pool && isUsedBy(pool.config) ? [pool] : []));
  if (uses.length === 0) return undefined;
  const details = uses.map(({ id, name }) => ({ code: "resource_in_use", message: name === undefined ? `pool ${id}` : `pool ${name} (${id})` }));
  return refusal("resource_in_use", { message, details });
}
