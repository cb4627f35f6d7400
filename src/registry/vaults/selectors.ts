import { findVaultId, type VaultId } from "../../base/ids.js";
import type { Selector } from "../../spec/bodies.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";
import { calledBy } from "../extensions/selectors.js";

/** The vaults of the project, as specifications of pools and bodies of sessions refer to them. */
export interface VaultRefs {
  find(id: VaultId): Promise<{ readonly id: VaultId } | undefined>;
  findNamed(name: string): Promise<VaultId | undefined>;
}

/** The id of what a selector means. */
export async function findVault(refs: VaultRefs, { id, name }: Selector): Promise<VaultId | undefined> {
  const asked = findVaultId(id ?? "");
  return name ? await refs.findNamed(name) : asked && (await refs.find(asked))?.id;
}

/** What the selectors mean, each once; a fault for each that means no vault. */
export async function resolveVaults(
  refs: VaultRefs,
  selectors: readonly Selector[],
): Promise<{ ids: readonly VaultId[]; faults: FieldFaults }> {
  const found = await Promise.all(selectors.map((selector) => findVault(refs, selector)));
  const faults: FieldFaults = [];
  for (const [at, selector] of selectors.entries())
    if (!found[at] && Boolean(selector.id) !== Boolean(selector.name))
      fieldFault(faults, `vaults[${at}]`, `there is no vault ${calledBy(selector)}`);
  return { ids: [...new Set(found.flatMap((id) => id ?? []))], faults };
}
