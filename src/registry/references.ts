import type { ExtensionId, ProfileId, VaultId } from "../base/ids.js";
import type { Network, ProxyChoice, Selector, Telemetry } from "../spec/bodies.js";
import { destinationOf, type OtlpDestinationRefs, resolveTelemetry } from "./destinations/selectors.js";
import { type ExtensionRefs, resolveExtensions } from "./extensions/selectors.js";
import type { FieldFaults } from "../spec/field-checks.js";
import { type ProfileRefs, resolveProfile } from "./profiles/selectors.js";
import type { PoolSpec } from "../spec/launch-template.js";
import { resolveVaults, type VaultRefs } from "./vaults/selectors.js";
import { namedProxies, type ProxyRefs, resolveProxies } from "./proxies/selectors.js";

/** The registries that specifications refer to. */
export interface References {
  readonly proxies: ProxyRefs;
  readonly extensions: ExtensionRefs;
  readonly profiles: ProfileRefs;
  readonly destinations: OtlpDestinationRefs;
  readonly vaults: VaultRefs;
}

/** What the selectors of a body mean. */
export interface Resolved {
  readonly extension_ids?: readonly ExtensionId[];
  readonly profile_id?: ProfileId;
  readonly vault_ids?: readonly VaultId[];
}

/** Ids of all that a specification names in the registries. */
export function namedBy(spec: PoolSpec): readonly string[] {
  const destination = destinationOf(spec.telemetry);
  return [
    ...(spec.extension_ids ?? []),
    ...(spec.profile_id ? [spec.profile_id] : []),
    ...namedProxies(spec),
    ...(spec.vault_ids ?? []),
    ...(destination === undefined ? [] : [destination]),
  ];
}

interface Referring {
  readonly proxy_id?: string | undefined;
  readonly proxy?: ProxyChoice | undefined;
  readonly network?: Network | undefined;
  readonly extensions?: readonly Selector[] | undefined;
  readonly profile?: Selector | undefined;
  readonly telemetry?: Telemetry | null | undefined;
  readonly vaults?: readonly Selector[] | undefined;
}

/**
 * `body` with each proxy and OTLP destination named by its id, and the ids of its extensions, profile and
 * vaults beside their selectors; a fault for each that is not there.
 */
export async function resolveReferences<Body extends Referring>(
  refs: References,
  body: Body,
): Promise<{ body: Body & Resolved; faults: FieldFaults }> {
  const { extensions, profile, telemetry, vaults } = body;
  const [proxied, loaded, owned, exported, filled] = await Promise.all([
    resolveProxies(refs.proxies, body),
    extensions && resolveExtensions(refs.extensions, extensions),
    profile && resolveProfile(refs.profiles, profile),
    telemetry && resolveTelemetry(refs.destinations, telemetry),
    vaults && resolveVaults(refs.vaults, vaults),
  ]);
  return {
    body: {
      ...proxied.body,
      ...(loaded && { extension_ids: loaded.ids }),
      ...(owned?.id && { profile_id: owned.id }),
      ...(exported && { telemetry: exported.telemetry }),
      ...(filled && { vault_ids: filled.ids }),
    },
    faults: [proxied, loaded, owned, exported, filled].flatMap((resolved) => resolved?.faults ?? []),
  };
}
