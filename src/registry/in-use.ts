import { refusal, type Refusal } from "../base/errors.js";
import { type Home, homeOf } from "../base/ids.js";
import type { PoolTerms } from "../pool/ports/partition-overview.js";
import type { Homes } from "../pool/ports/pool-store.js";
import type { Projects } from "../pool/ports/project-store.js";
import { namedBy } from "./references.js";

interface Ports {
  readonly homes: Pick<Homes, "findPool" | "findTerms">;
  readonly projects: Pick<Projects, "pools">;
}

/** Why a named thing cannot be deleted, with each pool whose configuration names its id; undefined where none does. */
export async function refuseInUse({ homes, projects }: Ports, message: string, id: string): Promise<Refusal | undefined> {
  const found = await Promise.all((await projects.pools()).map((pool) => findUser(homes, homeOf(pool), id)));
  const users = found.flatMap((terms) => terms ?? []);
  if (users.length === 0) return undefined;
  const details = users.map(({ id: pool, name }) => ({ code: "resource_in_use", message: name === undefined ? `pool ${pool}` : `pool ${name} (${pool})` }));
  return refusal("resource_in_use", { message, details });
}

/** The pool, where it names the id. Its configuration, which may have megabytes, is read only where nothing is noted of it. */
async function findUser(homes: Ports["homes"], home: Home, id: string): Promise<PoolTerms | undefined> {
  const terms = await homes.findTerms(home);
  const uses = terms?.uses ?? (terms && namedIn(await homes.findPool(home)));
  return uses?.includes(id) ? terms : undefined;
}

const namedIn = (pool: Awaited<ReturnType<Homes["findPool"]>>): readonly string[] => (pool ? namedBy(pool.config) : []);
