import type { ExtensionId } from "../../base/ids.js";
import { findExtensionId } from "../../base/ids.js";
import type { Selector } from "../../spec/bodies.js";
import { fieldFault, type FieldFaults } from "../../spec/field-checks.js";

/** The extensions of the project, as specifications of pools and bodies of sessions refer to them. */
export interface ExtensionRefs {
  find(id: ExtensionId): Promise<{ readonly id: ExtensionId } | undefined>;
  findNamed(name: string): Promise<ExtensionId | undefined>;
}

/**
 * What the selectors mean, in their order, with a fault for each that means no extension, or one that is
 * there already. What has not exactly one of id and name is passed over: that is a fault of the body, told
 * with its others.
 */
export async function resolveExtensions(
  refs: ExtensionRefs,
  selectors: readonly Selector[],
): Promise<{ ids: readonly ExtensionId[]; faults: FieldFaults }> {
  const faults: FieldFaults = [];
  const found = await Promise.all(selectors.map((selector) => findOne(refs, selector)));
  for (const [at, selector] of selectors.entries()) {
    if (Boolean(selector.id) === Boolean(selector.name)) continue;
    const id = found[at];
    const first = found.indexOf(id);
    if (id === undefined)
      fieldFault(faults, `extensions[${at}]`, `there is no extension ${calledBy(selector)}`);
    else if (first < at)
      fieldFault(faults, `extensions[${at}]`, `is the same extension as extensions[${first}]`);
  }
  return { ids: found.flatMap((id) => id ?? []), faults };
}

async function findOne(refs: ExtensionRefs, { id, name }: Selector): Promise<ExtensionId | undefined> {
  if (Boolean(id) === Boolean(name)) return undefined;
  if (name) return await refs.findNamed(name);
  const asked = findExtensionId(id ?? "");
  return asked && (await refs.find(asked))?.id;
}

/** What a caller has called a thing, for a fault that names it. */
export const calledBy = ({ id, name }: Selector): string =>
  id ? `with the id ${JSON.stringify(id)}` : `named ${JSON.stringify(name)}`;
