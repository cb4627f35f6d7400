import type { Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import type { NodeId } from "../../base/ids.js";
import { textOf } from "../../base/log.js";
import { shareRuns } from "../../base/concurrently.js";
import type { Stops } from "../../base/stops.js";
import type { BrowserHost } from "../../browser/host.js";
import type { Config } from "../../config/config.js";
import type { Gateway } from "../../gateway/gateway.js";
import type { NodeAddress } from "../../gateway/ports.js";
import type { LaunchHealth } from "../../node/launch-health.js";
import type { Recovery } from "../../node/journal/recovery.js";
import { RedisContact } from "../../node/redis-contact.js";
import type { MemoryShortage } from "../../node/usage/memory-shortage.js";
import type { Slots } from "../../node/slots.js";
import { claimNodeName, makeBeat, NodeNameTaken } from "../../node/name-ownership.js";
import type { BeatResult, NodeFacts } from "../../pool/ports/node-store.js";
import type { Job } from "../../pool/ports/pool-store.js";
import { startWorker } from "../../schedule/queues.js";
import { listenAsNode } from "../../store/messages.js";
import { Beats } from "./beats.js";
import { whyNot } from "./browser-host.js";
import { mostBrowsers } from "./browsers.js";
import type { EgressPart } from "./egress.js";
import type { LeaseWork } from "./lease-work.js";
import type { DaemonParts } from "../parts.js";

interface NodeWork extends LeaseWork {
  readonly node: NodeId;
  readonly slots: Slots;
  readonly gateway: Gateway;
  facts(): NodeFacts;
}

const endedDrainMs: Millis = 2000;

/**
 * Takes messages and jobs, looks after browsers, beats; what stops it first empties the node. Gives what
 * beats out of turn.
 */
export async function beginNodeWork(shared: DaemonParts, work: NodeWork, stops: Stops): Promise<() => void> {
  const { config, log, clock } = shared;
  const { nameOwnership, slots, passkeys, reconciler, recovery, drain, gateway } = work;
  await recovery.check();
  await takeName(shared, work, stops);
  // Beats go on meanwhile: what takes long to look at is no reason to be taken for lost.
  const settle = shareRuns(() => settleDoubt(work));
  const beat = makeBeat({
    clock,
    limitMs: config.node.lostAfterMs,
    beat: async () => {
      // What came before it may have taken longer than whoever closes the beats waits.
      if (beats.isClosed) return;
      const result = await recovery.beat(
        () => work.facts(),
        () => beats.isClosed,
      );
      if (!result) return;
      onBeat(result, work, shared);
      if (result.kind === "accepted" && work.standstill.doubt) void settle();
    },
    look: () => reconciler.look(),
  });
  const onFault = (error: unknown): void => log.warn({ error: textOf(error) }, "beat failed");
  const beats = new Beats(clock, () => beat().catch(onFault));
  await beat();
  await takeWork(shared, work, stops);
  const contact = openContact(shared, work);
  stops.add("contact", () => contact.close());
  stops.add("standstill", work.standstill.start());
  stops.add("reconciler", reconciler.start());
  // It beats until its browsers have ended: another would have its name meanwhile, and its records.
  stops.add("beat", () => beats.close());
  beats.start(config.node.beatPeriodMs);
  stops.add("passkeys", () => passkeys.close());
  stops.add("browsers", () =>
    nameOwnership.isOver
      ? slots.close({ saves: false })
      : drain.finish(config.drain.limitMs > 0 ? "drained" : "stopped"),
  );
  stops.add("gateway", () => gateway.close());
  stops.add("drain", () => drainToStop(shared, work, () => beat().catch(onFault)));
  return () => beats.soon();
}

/**
 * The node counts as living, so what it has lost is cleared. Browsers without a record are ended before their
 * clients are heard again; a look that was under way may have read records before this process stood still.
 */
async function settleDoubt({ reconciler, standstill }: LeaseWork): Promise<void> {
  if (!standstill.doubt) return;
  await reconciler.look();
  await reconciler.look();
  standstill.settle();
}

/** Lets leases end. Whatever a drain that was asked for still marks, or takes back, comes before that. */
async function drainToStop(shared: DaemonParts, work: NodeWork, beat: () => Promise<unknown>): Promise<void> {
  const { clock, config, hurry, log } = shared;
  const onFault = (error: unknown): void => log.warn({ error: textOf(error) }, "drain begun past a fault");
  const limit = { what: "the end of the drain before", limitMs: endedDrainMs };
  const closed = within(clock, limit, work.requestedDrain.close()).catch(onFault);
  // After this beat nothing more is placed here.
  await beat();
  await tellDrain(shared, work).catch(onFault);
  await closed;
  if (!work.nameOwnership.isOver) await work.drain.wait(config.drain.limitMs, hurry);
}

/** Sessions show from then on when they end at the latest. */
async function tellDrain(
  { config: { drain }, stores: { nodes } }: DaemonParts,
  { node, nameOwnership }: NodeWork,
): Promise<void> {
  if (drain.limitMs > 0 && !nameOwnership.isOver) await nodes.drain(node, drain.limitMs);
}

/**
 * Takes the node's name, and first clears what an earlier run has left: nothing is placed here before that.
 */
async function takeName(
  { config, log, clock, stopping, stores: { nodes, queues } }: DaemonParts,
  { node, nameOwnership, drain, facts }: NodeWork,
  stops: Stops,
): Promise<void> {
  await claimNodeName({
    ...config.node,
    clock,
    log,
    stopping,
    beat: () => nodes.beat({ ...facts(), canLaunch: false }),
    clear: () => drain.finishEarlierRun(),
  });
  await drain.forgetEarlierRun();
  await nodes.endDrain(node);
  await queues.drop(node);
  // Last of all: whoever is killed before has its queue dropped as a lost node.
  stops.add("name", async () => {
    if (!(await nameOwnership.holds())) return;
    await queues.drop(node);
    await nodes.forget(node);
  });
}

async function takeWork(
  { log, stores }: DaemonParts,
  { node, nameOwnership, slots, leaseCommands, reconciler, registration }: NodeWork,
  stops: Stops,
): Promise<void> {
  const onFault = (error: unknown): void => log.warn({ error: textOf(error) }, "node could not register yet");
  const listener = await listenAsNode(stores.listenerParts, node, {
    onMessage: (message) => leaseCommands.receive(message),
    onRegister: (partition) => void registration.register(partition).catch(onFault),
    // It may be another Redis that answers now.
    onAgain: () =>
      void registration
        .registerAll()
        .catch(onFault)
        .then(() => reconciler.look()),
  });
  stops.add("messages", () => listener.close());
  const carryOut = (job: Job): Promise<void> => {
    switch (job.kind) {
      case "launch":
        return slots.launch(job);
      case "retire":
        return slots.retire(job);
      case "reset":
        return leaseCommands.reset(job);
    }
  };
  const worker = await startWorker(stores.queueOptions, node, async (job) => {
    if (await nameOwnership.mayWork()) await carryOut(job);
  });
  stops.add("worker", () => worker.close());
}

export const openContact = (
  { config, clock, log, stores: { poolStore } }: Pick<DaemonParts, "config" | "clock" | "log" | "stores">,
  { node, slots, networkSync }: Pick<NodeWork, "node" | "slots" | "networkSync">,
): RedisContact =>
  new RedisContact({
    node,
    slots,
    poolStore,
    networkSync,
    clock,
    log,
    isCluster: config.redis.cluster,
    limitMs: config.egress.contactLimitMs,
    isolatedMs: config.node.isolatedLimitMs,
  });

/**
 * A node that was taken for lost goes on when what it held is cleared. One whose name another has taken
 * meanwhile ends.
 */
function onBeat(
  result: BeatResult,
  { nameOwnership, requestedDrain }: LeaseWork,
  { log, fail, stopping }: DaemonParts,
): void {
  if (result.kind === "accepted" && !stopping.aborted) requestedDrain.follow(result.drainMs);
  if (!nameOwnership.isOver && result.kind === "taken") fail(new NodeNameTaken(result.by));
  nameOwnership.onBeat(result);
  if (result.kind === "lost") log.warn({}, "node was taken for lost: it waits until what it held is cleared");
}

interface FactSources {
  readonly node: NodeId;
  readonly origin: string;
  readonly run: string;
  readonly config: Config;
  readonly address: NodeAddress;
  readonly stopping: AbortSignal;
  readonly health: LaunchHealth;
  readonly shortage: Pick<MemoryShortage, "isShort">;
  readonly recovery: Pick<Recovery, "restored">;
  readonly slots: Pick<Slots, "all">;
  readonly host: BrowserHost;
  readonly egress: EgressPart;
}

const labelsIn = (labels: readonly string[]): Record<string, string> =>
  Object.fromEntries(labels.map((label) => label.split("=", 2) as [string, string]));

/** What a beat says of this node. */
export function beatFactsOf({ node, origin, run, config, address, ...sources }: FactSources): NodeFacts {
  const { stopping, health, shortage, recovery, slots, host, egress } = sources;
  const obstacle = whyNot(host, config, egress);
  const outlastsDrain = slots.all().some((slot) => slot.mayOutlast(config.drain.limitMs));
  return {
    id: node,
    origin,
    run,
    ...address,
    memoryBytes: config.node.memoryBytes,
    maxBrowsers: mostBrowsers(config),
    isDraining: stopping.aborted,
    canLaunch: obstacle === undefined,
    engines: Object.keys(host.executables),
    ...(config.node.zone !== null && { zone: config.node.zone }),
    ...(config.node.labels.length > 0 && { labels: labelsIn(config.node.labels) }),
    ...(obstacle !== undefined && { obstacle }),
    ...(recovery.restored && { restored: recovery.restored }),
    ...(outlastsDrain && { outlastsDrain }),
    ...(shortage.isShort && { memoryIsShort: true }),
    ...(health.failing && { failing: health.failing }),
  };
}
