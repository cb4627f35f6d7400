import type { Readable } from "node:stream";
import { type Staging, TooLarge } from "../archive/archives.js";
import { checkExtension } from "../archive/formats/check-extension.js";
import { makeFromStore } from "../archive/formats/web-store.js";
import { patternsOf } from "../base/net/hosts.js";
import { blockedPermissions } from "../browser/policy/managed-policy.js";
import type { Config } from "../config/config.js";
import { whyClosed } from "../egress/collectors.js";
import { makeProbe } from "../egress/proxy-check.js";
import { whyProxyClosed } from "../egress/rules.js";
import { makeReservedEndpoints } from "../egress/reserved-endpoints.js";
import type { OtlpDestinationOperations } from "../registry/destinations/destination.js";
import { makeExportingSessions } from "../lease/telemetry/exporting-sessions.js";
import { SessionReader } from "../pool/launch-templates.js";
import { makeOtlpDestinationOperations } from "../registry/destinations/operations.js";
import type { ExtensionOperations } from "../registry/extensions/extension.js";
import { type ExtensionPorts, makeExtensionOperations } from "../registry/extensions/operations.js";
import { makeProfileOperations } from "../registry/profiles/operations.js";
import type { ProfileOperations } from "../registry/profiles/profile.js";
import { makeProxyOperations } from "../registry/proxies/operations.js";
import type { ProxyOperations } from "../registry/proxies/proxy.js";
import { profileArchivesOf } from "./archives.js";
import type { ProjectStores } from "../store/project/projects.js";
import type { DaemonParts } from "./parts.js";
import { collectorParts } from "./telemetry-exports.js";

interface Registries {
  readonly extensions: ExtensionOperations;
  readonly profiles: ProfileOperations;
  readonly proxies: ProxyOperations;
  readonly otlpDestinations: OtlpDestinationOperations;
}

/** What the API does with named extensions, profiles, proxies and OTLP destinations. */
export const openRegistries = (shared: DaemonParts, project: ProjectStores): Registries => ({
  extensions: openExtensions(shared, project),
  profiles: openProfiles(shared, project),
  proxies: openProxies(shared, project),
  otlpDestinations: openOtlpDestinations(shared, project),
});

function openExtensions(
  { config, clock, stores, archives: { archives, staging } }: DaemonParts,
  { projects, extensions }: ProjectStores,
): ExtensionOperations {
  const { maxBytes, storeUrl, storeLimitMs } = config.extensions;
  return makeExtensionOperations({
    poolStore: stores.poolStore,
    projects,
    store: extensions,
    archives,
    maxExtensions: config.limits.maxExtensions,
    stage: (file, signal) => stage(staging, file, { maxBytes, signal }),
    check: extensionCheck(config),
    fromStore: makeFromStore({ url: storeUrl, limitMs: storeLimitMs, maxBytes, staging, clock }),
  });
}

function openProfiles(shared: DaemonParts, { projects, profiles }: ProjectStores): ProfileOperations {
  const { config, stores, archives } = shared;
  return makeProfileOperations({
    poolStore: stores.poolStore,
    projects,
    store: profiles,
    states: profileArchivesOf(shared, profiles, (digest) => archives.archives.open(digest)),
    maxProfiles: config.limits.maxProfiles,
  });
}

function openProxies(
  { config, clock, log, stores, keys, resolve, endpoints }: DaemonParts,
  { projects, proxies }: ProjectStores,
): ProxyOperations {
  const proxyHosts = patternsOf(config.egress.proxyHosts);
  const probe = makeProbe({
    clock,
    resolve,
    reserved: makeReservedEndpoints(endpoints.places),
    proxyHosts,
    defaultUrl: config.egress.checkUrl,
    limitMs: config.egress.checkLimitMs,
  });
  return makeProxyOperations({
    poolStore: stores.poolStore,
    projects,
    store: proxies,
    seal: keys.seal,
    maxProxies: config.limits.maxProxies,
    log,
    whyClosed: (place) => whyProxyClosed(place, proxyHosts),
    probe: async (...asked) => {
      await endpoints.refresh();
      return await probe(...asked);
    },
  });
}

function openOtlpDestinations(
  shared: DaemonParts,
  { projects, destinations, ...refs }: ProjectStores,
): OtlpDestinationOperations {
  const { config, stores, keys, endpoints } = shared;
  return makeOtlpDestinationOperations({
    poolStore: stores.poolStore,
    projects,
    store: destinations,
    seal: keys.seal,
    most: config.telemetry.export.maxDestinations,
    exportingSessions: makeExportingSessions({
      poolStore: stores.poolStore,
      projects,
      sessionReader: new SessionReader(stores.poolStore, refs),
    }),
    async whyClosed(endpoint) {
      await endpoints.refresh();
      return await whyClosed(collectorParts(shared), endpoint);
    },
  });
}

/** What an archive is held to wherever it is uploaded: what would not be loaded later is refused then. */
export const extensionLimits = ({
  extensions: { maxFiles, maxUnpackedBytes },
}: Config): Parameters<typeof checkExtension>[1] => ({ maxFiles, maxUnpackedBytes, blockedPermissions });

export const extensionCheck =
  (config: Config) =>
  (path: string): ReturnType<typeof checkExtension> =>
    checkExtension(path, extensionLimits(config));

async function stage(
  staging: Staging,
  file: Readable,
  options: { maxBytes: number; signal: AbortSignal },
): ReturnType<ExtensionPorts["stage"]> {
  try {
    return { kind: "staged", file: await staging.take(file, options) };
  } catch (error) {
    if (error instanceof TooLarge) return { kind: "too-large", maxBytes: error.maxBytes };
    throw error;
  }
}
