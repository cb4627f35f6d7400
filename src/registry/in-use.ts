import { refusal, type Refusal } from "../base/errors.js";
import { type Partition, partitionOf } from "../base/ids.js";
import type { PoolSummary } from "../pool/ports/partition-overview.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { ProjectStore } from "../pool/ports/project-store.js";
import { namedBy } from "./references.js";

interface InUsePorts {
  readonly poolStore: Pick<PoolStore, "findPool" | "findTerms">;
  readonly projects: Pick<ProjectStore, "pools">;
}

/**
 * Why a named thing cannot be deleted, with each pool whose specification names its id; undefined where none
 * does.
 */
export async function refuseInUse(
  { poolStore, projects }: InUsePorts,
  message: string,
  id: string,
): Promise<Refusal | undefined> {
  const found = await Promise.all(
    (await projects.pools()).map((pool) => findUser(poolStore, partitionOf(pool), id)),
  );
  const users = found.flatMap((terms) => terms ?? []);
  if (users.length === 0) return undefined;
  const details = users.map(({ id: pool, name }) => ({
    code: "resource_in_use",
    message: name === undefined ? `pool ${pool}` : `pool ${name} (${pool})`,
  }));
  return refusal("resource_in_use", { message, details });
}

/**
 * The pool, where it names the id. Its specification, which may have megabytes, is read only where nothing is
 * noted of it.
 */
async function findUser(
  poolStore: InUsePorts["poolStore"],
  partition: Partition,
  id: string,
): Promise<PoolSummary | undefined> {
  const terms = await poolStore.findTerms(partition);
  const uses = terms?.uses ?? (terms && namedIn(await poolStore.findPool(partition)));
  return uses?.includes(id) ? terms : undefined;
}

const namedIn = (pool: Awaited<ReturnType<PoolStore["findPool"]>>): readonly string[] =>
  pool ? namedBy(pool.spec) : [];
