import type { ProjectId } from "../base/ids.js";
import { type KeyProvider, rewrapKey } from "./key-provider.js";
import type { VaultStore } from "./vault.js";

/** Who wraps the keys of vaults from here on, and who unwraps them, itself included. */
export interface VaultKeyring {
  readonly first: KeyProvider;
  readonly ring: KeyProvider;
  /** Whether keys may be wrapped by another than the first. */
  readonly hasOthers: boolean;
}

interface VaultsOfProject {
  readonly project: ProjectId;
  readonly store: Pick<VaultStore, "all" | "rewrap">;
}

/**
 * Wraps the key of every vault by the first provider that is not so yet, values staying as they are; how many
 * there were. A vault that is changed or deleted meanwhile is left: whoever comes next finds it.
 */
export async function rewrapVaults(
  { first, ring }: Pick<VaultKeyring, "first" | "ring">,
  projects: readonly VaultsOfProject[],
): Promise<number> {
  let count = 0;
  for (const { project, store } of projects) {
    for (const vault of await store.all()) {
      const dataKey = await rewrapKey({ project, provider: ring }, first, vault);
      const isChanged = dataKey !== undefined && (await store.rewrap(vault, dataKey)) === "changed";
      count += Number(isChanged);
    }
  }
  return count;
}
