import { textOf } from "../base/log.js";
import { type BrowserId, type LeaseId, newRequestId, type NodeId } from "../base/ids.js";
import { Stops } from "../base/stops.js";
import { type BrowserHost, openHost } from "../browser/host.js";
import { launchChromium } from "../browser/launch.js";
import type { ArchivesPart } from "./archives.js";
import { memoryOf } from "../browser/resources/memory-usage.js";
import { guardReadable } from "../browser/readable-paths.js";
import {
  findScratchDirectory,
  keepScratchDirectory,
  scratchDirectoriesOf,
} from "../browser/resources/scratch.js";
import { measureStorage, fullness, measureMount } from "../browser/resources/scratch-usage.js";
import { sweepEarlier, sweepLeftovers } from "../browser/sweep.js";
import type { Config } from "../config/config.js";
import { openEgress, type EgressPart } from "./egress.js";
import { type GatewayContext, gatewayLimitsOf, makeGateway } from "./gateway.js";
import type { DaemonContext } from "./boot.js";
import { openBrowserAssets } from "./browser-assets.js";
import { hasPrivateRoot } from "../browser/isolation/rungs.js";
import { Bridge } from "../gateway/cdp/bridge.js";
import { Drain } from "../node/drain.js";
import { RedisContact } from "../node/redis-contact.js";
import { LeaseCommands } from "../node/lease-commands.js";
import type { Gateway } from "../gateway/gateway.js";
import { LaunchHealth } from "../node/launch-health.js";
import { Reconciler } from "../node/reconciler.js";
import { NodeNameTaken, claimNodeName } from "../node/node-name.js";
import { NetworkSync } from "../node/network-sync.js";
import type { NodeAddress, RegistrationReply } from "../gateway/ports.js";
import { type SlotPorts, Slots } from "../node/slots.js";
import { LeaseHandover } from "../node/lease-handover.js";
import { makeBeat, Tenure } from "../node/tenure.js";
import { startResourceWatch } from "../node/resource-watch.js";
import { PoolLabels } from "../pool/pool-labels.js";
import type { BeatResult, NodeFacts, NodeStore } from "../pool/ports/node-store.js";
import type { Job } from "../pool/ports/pool-store.js";
import { startWorker } from "../schedule/queues.js";
import { launchTurns, type Stores, whyUnready } from "./state.js";
import { listenAsNode } from "../store/messages.js";
import type { Metrics } from "../observe/metrics.js";

export interface NodeParts extends GatewayContext {
  readonly node: NodeId;
  /** The same for all daemons of one data directory. */
  readonly origin: string;
  readonly archives: ArchivesPart;
}

/** A node's agent: opened, then begun once its address is known. */
export interface NodeRole {
  readonly gateway: Gateway;
  /** Takes what Redis may not bring. */
  readonly receiveDirectly: LeaseCommands["receiveDirectly"];
  /**
   * Takes work and says that it is alive. `listening`: where this daemon does listen; others may reach it by
   * another `address`.
   */
  begin(address: NodeAddress, listening: NodeAddress): Promise<void>;
  unready(): string | undefined;
}

/** The node role, wired by hand. */
export async function openNode(
  config: Config,
  context: DaemonContext,
  { stores, parts }: Wiring,
): Promise<{ agent: NodeRole; stops: Stops }> {
  const { log, clock, stopping } = context;
  const { poolStore, reports, projects, nodes } = stores;
  const { node } = parts;
  const run = newRequestId();
  const stops = new Stops(clock, config.stop.stepMs + config.drain.limitMs);

  const host = await openHost(await hostSettings(config, { clock, log }), { clock, log });
  stops.add("browser host", () => host.close());
  await sweepLeftovers(host);
  const { egressPart, stops: egress } = await openEgress(config, context, {
    stores,
    metrics: parts.metrics,
    host,
  });
  stops.add("egress", () => egress.run());
  const seesHostFiles = !hasPrivateRoot(host.walls?.rung ?? "none");
  const { assets, profileSaver, changing } = await openBrowserAssets(config, context, {
    stores,
    metrics: parts.metrics,
    archives: parts.archives,
    seesHostFiles,
  });
  let beatNow = (): void => {};
  const health = openHealth(config, context, { node, nodes, changed: () => beatNow() });
  const slots = new Slots({
    poolStore,
    reports,
    clock,
    log,
    profileSaver,
    openBrowserEgress: egressPart.open,
    maxBrowsers: mostBrowsers(config),
    maxBytes: config.node.memoryBytes * config.node.overcommit,
    parallelLaunches: config.node.parallelLaunches,
    launchLimitMs: config.node.launchLimitMs * launchTurns,
    fillWorkspaceOf: (launch) => assets.of(launch),
    launch: (spec, { onAnswer, ...options }) =>
      launchChromium(spec, host, { ...options, onStage: (stage) => void (stage === "answer" && onAnswer()) }),
    makeBridge: (chromium) => new Bridge(chromium.pipe, clock, gatewayLimitsOf(config).sessions),
    meter: slotMeter(stores, parts.metrics),
    health,
  });
  const watch = startResourceWatch({
    slots,
    clock,
    log,
    meter: parts.metrics,
    limits: config.browser,
    maxFullness: config.node.maxScratchPercent / 100,
    memoryPeriodMs: config.node.memoryWatchPeriodMs,
    storagePeriodMs: config.node.storageWatchPeriodMs,
    usage: {
      memory: memoryOf,
      stored: measureStorage,
      storedInMount: measureMount,
      fullness: (inMounts) => fullness(host.scratchDirectory, inMounts),
    },
  });
  stops.add("watch", () => watch.stop());
  const networkSync = new NetworkSync({ poolStore, reports, clock, log });
  const handover = new LeaseHandover({ slots, poolStore, reports, networkSync, log });
  const leaseCommands = new LeaseCommands({
    slots,
    poolStore,
    reports,
    networkSync,
    handover,
    log,
    ...changing(slots, networkSync),
    resetLimitMs: config.node.resetLimitMs,
    answer: ({ control, question }, { isDone: ok, ...why }) =>
      stores.messages.toControl(control, { kind: "answer", question, ok, ...why }),
  });
  const drain = new Drain({ node, poolStore, projects, nodes, slots, clock, log });
  const { expirePeriodMs, probePeriodMs, probeLimitMs, lostAfterMs } = config.node;
  const tenure = new Tenure({ node, run, origin: parts.origin, nodes, clock, lostAfterMs });
  const reconciler = new Reconciler({
    node,
    tenure,
    nodes,
    slots,
    poolStore,
    projects,
    reports,
    handover,
    clock,
    log,
    expirePeriodMs,
    probePeriodMs,
    probeLimitMs,
  });
  const gateway = openGateway(
    { config, context, parts },
    { reports, slots, leaseCommands, handover, reconciler },
  );
  const begin = async (address: NodeAddress, listening: NodeAddress): Promise<void> => {
    await Promise.all([egressPart.close(address), egressPart.close(listening)]);
    beatNow = await beginAgent(
      { config, context, stores, stops },
      {
        node,
        tenure,
        slots,
        leaseCommands,
        networkSync,
        reconciler,
        drain,
        gateway,
        facts: () => ({
          ...factsOf(config, { node, address, stopping, host, egressPart }),
          ...failingOf(health),
          run,
          origin: parts.origin,
        }),
      },
    );
  };
  return {
    agent: {
      gateway,
      receiveDirectly: leaseCommands.receiveDirectly.bind(leaseCommands),
      begin,
      unready: () => whyUnready(stopping, stores) ?? whyNot(host, config, egressPart),
    },
    stops,
  };
}

interface Used {
  readonly reports: Stores["reports"];
  readonly slots: Slots;
  readonly leaseCommands: LeaseCommands;
  readonly handover: LeaseHandover;
  readonly reconciler: Reconciler;
}

function openGateway(
  { config, context, parts }: { config: Config; context: DaemonContext; parts: NodeParts },
  used: Used,
): Gateway {
  const findAddress = async (browser: BrowserId): Promise<NodeAddress | undefined> => {
    const address = await parts.findAddress(browser);
    if (!address) void used.reconciler.lookFor(browser);
    return address;
  };
  return makeGateway(config, context, {
    wiring: { ...parts, findAddress },
    local: {
      findBrowser: (browser) => used.slots.find(browser),
      connect: ({ browser, lease }) => register(used, parts, { browser, lease }),
    },
  });
}

/**
 * Whoever else is on the browser is cut before; the first client of a lease waits for the dispatch of its
 * start page.
 */
async function register(
  { reports, slots, leaseCommands, handover }: Used,
  { findEnd }: NodeParts,
  { browser, lease }: { browser: BrowserId; lease: LeaseId },
): Promise<RegistrationReply> {
  const reply = await reports.connect(browser, lease);
  if (reply.kind === "over") return { kind: "gone", reason: (await findEnd(browser, lease)) ?? reply.why };
  const slot = slots.find(browser);
  if (!slot) return { kind: "gone", reason: "the browser is over" };
  if (!(await handover.begin(slot, lease)))
    return { kind: "gone", reason: (await findEnd(browser, lease)) ?? "superseded" };
  if (reply.startUrl === undefined || reply.registrations > 1) return { kind: "connected" };
  return { kind: "connected", ready: leaseCommands.start(slot, lease, reply.startUrl) };
}

interface Wiring {
  readonly stores: Stores;
  readonly parts: NodeParts;
}
interface Around {
  readonly config: Config;
  readonly context: DaemonContext;
  readonly stores: Stores;
  readonly stops: Stops;
}
interface Begun {
  readonly node: NodeId;
  readonly tenure: Tenure;
  readonly slots: Slots;
  readonly leaseCommands: LeaseCommands;
  readonly networkSync: NetworkSync;
  readonly reconciler: Reconciler;
  readonly drain: Drain;
  readonly gateway: Gateway;
  facts(): NodeFacts;
}

/**
 * A node that was taken for lost goes on when what it held is cleared. One whose name another has taken
 * meanwhile ends.
 */
function onBeat(beaten: BeatResult, tenure: Tenure, { log, fail }: DaemonContext): void {
  if (!tenure.isOver && beaten.kind === "taken") fail(new NodeNameTaken(beaten.by));
  tenure.onBeat(beaten);
  if (beaten.kind === "lost") log.warn({}, "node was taken for lost: it waits until what it held is cleared");
}

const openHealth = (
  { fill }: Config,
  { clock, log }: DaemonContext,
  { node, nodes, changed }: { node: NodeId; nodes: NodeStore; changed(): void },
): LaunchHealth =>
  new LaunchHealth({
    clock,
    log,
    changed,
    backoff: { initialMs: fill.backoffInitialMs, maxMs: fill.backoffMaxMs },
    rest: (ms) => nodes.rest(node, ms),
    wake: () => nodes.wake(node),
  });

const failingOf = ({ failing }: LaunchHealth): Pick<NodeFacts, "failing"> => (failing ? { failing } : {});

/**
 * Takes messages and jobs, looks after browsers, beats; what stops it first empties the node. Gives what
 * beats out of turn.
 */
async function beginAgent(
  { config, context, stores, stops }: Around,
  { node, tenure, slots, leaseCommands, networkSync, reconciler, drain, gateway, facts }: Begun,
): Promise<() => void> {
  const { log, clock, hurry, stopping } = context;
  const { poolStore, nodes } = stores;
  // Nothing is placed here before what an earlier run has left is gone.
  await claimNodeName({
    ...config.node,
    clock,
    log,
    stopping,
    beat: () => nodes.beat({ ...facts(), canLaunch: false }),
    clear: () => drain.finishEarlierRun(),
  });
  await drain.forgetEarlierRun();
  await stores.queues.drop(node);
  // Last of all: whoever is killed before has its queue dropped as a lost node.
  stops.add("name", async () => {
    if (tenure.isOver) return;
    await stores.queues.drop(node);
    await nodes.forget(node);
  });
  const beat = makeBeat({
    clock,
    limitMs: config.node.lostAfterMs,
    beat: async () => onBeat(await nodes.beat(facts()), tenure, context),
    look: () => reconciler.look(),
  });
  const beatSoon = (): void =>
    void beat().catch((error: unknown) => log.warn({ error: textOf(error) }, "beat failed"));
  await beat();
  const listener = await listenAsNode(stores.listenerParts, node, {
    onMessage: (message) => leaseCommands.receive(message),
    onAgain: () => void reconciler.look(),
  });
  stops.add("messages", () => listener.close());
  const worker = await startWorker(
    stores.queueOptions,
    node,
    async (job) => void ((await tenure.mayWork()) && (await workOn({ slots, leaseCommands }, job))),
  );
  stops.add("worker", () => worker.close());
  const redisContact = new RedisContact({
    node,
    slots,
    poolStore,
    networkSync,
    clock,
    log,
    limitMs: config.egress.contactLimitMs,
    isolatedMs: config.node.isolatedLimitMs,
  });
  stops.add("contact", () => redisContact.close());
  stops.add("keeping", reconciler.start());
  stops.add("browsers", () =>
    tenure.isOver
      ? slots.close({ saves: false })
      : drain.finish(config.drain.limitMs > 0 ? "drained" : "stopped"),
  );
  stops.add("beat", clock.every(config.node.beatPeriodMs, beatSoon));
  stops.add("gateway", () => gateway.close());
  stops.add("drain", async () => {
    // From the next beat on nothing is placed here.
    await beat().catch((error: unknown) => log.warn({ error: textOf(error) }, "beat failed"));
    if (!tenure.isOver) await drain.wait(config.drain.limitMs, hurry);
  });
  return beatSoon;
}

function workOn(
  { slots, leaseCommands }: { slots: Slots; leaseCommands: LeaseCommands },
  job: Job,
): Promise<void> {
  switch (job.kind) {
    case "launch":
      return slots.launch(job);
    case "retire":
      return slots.retire(job);
    case "reset":
      return leaseCommands.reset(job);
  }
}

const mostBrowsers = ({ node }: Config): number => node.maxBrowsers ?? Number.MAX_SAFE_INTEGER;

interface Facts {
  readonly node: NodeId;
  readonly address: NodeAddress;
  readonly stopping: AbortSignal;
  readonly host: BrowserHost;
  readonly egressPart: EgressPart;
}

function factsOf(config: Config, { node, address, stopping, host, egressPart }: Facts): NodeFacts {
  const obstacle = whyNot(host, config, egressPart);
  return {
    id: node,
    ...address,
    memoryBytes: config.node.memoryBytes,
    maxBrowsers: mostBrowsers(config),
    isDraining: stopping.aborted,
    canLaunch: obstacle === undefined,
    engines: Object.keys(host.executables),
    ...(obstacle !== undefined && { obstacle }),
  };
}

/**
 * Clears the scratch directories of earlier starts first, so that what they left does not decide where this
 * one's is.
 */
async function scratchOf(
  { node, dataDir }: Config,
  around: Pick<BrowserHost, "clock" | "log">,
): Promise<string> {
  const earlier = await scratchDirectoriesOf(dataDir);
  await sweepEarlier(
    earlier.filter((path) => path !== node.scratchDir),
    around,
  );
  const path = node.scratchDir ?? (await findScratchDirectory(dataDir));
  await keepScratchDirectory(dataDir, path);
  return path;
}

async function hostSettings(
  config: Config,
  around: Pick<BrowserHost, "clock" | "log">,
): Promise<Parameters<typeof openHost>[0]> {
  const scratchDirectory = await scratchOf(config, around);
  await guardReadable(config.browser.readablePaths, [
    config.dataDir,
    config.archives.directory,
    scratchDirectory,
  ]);
  return settingsOf(config, scratchDirectory);
}

const settingsOf = (
  { node, browser, gateway }: Config,
  scratchDirectory: string,
): Parameters<typeof openHost>[0] => ({
  scratchDirectory,
  uidBase: node.uidBase,
  launchLimitMs: node.launchLimitMs,
  requireIsolation: node.requireIsolation,
  readablePaths: browser.readablePaths,
  limits: browser,
  usesCgroups: node.cgroups,
  usesMounts: node.scratchMounts,
  maxReceivedBytes: gateway.maxTotalReceivedBytes,
  named: {
    ...(browser.executable === null ? {} : { chromium: browser.executable }),
    ...(browser.headlessShell === null ? {} : { "headless-shell": browser.headlessShell }),
  },
});

const refusalOf = ({ refusal = "" }: BrowserHost, { node }: Config): string =>
  `no isolation that node.require_isolation (${node.requireIsolation}) allows holds here: ${refusal}`;

function whyNot(host: BrowserHost, config: Config, egressPart: EgressPart): string | undefined {
  if (Object.keys(host.executables).length === 0) return "no Chromium is installed";
  return host.walls === undefined ? refusalOf(host, config) : egressPart.unready;
}

function slotMeter({ poolStore }: Stores, metrics: Metrics): SlotPorts["meter"] {
  const labels = new PoolLabels(poolStore);
  // A label that cannot be read costs a count, never a launch.
  const count = (browser: BrowserId, add: (pool: string) => void): void =>
    void labels.ofBrowser(browser).then(add, () => {});
  return {
    launched: (browser) => count(browser.id, (pool) => metrics.launched(pool)),
    failed: (browser, reason) => count(browser.id, (pool) => metrics.launchFailed(pool, reason)),
  };
}
