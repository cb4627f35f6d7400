import {
  type ControlId,
  type Partition,
  partitionOf,
  newControlId,
  newRequestId,
  onDemandPartition,
  type PoolId,
} from "../base/ids.js";
import type { Clock, Millis } from "../base/clock.js";
import { textOf } from "../base/log.js";
import type { Secret } from "../base/crypto/secret.js";
import { Stops } from "../base/stops.js";
import type { Config } from "../config/config.js";
import { apiKey } from "../config/kept.js";
import { type ArchivesPart, archivesTick } from "./archives.js";
import { extensionUploads, openExtensions, uploadPorts } from "./extensions.js";
import { findNode, findNodeAddress, gatewayLimitsOf } from "./gateway.js";
import type { DaemonContext } from "./boot.js";
import type { HttpDeps } from "../http/deps.js";
import type { Front } from "../http/front.js";
import { makeAskCurl } from "../gateway/relay/remote-curl.js";
import { makeSendDirectly } from "../gateway/relay/direct-messages.js";
import { listen, type Listening } from "../http/server.js";
import { declarePools } from "../pool/declared-pools.js";
import { makeAcquire } from "../lease/acquire.js";
import { makeRequestNode } from "../lease/ask-node.js";
import { makeCurl } from "../lease/curl.js";
import type { AskCurl, ControlMessage } from "../pool/ports/messages.js";
import { SessionReader } from "../pool/launch-templates.js";
import { PendingCuts } from "../lease/cuts.js";
import type { Browser } from "../pool/browser.js";
import { Waiters } from "../lease/waiters.js";
import { makeFill, makeFillSoon } from "../pool/fill.js";
import { Grants } from "../lease/grants.js";
import { patternsOf } from "../base/net/hosts.js";
import { PoolLabels } from "../pool/pool-labels.js";
import { type AcquireMeter, meterAcquire } from "../lease/metered-acquire.js";
import { NodeDirectory } from "../lease/node-directory.js";
import { makeListPools } from "../pool/list-pools.js";
import type { SpecDefaults } from "../pool/merge-spec.js";
import type { NodeStore } from "../pool/ports/node-store.js";
import type { PoolOperations, SessionOperations } from "../pool/operations.js";
import {
  makeCreatePool,
  makeFlushPool,
  makeGetPool,
  makePoolBrowsers,
  makeRemovePool,
  makeUpdatePool,
} from "../pool/pool-operations.js";
import type { References } from "../registry/references.js";
import { makeRefreshPartition } from "../pool/refresh.js";
import type { SilentNodes } from "../pool/silent-nodes.js";
import { makeRelease, makeRemoveSession } from "../lease/release.js";
import { makeCreateSession } from "../lease/create-session.js";
import { makeListSessions } from "../lease/list-sessions.js";
import { makeAddExtensions } from "../lease/add-extensions.js";
import { makeGetSession, makeUpdateSession } from "../lease/update-session.js";
import { tokenOf } from "../base/crypto/lease-token.js";
import { makeMaintenance, type Maintenance } from "../pool/maintenance.js";
import { openProfiles } from "./profiles.js";
import { openProxies } from "./proxies.js";
import { startTicks, type Tick } from "../schedule/ticks.js";
import { type Stores, whyUnready } from "./state.js";
import { listenAsControl } from "../store/messages.js";
import type { Metrics } from "../observe/metrics.js";

export interface ControlParts {
  readonly secret: Secret;
  readonly metrics: Metrics;
  readonly front: Front;
  readonly archives: Pick<ArchivesPart, "archives" | "staging">;
  readonly silentNodes: SilentNodes;
  readonly version: string;
  publicUrl(): string;
  /** Of the node in this process, if there is one: why it cannot serve. */
  unready?(): string | undefined;
}

export interface Control {
  readonly listening: Listening;
  readonly pools: PoolOperations;
  /** Declares the configuration's pools, starts the schedules. */
  begin(): Promise<void>;
  /** Answers who waits, and whoever comes to wait; to be done before anything else stops. */
  dismiss(): void;
}

interface Wiring {
  readonly stores: Stores;
  readonly parts: ControlParts;
}

/** The control role, wired by hand. */
export async function openControl(
  config: Config,
  context: DaemonContext,
  wiring: Wiring,
): Promise<{ control: Control; stops: Stops }> {
  const { log, clock, stopping } = context;
  const { stores, parts } = wiring;
  const { poolStore, projects, nodes, queues, messages } = stores;
  const stops = new Stops(clock, config.stop.stepMs);
  const control = newControlId();

  const waiters = new Waiters(clock);
  const grants = new Grants(control, {
    poolStore,
    projects,
    waiters,
    clock,
    log,
    beatPeriodMs: config.acquire.controlBeatPeriodMs,
  });
  stops.add("grants", () => grants.close());
  const directory = openDirectory(config, context, nodes);
  stops.add("directory", () => directory?.close());
  const sendDirectly = makeSendDirectly({
    secret: parts.secret,
    clock,
    log,
    findNode: findNode(stores),
    unreachable: (address) => parts.silentNodes.suspect(address),
  });
  const cuts = new PendingCuts({ poolStore, clock, log, sendDirectly });
  stores.signals.on("lease.cut", (cut) => cuts.watch(cut));
  stops.add("cuts", () => cuts.close());
  const asking = makeRequestNode(control, { messages, clock, sendDirectly });
  const onMessage = (message: ControlMessage): void =>
    message.kind === "answer" ? asking.answered(message) : deliver({ waiters, grants }, message);
  const fill = makeFill({ poolStore, nodes, jobs: queues, random: Math.random, recycle: config.recycle });
  const kickPartition = makeFillSoon(fill, (partition, error) =>
    log.warn({ partition, error: textOf(error) }, "fill left to the tick"),
  );
  const hearing = listeningOf(config, stores);
  const kick = (pool: PoolId): void => kickPartition(partitionOf(pool));
  const askCurl = makeAskCurl({
    secret: parts.secret,
    clock,
    log,
    limits: gatewayLimitsOf(config).curl,
    findAddress: findNodeAddress(stores, undefined),
    unreachable: (address) => parts.silentNodes.suspect(address),
  });
  const { pools, sessions } = wireOperations(config, {
    stores,
    waiters,
    grants,
    control,
    kick,
    askNode: asking.ask,
    askCurl,
    clock,
    metrics: parts.metrics,
    archives: parts.archives.archives,
  });

  const proxies = await openProxies(config, context, stores);
  const listening = await listen(httpOptions(config, parts), {
    key: await apiKey(config),
    pools,
    sessions,
    proxies: proxies.operations,
    extensions: openExtensions(config, context, { stores, ...parts.archives }),
    profiles: await openProfiles(config, { stores, ...parts.archives }),
    clock,
    log,
    front: parts.front,
    metrics: parts.metrics,
    staging: parts.archives.staging,
    links: makeLinks(parts, directory),
    readiness: {
      unready: () => whyUnready(stopping, stores) ?? parts.unready?.(),
      hasStore: stores.isConnected,
    },
  });
  stops.add("http", () => listening.close());
  await proxies.close({ host: config.server.host, port: listening.port });
  const begin = async (): Promise<void> => {
    stops.add("kicks", kickWhereLacking(stores, kickPartition));
    stops.add("silence", parts.silentNodes.begin());
    const listener = await listenAsControl(stores.listenerParts, control, { onMessage });
    stops.add("messages", () => listener.close());
    await declarePools(config.pools, {
      pools,
      ...referencesOf(stores),
      log,
      defaults: defaultsOf(config),
      request: newRequestId,
    });
    // By a timer of its own: a tick may take its time.
    stops.add(
      "listening",
      clock.every(
        config.periods.fillMs,
        () =>
          void hearing
            .listensMs()
            .catch((error: unknown) => log.warn({ error: textOf(error) }, "listening was not noted")),
      ),
    );
    const maintenance = makeMaintenance({
      poolStore,
      projects,
      nodes,
      jobs: queues,
      clock,
      log,
      fill,
      refresh: makeRefreshPartition(stores),
      queues,
      maxLeases: config.recycle.maxLeases,
      ...hearing,
    });
    const sweep = archivesTick(config, context, { stores, archives: parts.archives.archives });
    const ticks = await startTicks(stores.queueOptions, [...ticksOf(config, maintenance), sweep], {
      clock,
      record: stores.ticks,
    });
    stops.add("ticks", () => ticks.close());
  };
  const dismiss = (): void => {
    listening.drain();
    waiters.close();
  };
  return { control: { listening, pools, begin, dismiss }, stops };
}

/** Exported for tests. */
export function deliver(
  { waiters, grants }: { waiters: Waiters; grants: Grants },
  message: Exclude<ControlMessage, { kind: "answer" }>,
): void {
  if (waiters.deliver(message.connection, message) || message.kind !== "granted") return;
  const { id, lease } = JSON.parse(message.browser) as Browser;
  if (lease) grants.unwanted(lease.id, id);
}

/**
 * What runs in this process need not wait for a tick: a browser is replaced as soon as it is over, or as
 * there is room.
 */
function kickWhereLacking({ signals }: Stores, kick: (partition: Partition) => void): () => void {
  const hear = ({ partition }: { partition: Partition }): void =>
    void (partition !== onDemandPartition && kick(partition));
  const deaf = [signals.on("browser.retiring", hear), signals.on("browser.gone", hear)];
  return () => deaf.forEach((stop) => stop());
}

/**
 * A control that has noted nothing for several periods of the fill has left a gap in which nobody was heard.
 */
const listeningOf = (
  { acquire, node, periods }: Config,
  { ticks }: Stores,
): Pick<Parameters<typeof makeMaintenance>[0], "listensMs" | "lostAfterMs"> => ({
  listensMs: () => ticks.steadyMs(Math.max(3 * periods.fillMs, acquire.controlLostAfterMs / 2)),
  lostAfterMs: { node: node.lostAfterMs, control: acquire.controlLostAfterMs },
});

interface OperationParts {
  readonly stores: Stores;
  readonly waiters: Waiters;
  readonly grants: Grants;
  readonly control: ControlId;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly askNode: ReturnType<typeof makeRequestNode>["ask"];
  readonly askCurl: AskCurl;
  readonly archives: ArchivesPart["archives"];
  kick(pool: PoolId): void;
}

function wireOperations(
  config: Config,
  parts: OperationParts,
): { pools: PoolOperations; sessions: SessionOperations } {
  const { stores, waiters, grants, control, kick, askNode, askCurl, clock, metrics } = parts;
  const { poolStore, projects, nodes, queues } = stores;
  const { region } = config;
  const refs = referencesOf(stores);
  const configs = new SessionReader(poolStore, refs);
  const defaults = defaultsOf(config);
  const ending = {
    poolStore,
    projects,
    retryWindowMs: config.acquire.retryWindowMs,
    clock,
    saveWaitMs: config.profiles.saveWaitMs,
  };
  const poolPorts = { poolStore, projects, ...refs, defaults, region, kick, ...config.limits };
  const acquire = makeAcquire({
    poolStore,
    projects,
    waiters,
    grants,
    configs,
    control,
    maxWaitMs: config.acquire.maxWaitMs,
  });
  const pools: PoolOperations = {
    create: makeCreatePool(poolPorts),
    list: makeListPools({ poolStore, projects, region }),
    get: makeGetPool(poolPorts),
    update: makeUpdatePool(poolPorts),
    remove: makeRemovePool(poolPorts),
    flush: makeFlushPool(poolPorts),
    browsers: makePoolBrowsers(poolPorts),
    acquire: meterAcquire(acquire, { clock, meter: acquireMeter(new PoolLabels(poolStore), metrics) }),
    release: makeRelease(ending),
  };
  const launchWaitMs = Math.min(config.node.launchLimitMs * 2, config.acquire.maxWaitMs);
  const asked = {
    poolStore,
    projects,
    reports: stores.reports,
    ...refs,
    configs,
    askNode,
    restartLimitMs: config.node.launchLimitMs + answerMarginMs,
  };
  const sessions: SessionOperations = {
    create: makeCreateSession({
      poolStore,
      projects,
      ...refs,
      nodes,
      jobs: queues,
      waiters,
      grants,
      configs,
      control,
      defaults,
      region,
      launchWaitMs,
    }),
    list: makeListSessions({ poolStore, projects, configs, profiles: refs.profiles, region }),
    get: makeGetSession(asked),
    update: makeUpdateSession(asked),
    remove: makeRemoveSession(ending),
    curl: makeCurl({ poolStore, projects, askCurl }),
    addExtensions: makeAddExtensions({
      ...asked,
      ...uploadPorts(config, parts.archives),
      clock,
      answerLimitMs: loadWaitOf(config),
    }),
  };
  return { pools, sessions };
}

/**
 * Loading, and where that fails a restart; official clients give up at 60 s, the way of the archives
 * included.
 */
const loadWaitOf = ({ extensions, node }: Config): Millis =>
  Math.min(extensions.loadLimitMs + node.launchLimitMs + answerMarginMs, 55_000);

/** A restart takes a launch, the end of what runs before it, and the answer's way. */
const answerMarginMs = 5000;

const referencesOf = ({ proxies, profiles, extensions }: Stores): References => ({
  proxies,
  profiles,
  extensions,
});

const defaultsOf = ({ fill, browser, egress }: Config): SpecDefaults => ({
  fillRatePerMinute: fill.defaultRatePerMinute,
  maxFillRatePerMinute: fill.maxRatePerMinute,
  engine: browser.engine,
  privateHostsCeiling: patternsOf(egress.privateHostsCeiling),
});

const ticksOf = ({ periods }: Config, { fill, reap, recycle }: Maintenance): readonly Tick[] => [
  { name: "fill", periodMs: periods.fillMs, run: fill },
  { name: "reap", periodMs: periods.reapMs, run: reap },
  { name: "recycle", periodMs: periods.recycleMs, run: recycle },
];

/** Only where URLs are to name nodes themselves. */
const openDirectory = (
  { node }: Config,
  { clock, log }: DaemonContext,
  nodes: NodeStore,
): NodeDirectory | undefined =>
  node.handOutOwnAddress
    ? new NodeDirectory(nodes, {
        clock,
        periodMs: node.beatPeriodMs,
        onFault: (error) => log.warn({ error: textOf(error) }, "nodes could not be read"),
      })
    : undefined;

const makeLinks =
  (parts: ControlParts, directory: NodeDirectory | undefined): HttpDeps["links"] =>
  (browser, lease, node) => {
    const own = node && directory?.find(node);
    const at = `${(own ?? parts.publicUrl()).replace(/^http/, "ws")}/browsers/${browser}`;
    const token = tokenOf(parts.secret, browser, lease);
    return {
      cdp_ws_url: `${at}/cdp?token=${token}`,
      webdriver_ws_url: `${at}/webdriver/session?token=${token}`,
    };
  };

const acquireMeter = (labels: PoolLabels, metrics: Metrics): AcquireMeter => ({
  acquired: (ref, outcome, waitedMs) =>
    void labels.ofRef(ref).then(
      (pool) => metrics.acquired(pool, outcome, waitedMs),
      () => {},
    ),
});

const httpOptions = (
  { server, node, region, acquire, extensions, log }: Config,
  { version }: ControlParts,
): Parameters<typeof listen>[0] => ({
  host: server.host,
  port: server.port,
  region,
  version,
  bodyLimitBytes: server.bodyLimitBytes,
  uploads: extensionUploads(extensions),
  ...(server.publicUrl === null ? {} : { publicUrl: server.publicUrl }),
  ...(node.address === null ? {} : { nodeUrl: node.address }),
  headersTimeoutMs: server.requestTimeoutMs,
  requestTimeoutMs: server.requestTimeoutMs,
  keepAliveTimeoutMs: server.keepAliveMs,
  silenceTimeoutMs: acquire.maxWaitMs + 30_000,
  maxConnections: server.maxConnections,
  closeLimitMs: server.closeLimitMs,
  logsRequests: log.level === "debug",
});
