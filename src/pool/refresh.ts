import { type Home, homeOf, newRequestId, type ProfileId } from "../base/ids.js";
import type { Pool } from "./pool.js";
import type { Homes, Projects } from "./ports.js";
import type { ProfileRefs } from "./profiles.js";

interface HomePorts {
  readonly homes: Homes;
  readonly profiles: ProfileRefs;
}

/**
 * After a save: flushes the idle browsers of every pool that asks for it and starts from this profile. A hint, so that they go
 * at once; the recycle tick does the same by the records.
 */
export const makeRefresh = (ports: HomePorts & { readonly projects: Projects }) => async (profile: ProfileId): Promise<void> => {
  for (const id of await ports.projects.pools()) {
    const pool = await ports.homes.findPool(homeOf(id));
    if (pool?.config.profile_id === profile) await refresh(ports, pool);
  }
};

/** Of one home, whatever its pool starts from. */
export const makeRefreshHome = (ports: HomePorts) => async (home: Home): Promise<void> => {
  const pool = await ports.homes.findPool(home);
  if (pool) await refresh(ports, pool);
};

/** Only browsers that were claimed before the save: those after it have its state, or what is yet newer (interface.md 4.4). */
async function refresh({ homes, profiles }: HomePorts, { id, config }: Pool): Promise<void> {
  if (!config.refresh_on_profile_update || !config.profile_id) return;
  const savedAt = (await profiles.find(config.profile_id))?.archive?.savedAt;
  if (savedAt !== undefined) await homes.flush(homeOf(id), newRequestId(), savedAt);
}
