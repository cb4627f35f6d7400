import { textOf } from "../../base/log.js";
import type { ProjectId, VaultId } from "../../base/ids.js";
import { type KeyProvider, rewrapKey } from "./key-provider.js";
import type { Vault, VaultStore } from "../vault.js";

/** Who wraps the keys of vaults from here on, and who unwraps them, itself included. */
export interface VaultKeyring {
  readonly first: KeyProvider;
  readonly ring: KeyProvider;
}

interface VaultsOfProject {
  readonly project: ProjectId;
  readonly store: Pick<VaultStore, "all" | "find" | "rewrap">;
}

/** What has come of it: how many keys the first has wrapped now, how many it had, and which are left. */
export interface RewrapReport {
  readonly wrapped: number;
  readonly kept: number;
  readonly left: readonly { readonly project: ProjectId; readonly vault: VaultId; readonly why: string }[];
}

const tries = 3;

/**
 * Wraps the key of every vault by the first provider that is not so yet, values staying as they are. Each is
 * done by itself: one that fails keeps no other from it, and whoever is cut short is carried on by the next.
 */
export async function rewrapVaults(
  keyring: VaultKeyring,
  projects: readonly VaultsOfProject[],
): Promise<RewrapReport> {
  const came: { readonly project: ProjectId; readonly vault: VaultId; readonly how: Rewrapping }[] = [];
  for (const { project, store } of projects)
    for (const vault of await store.all())
      came.push({ project, vault: vault.id, how: await tryRewrap(keyring, { project, store }, vault) });
  const count = (kind: Rewrapping["kind"]): number => came.filter(({ how }) => how.kind === kind).length;
  const left = came.flatMap(({ project, vault, how }) =>
    how.kind === "left" ? [{ project, vault, why: how.why }] : [],
  );
  return { wrapped: count("wrapped"), kept: count("kept"), left };
}

type Rewrapping =
  | { readonly kind: "wrapped" | "kept" | "gone" }
  | { readonly kind: "left"; readonly why: string };

async function tryRewrap(keyring: VaultKeyring, place: VaultsOfProject, vault: Vault): Promise<Rewrapping> {
  try {
    return { kind: await rewrap(keyring, place, vault) };
  } catch (error) {
    return { kind: "left", why: textOf(error) };
  }
}

/** Where others wrap at the same time, or the vault is deleted, what is there by then is looked at. */
async function rewrap(
  { first, ring }: VaultKeyring,
  { project, store }: VaultsOfProject,
  vault: Vault,
): Promise<"wrapped" | "kept" | "gone"> {
  let found: Vault | undefined = vault;
  for (let count = 0; found && count < tries; count += 1) {
    const dataKey = await rewrapKey({ project, provider: ring }, first, found);
    if (!dataKey) return "kept";
    if ((await store.rewrap(found, dataKey)) === "changed") return "wrapped";
    found = await store.find(vault.id);
  }
  if (found) throw new Error("others change its key all the time");
  return "gone";
}
