import { join } from "node:path";
import { Seal } from "../../../src/base/crypto/seal.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { newNodeId, newRequestId, type NodeId } from "../../../src/base/ids.js";
import type { Config } from "../../../src/config/config.js";
import { makeReservedEndpoints } from "../../../src/egress/reserved-endpoints.js";
import type { DaemonContext } from "../../../src/daemon/boot.js";
import { Bridge } from "../../../src/gateway/cdp/bridge.js";
import type { RedisContact } from "../../../src/node/redis-contact.js";
import { BrowserEgress } from "../../../src/node/browser-egress.js";
import { Drain } from "../../../src/node/drain/drain.js";
import { NetworkSync } from "../../../src/node/network-sync.js";
import { ProfileSaver } from "../../../src/node/profile-saver.js";
import { EpochRegistration, LeaseHandover } from "../../../src/node/lease-handover.js";
import { NameOwnership } from "../../../src/node/name-ownership.js";
import { Slots } from "../../../src/node/slots.js";
import type { NodeFacts } from "../../../src/pool/ports/node-store.js";
import type { NodeMessage } from "../../../src/pool/ports/messages.js";
import { startWorker } from "../../../src/schedule/queues.js";
import { Beats } from "../../../src/daemon/node/beats.js";
import { openJournal } from "../../../src/daemon/node/journal.js";
import { openReconciler } from "../../../src/daemon/node/lease-work.js";
import { openContact } from "../../../src/daemon/node/node-work.js";
import { openStores, type Stores } from "../../../src/daemon/stores.js";
import { listenAsNode } from "../../../src/store/messages.js";
import { silentListener, simulatedBrowser } from "./browser.js";
import { browsersPerNode } from "./sizes.js";
import { unstoredTelemetry } from "../../support/telemetry/recorder.js";

const memoryBytes = 2 ** 40;

/** All that a node asks of Redis, for browsers that are simulated. */
export interface SimulatedNode {
  readonly id: NodeId;
  readonly redisContact: RedisContact;
  /** Behaves as after SIGTERM: leases may end, and what is idle is replaced elsewhere. */
  drain(): void;
}

function slotsOf({ poolStore, reports }: Stores, { clock, log, hurry }: DaemonContext): Slots {
  const profileSaver = new ProfileSaver({
    profiles: { save: async () => Promise.reject(new Error("nothing is saved here")) },
    pack: () => {
      throw new Error("nothing is packed here");
    },
    saved: async () => {},
    meter: { profileSaved() {} },
    clock,
    log,
    limitMs: 1000,
    hurriedMs: 1000,
    hurry,
    parallelSaves: 1,
  });
  const egress = {
    settings: {
      connectMs: 1000,
      idleMs: 600_000,
      maxConnections: 1,
      bytesPerSecond: null,
      headerBytes: 1024,
    },
    resolve: async () => [],
    reserved: makeReservedEndpoints([]),
    proxyHosts: [],
    clock,
    log,
    meter: { request() {}, carried() {} },
  };
  return new Slots({
    poolStore,
    reports,
    profileSaver,
    clock,
    log,
    parallelLaunches: 100,
    launchLimitMs: 90_000,
    maxBrowsers: 10_000,
    maxBytes: memoryBytes,
    fillWorkspaceOf: () => undefined,
    openBrowserEgress: (browser, template) =>
      BrowserEgress.open(browser, template, {
        privateHosts: [],
        privateHostsCeiling: [],
        allowedProbeUrl: null,
        log,
        meter: { opened() {}, closed() {} },
        openUpstream: async () => undefined,
        openListener: async () => silentListener(),
        egress,
      }),
    openLaunch: async (spec, { onStage, signal }) => {
      const browser = simulatedBrowser(spec);
      onStage("answer");
      return { room: { directories: browser.directories, uid: null, signal }, start: async () => browser };
    },
    makeTelemetry: unstoredTelemetry,
    makeBridge: (chromium) => new Bridge(chromium.pipe, clock),
    keepRecording: async () => {},
    meter: { launched() {}, failed() {} },
    health: { launched() {}, failed() {} },
  });
}

const keys = { seal: new Seal(new Secret("a secret of the benches")) };
const metrics = { epochs: { recovered() {} } };

/** What src/daemon/node/node.ts wires, but for Chromium and its clients. */
export async function startNode(config: Config, context: DaemonContext): Promise<SimulatedNode> {
  const { clock, log } = context;
  const { stores, stops } = openStores(config, context);
  await stores.contact();
  const { poolStore, reports, nodes, messages } = stores;
  const { lostAfterMs, beatPeriodMs } = config.node;
  const node = newNodeId();
  const identity = { origin: node, run: newRequestId() };
  const slots = slotsOf(stores, context);
  const networkSync = new NetworkSync({ poolStore, reports, clock, log });
  const nameOwnership = new NameOwnership({ ...identity, node, nodes, clock, lostAfterMs });
  const drain = new Drain({ ...stores, node, slots, clock, log, holdsName: () => nameOwnership.holds() });
  // All nodes are one process with one data directory.
  const owning = { ...config, dataDir: join(config.dataDir, node) };
  const shared = { config: owning, clock, log, stores, keys, metrics };
  const kept = await openJournal(shared, { node, slots }, stops);
  let isDraining = false;
  const beat = async (): Promise<void> => {
    const result = await kept.recovery.beat(facts, () => false);
    if (result) nameOwnership.onBeat(result);
  };
  const facts = (): NodeFacts => ({
    id: node,
    ...identity,
    host: "127.0.0.1",
    port: 1,
    memoryBytes,
    maxBrowsers: browsersPerNode,
    isDraining,
    canLaunch: true,
    engines: ["chromium"],
  });
  await drain.forgetEarlierRun();
  await beat();
  const onFault = (error: unknown): void => log.warn({ node, error: String(error) }, "simulated node failed");
  const receive = async (message: NodeMessage): Promise<void> => {
    const slot = slots.find(message.browser);
    if (slot && message.kind === "fence") return void (await reports.freed(slot.id, message.claim));
    if (!slot || message.kind !== "ask" || message.what.kind !== "network") return;
    const ok = await networkSync.sync(slot, message.what.revision);
    await messages.toControl(message.control, { kind: "answer", question: message.question, ok });
  };
  await listenAsNode(stores.listenerParts, node, {
    onMessage: (message) => void receive(message).catch(onFault),
  });
  await startWorker(stores.queueOptions, node, async (job) => {
    if (await nameOwnership.mayWork()) await (job.kind === "retire" ? slots.retire(job) : slots.launch(job));
  });
  const redisContact = openContact(shared, { node, slots, networkSync });
  const registration = new EpochRegistration({ node, slots, reports, log });
  const handover = new LeaseHandover({ slots, poolStore, reports, networkSync, registration, log });
  openReconciler(shared, { node, nameOwnership, slots, handover, ...kept }).start();
  const beats = new Beats(clock, () => beat().catch(onFault));
  beats.start(beatPeriodMs);
  return {
    id: node,
    redisContact,
    drain: () => {
      isDraining = true;
      void beat()
        .then(() => drain.wait(600_000, context.hurry))
        .catch(onFault);
    },
  };
}
