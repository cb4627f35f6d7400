import { defaultProject, type ProjectId } from "../../base/ids.js";
import type { Done } from "../../base/errors.js";
import { undoneWhereLate } from "../../pool/late-creation.js";
import type { ProjectStores } from "../../store/project/projects.js";
import { openRegistries } from "../registries.js";
import { openVaults, type VaultParts } from "../vaults.js";
import type { DaemonParts } from "../parts.js";

/** The default project is always there. */
export const isActiveOf =
  ({ stores: { directory } }: DaemonParts, project: ProjectId) =>
  async (): Promise<boolean> =>
    project === defaultProject || (await directory.find(project))?.status === "active";

/** The registries of a project, which keep nothing that is made once it is closed. */
export function openProjectRegistries(
  shared: DaemonParts,
  stores: ProjectStores,
): ReturnType<typeof openRegistries> {
  const { extensions, profiles, proxies, otlpDestinations } = openRegistries(shared, stores);
  const isActive = isActiveOf(shared, stores.projects.project);
  // Whoever is told of it only now can have named it nowhere, so nothing uses it.
  const ports = <Id>(store: { remove(id: Id): Promise<unknown> }) => ({
    isActive,
    undo: async ({ value }: Done<{ readonly id: Id }>) => void (await store.remove(value.id)),
  });
  return {
    extensions: { ...extensions, create: undoneWhereLate(extensions.create, ports(stores.extensions)) },
    profiles: { ...profiles, create: undoneWhereLate(profiles.create, ports(stores.profiles)) },
    proxies: { ...proxies, create: undoneWhereLate(proxies.create, ports(stores.proxies)) },
    otlpDestinations: {
      ...otlpDestinations,
      create: undoneWhereLate(otlpDestinations.create, ports(stores.destinations)),
    },
  };
}

/** Opens the vaults of a project in the same way; a vault that was there before is not taken back. */
export function openProjectVaults(
  shared: DaemonParts,
  stores: ProjectStores,
  parts: VaultParts,
): ReturnType<typeof openVaults> {
  const { vaults, vaultItems } = openVaults(shared, stores, parts);
  const upsert = undoneWhereLate(vaults.upsert, {
    isActive: isActiveOf(shared, stores.projects.project),
    async undo({ value: { vault, isNew } }) {
      if (isNew) await stores.vaults.remove(vault.id);
    },
  });
  return { vaults: { ...vaults, upsert }, vaultItems };
}

const removedAtOnce = 100;

/** Removes what requests have registered in a project while that was deleted. */
export async function removeRegistered({
  extensions,
  profiles,
  proxies,
  destinations,
  vaults,
}: ProjectStores): Promise<void> {
  const some = { limit: removedAtOnce, offset: 0 };
  const [loaded, saved, routed, exported, kept] = await Promise.all([
    extensions.all(),
    profiles.page(some),
    proxies.page(some),
    destinations.all(),
    vaults.all(),
  ]);
  await Promise.all([
    ...loaded.map(({ id }) => extensions.remove(id)),
    ...saved.items.map(({ id }) => profiles.remove(id)),
    ...routed.items.map(({ id }) => proxies.remove(id)),
    ...exported.map(({ id }) => destinations.remove(id)),
    ...kept.map(({ id }) => vaults.remove(id)),
  ]);
}
