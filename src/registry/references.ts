import type { ExtensionId, ProfileId } from "../base/ids.js";
import type { Network, ProxyChoice, Selector } from "../spec/bodies.js";
import { type ExtensionRefs, resolveExtensions } from "./extensions/selectors.js";
import type { FieldFaults } from "../spec/field-checks.js";
import { type ProfileRefs, resolveProfile } from "./profiles/selectors.js";
import type { PoolSpec } from "../spec/launch-template.js";
import { namedProxies, type ProxyRefs, resolveProxies } from "./proxies/selectors.js";

/** The registries that configurations refer to. */
export interface References {
  readonly proxies: ProxyRefs;
  readonly extensions: ExtensionRefs;
  readonly profiles: ProfileRefs;
}

/** What the selectors of a body mean. */
export interface Resolved {
  readonly extension_ids?: readonly ExtensionId[];
  readonly profile_id?: ProfileId;
}

/** Ids of all that a configuration names in the registries. */
export const namedBy = (spec: PoolSpec): readonly string[] => [
  ...(spec.extension_ids ?? []),
  ...(spec.profile_id ? [spec.profile_id] : []),
  ...namedProxies(spec),
];

interface Referring {
  readonly proxy_id?: string | undefined;
  readonly proxy?: ProxyChoice | undefined;
  readonly network?: Network | undefined;
  readonly extensions?: readonly Selector[] | undefined;
  readonly profile?: Selector | undefined;
}

/**
 * `body` with each proxy named by its id, and the ids of its extensions and profile beside their selectors; a
 * fault for each that is not there.
 */
export async function resolveReferences<Body extends Referring>(
  refs: References,
  body: Body,
): Promise<{ body: Body & Resolved; faults: FieldFaults }> {
  const { extensions, profile } = body;
  const [proxied, loaded, owned] = await Promise.all([
    resolveProxies(refs.proxies, body),
    extensions && resolveExtensions(refs.extensions, extensions),
    profile && resolveProfile(refs.profiles, profile),
  ]);
  return {
    body: {
      ...proxied.body,
      ...(loaded && { extension_ids: loaded.ids }),
      ...(owned?.id && { profile_id: owned.id }),
    },
    faults: [...proxied.faults, ...(loaded?.faults ?? []), ...(owned?.faults ?? [])],
  };
}
