import type { Millis } from "../base/clock.js";
import { type Partition, partitionOf, type PoolId } from "../base/ids.js";
import { patternsOf } from "../base/net/hosts.js";
import type { Config } from "../config/config.js";
import { makeAcquire } from "../lease/acquire.js";
import { makeAddExtensions, makeFindUploadTarget } from "../lease/add-extensions.js";
import { makeCreateSession } from "../lease/create-session.js";
import { makeCurl } from "../lease/curl.js";
import { makeListSessions } from "../lease/list-sessions.js";
import { meterAcquire } from "../lease/metered-acquire.js";
import { makeRelease, makeRemoveSession } from "../lease/release.js";
import { makeGetSession, makeUpdateSession } from "../lease/update-session.js";
import { SessionReader } from "../pool/launch-templates.js";
import type { SpecDefaults } from "../pool/merge-spec.js";
import type { PoolOperations, SessionOperations } from "../pool/operations.js";
import {
  makeCreatePool,
  makeFlushPool,
  makeGetPool,
  makeListPools,
  makePoolBrowsers,
  makeRemovePool,
} from "../pool/pool-operations.js";
import { makeUpdatePool } from "../pool/update-pool.js";
import type { References } from "../registry/references.js";
import type { Lending } from "./lending.js";
import { acquireMeter } from "./metrics.js";
import { extensionCheck } from "./registries.js";
import type { DaemonParts } from "./shared.js";
import type { Stores } from "./stores.js";

export function makePoolOperations(
  shared: DaemonParts,
  lending: Lending,
  fillSoon: (partition: Partition) => void,
): PoolOperations {
  const { config, stores, clock } = shared;
  const { poolStore, projects } = stores;
  const { region } = config;
  const ports = {
    poolStore,
    projects,
    ...referencesOf(stores),
    defaults: defaultsOf(config),
    region,
    kick: (pool: PoolId): void => fillSoon(partitionOf(pool)),
    ...config.limits,
  };
  const acquire = makeAcquire({ ...lendingPorts(shared, lending), maxWaitMs: config.acquire.maxWaitMs });
  return {
    create: makeCreatePool(ports),
    list: makeListPools({ poolStore, projects, region }),
    get: makeGetPool(ports),
    update: makeUpdatePool(ports),
    remove: makeRemovePool(ports),
    flush: makeFlushPool(ports),
    browsers: makePoolBrowsers(ports),
    acquire: meterAcquire(acquire, { clock, meter: acquireMeter(shared) }),
    release: makeRelease(releasePorts(shared)),
  };
}

export function makeSessionOperations(shared: DaemonParts, lending: Lending): SessionOperations {
  const { config, stores, clock, archives } = shared;
  const { poolStore, projects, nodes, queues, reports } = stores;
  const { region } = config;
  const refs = referencesOf(stores);
  const ports = lendingPorts(shared, lending);
  const { configs } = ports;
  const restartLimitMs = config.node.launchLimitMs + answerMarginMs;
  const changing = {
    poolStore,
    projects,
    reports,
    ...refs,
    configs,
    askNode: lending.askNode,
    restartLimitMs,
  };
  return {
    create: makeCreateSession({
      ...ports,
      ...refs,
      nodes,
      jobs: queues,
      clock,
      defaults: defaultsOf(config),
      region,
      launchWaitMs: Math.min(config.node.launchLimitMs * 2, config.acquire.maxWaitMs),
    }),
    list: makeListSessions({ poolStore, projects, configs, profiles: refs.profiles, region }),
    get: makeGetSession(changing),
    update: makeUpdateSession(changing),
    remove: makeRemoveSession(releasePorts(shared)),
    curl: makeCurl({ poolStore, projects, askCurl: lending.askCurl }),
    findUploadTarget: makeFindUploadTarget(changing),
    addExtensions: makeAddExtensions({
      ...changing,
      faultsOf: faultsOfExtension(config),
      keep: (digest, path) => archives.archives.put(digest, path),
      clock,
      answerLimitMs: loadWaitOf(config),
    }),
  };
}

const lendingPorts = ({ stores }: DaemonParts, { control, waiters, grants }: Lending) => ({
  poolStore: stores.poolStore,
  projects: stores.projects,
  configs: new SessionReader(stores.poolStore, referencesOf(stores)),
  control,
  waiters,
  grants,
});

const releasePorts = ({ config, stores, clock }: DaemonParts): Parameters<typeof makeRelease>[0] => ({
  poolStore: stores.poolStore,
  projects: stores.projects,
  retryWindowMs: config.acquire.retryWindowMs,
  saveWaitMs: config.profiles.saveWaitMs,
  clock,
});

function faultsOfExtension(config: Config): Parameters<typeof makeAddExtensions>[0]["faultsOf"] {
  const check = extensionCheck(config);
  return async (path) => {
    const checked = await check(path);
    return checked.kind === "faulty" ? checked.faults : [];
  };
}

/** A restart takes a launch, the end of what runs before it, and the answer's way. */
const answerMarginMs = 5000;

/**
 * Loading, and where that fails a restart; official clients give up at 60 s, the way of the archives
 * included.
 */
const loadWaitOf = ({ extensions, node }: Config): Millis =>
  Math.min(extensions.loadLimitMs + node.launchLimitMs + answerMarginMs, 55_000);

export const referencesOf = ({ proxies, profiles, extensions }: Stores): References => ({
  proxies,
  profiles,
  extensions,
});

export const defaultsOf = ({ fill, browser, egress }: Config): SpecDefaults => ({
  fillRatePerMinute: fill.defaultRatePerMinute,
  maxFillRatePerMinute: fill.maxRatePerMinute,
  engine: browser.engine,
  privateHostsCeiling: patternsOf(egress.privateHostsCeiling),
});
