import { LRUCache } from "lru-cache";
import type { Millis } from "../../base/clock.js";
import { type Partition, partitionOf, type PoolId, type ProjectId } from "../../base/ids.js";
import { patternsOf } from "../../base/net/hosts.js";
import type { Config } from "../../config/config.js";
import { makeAcquire } from "../../lease/acquire.js";
import { makeAddExtensions, makeFindUploadTarget } from "../../lease/add-extensions.js";
import { makeCreateSession } from "../../lease/create-session.js";
import { makeCurl } from "../../lease/curl.js";
import { makeChangePasskey, makeFillPage } from "../../lease/fill-page.js";
import { makePoolRecordings, makeReadRecording } from "../../lease/telemetry/flight-recordings.js";
import { makeListSessions } from "../../lease/list-sessions.js";
import { meterAcquire } from "../../lease/metered-acquire.js";
import { lateSessionPorts, makeRelease, makeRemoveSession } from "../../lease/release.js";
import { makeReportCaptcha } from "../../lease/telemetry/report-captcha.js";
import { makeTellHolder } from "../../telemetry/tell-holder.js";
import { makeEventOperations } from "../../lease/telemetry/session-events.js";
import { traceAcquire, traceCreate } from "../../lease/traced-lending.js";
import { makeGetSession, makeUpdateSession } from "../../lease/update-session.js";
import { undoneWhereLate } from "../../pool/late-creation.js";
import { SessionReader } from "../../pool/launch-templates.js";
import type { SpecDefaults } from "../../pool/merge-spec.js";
import type { PoolOperations, SessionOperations } from "../../pool/operations.js";
import type { StandbyShape } from "../../pool/standby/shapes.js";
import { makeCreatePool } from "../../pool/create-pool.js";
import {
  makeFlushPool,
  makeGetPool,
  makeListPools,
  makePoolBrowsers,
  makeRemovePool,
} from "../../pool/pool-operations.js";
import { makeUpdatePool } from "../../pool/update-pool.js";
import type { Lending } from "./lending.js";
import { makeVaultFill } from "./vault-fills.js";
import { isActiveOf, openProjectRegistries, openProjectVaults } from "./project-registries.js";
import { acquireMeter } from "../metrics.js";
import type { HttpDeps, OperationsInProject } from "../../http/deps.js";
import { extensionCheck } from "../registries.js";
import type { DaemonParts } from "../parts.js";
import { ReaderSeats } from "../../telemetry/reader-seats.js";
import { StreamReads } from "../../telemetry/stream-reads.js";
import { makeTellSpans } from "../../telemetry/traces/tell-spans.js";
import type { ProjectStores } from "../../store/project/projects.js";

/** What operations have in every project. */
interface OperationParts {
  readonly lending: Lending;
  readonly fillSoon: (partition: Partition) => void;
  readonly shapes: readonly StandbyShape[];
}

/**
 * The operations of each project, made when they are first asked for; they hold nothing that is not in Redis
 * or may be read there again.
 */
export function makeOperationsIn(shared: DaemonParts, parts: OperationParts): HttpDeps["operationsIn"] {
  const made = new LRUCache<ProjectId, OperationsInProject>({ max: 1000 });
  const eventPorts = openEventPorts(shared);
  const {
    stores: { poolStore },
    keys: { seal },
  } = shared;
  const asking = { poolStore, seal, askNode: parts.lending.askNode };
  const fill = makeVaultFill(makeFillPage(asking), makeChangePasskey(asking));
  const make = (project: ProjectId): OperationsInProject => {
    const stores = shared.stores.projects.of(project);
    const sessions = makeSessionOperations(shared, stores, parts);
    return {
      pools: makePoolOperations(shared, stores, parts),
      sessions,
      events: makeEventOperations({ ...eventPorts, projects: stores.projects }),
      ...openProjectRegistries(shared, stores),
      ...openProjectVaults(shared, stores, { sessions, fill }),
    };
  };
  return (project) => {
    const known = made.get(project);
    if (known) return known;
    const operations = make(project);
    made.set(project, operations);
    return operations;
  };
}

/** Readers of all projects share their places. */
const openEventPorts = ({ config: { telemetry }, stores, clock, stopping }: DaemonParts) => ({
  poolStore: stores.poolStore,
  events: stores.events,
  reads: new StreamReads(stores.events, clock),
  streams: new ReaderSeats({ ofBrowser: telemetry.maxSessionStreams, ofAll: telemetry.maxStreams }),
  pages: new ReaderSeats({ ofBrowser: telemetry.maxSessionStreams, ofAll: telemetry.maxStreams }),
  clock,
  stopping,
});

function makePoolOperations(
  shared: DaemonParts,
  project: ProjectStores,
  { lending, fillSoon }: OperationParts,
): PoolOperations {
  const { config, stores, clock } = shared;
  const { poolStore } = stores;
  const { projects } = project;
  const { region } = config;
  const ports = {
    poolStore,
    ...project,
    defaults: defaultsOf(config),
    region,
    kick: (pool: PoolId): void => fillSoon(partitionOf(pool)),
    ...config.limits,
  };
  const acquire = makeAcquire({
    ...lendingPorts(shared, project, lending),
    destinations: project.destinations,
    maxWaitMs: config.acquire.maxWaitMs,
  });
  const remove = makeRemovePool(ports);
  return {
    create: undoneWhereLate(makeCreatePool(ports), {
      isActive: isActiveOf(shared, projects.project),
      undo: async ({ value }) => void (await remove(value.id, { force: true })),
    }),
    list: makeListPools({ poolStore, projects, region }),
    get: makeGetPool(ports),
    update: makeUpdatePool(ports),
    remove,
    flush: makeFlushPool(ports),
    browsers: makePoolBrowsers(ports),
    recordings: makePoolRecordings({ poolStore, projects }),
    acquire: traceAcquire(meterAcquire(acquire, { clock, meter: acquireMeter(shared, projects.project) }), {
      clock,
      tellSpans: makeTellSpans(shared.recorder),
    }),
    release: makeRelease(releasePorts(shared, project)),
  };
}

function makeSessionOperations(
  shared: DaemonParts,
  project: ProjectStores,
  parts: OperationParts,
): SessionOperations {
  const { config, stores, clock, archives } = shared;
  const { poolStore, reports } = stores;
  const { projects, ...refs } = project;
  const { region } = config;
  const { lending } = parts;
  const { sessionReader } = lendingPorts(shared, project, lending);
  const restartLimitMs = config.node.launchLimitMs + answerMarginMs;
  const changing = {
    poolStore,
    projects,
    reports,
    ...refs,
    sessionReader,
    askNode: lending.askNode,
    restartLimitMs,
  };
  return {
    create: makeSessionCreation(shared, project, parts),
    list: makeListSessions({ poolStore, projects, sessionReader, profiles: refs.profiles, region }),
    get: makeGetSession(changing),
    update: makeUpdateSession(changing),
    remove: makeRemoveSession(releasePorts(shared, project)),
    recording: makeReadRecording(changing),
    reportCaptcha: makeReportCaptcha({ ...changing, tellHolder: makeTellHolder(shared.recorder) }),
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

function makeSessionCreation(
  shared: DaemonParts,
  project: ProjectStores,
  { lending, fillSoon, shapes }: OperationParts,
): SessionOperations["create"] {
  const { config, stores, clock } = shared;
  const { projects, ...refs } = project;
  const launch = makeCreateSession({
    ...lendingPorts(shared, project, lending),
    ...refs,
    nodes: stores.nodes,
    jobs: stores.queues,
    clock,
    defaults: defaultsOf(config),
    region: config.region,
    maxSessions: config.limits.maxSessions,
    launchWaitMs: Math.min(config.node.launchLimitMs * 2, config.acquire.maxWaitMs),
    standbyShapes: shapes.filter((shape) => shape.project === projects.project),
    standbyMeter: shared.metrics.standby,
    fillStandby: fillSoon,
  });
  const create = traceCreate(launch, { clock, tellSpans: makeTellSpans(shared.recorder) });
  return undoneWhereLate(create, {
    isActive: isActiveOf(shared, projects.project),
    ...lateSessionPorts(makeRemoveSession(releasePorts(shared, project))),
  });
}

const lendingPorts = (
  { stores: { poolStore }, clock }: DaemonParts,
  { projects, ...refs }: ProjectStores,
  { control, waiters, grants }: Lending,
) => ({
  poolStore,
  projects,
  sessionReader: new SessionReader(poolStore, refs),
  control,
  waiters,
  grants,
  clock,
});

const releasePorts = (
  { config, stores, clock }: DaemonParts,
  { projects, ...refs }: ProjectStores,
): Parameters<typeof makeRelease>[0] => ({
  poolStore: stores.poolStore,
  projects,
  sessionReader: new SessionReader(stores.poolStore, refs),
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

export const defaultsOf = ({ fill, browser, egress }: Config): SpecDefaults => ({
  fillRatePerMinute: fill.defaultRatePerMinute,
  maxFillRatePerMinute: fill.maxRatePerMinute,
  engine: browser.engine,
  privateHostsCeiling: patternsOf(egress.privateHostsCeiling),
});
