import type { NodeId } from "../../base/ids.js";
import type { Gateway } from "../../gateway/gateway.js";
import type { GatewayPorts } from "../../gateway/ports.js";
import { Standstill } from "../../gateway/standstill.js";
import { ArmedPasskeys } from "../../node/armed-passkeys.js";
import { Drain, RequestedDrain } from "../../node/drain/drain.js";
import type { Journal } from "../../node/journal/journal.js";
import type { Recovery } from "../../node/journal/recovery.js";
import { LeaseCommands } from "../../node/lease-commands.js";
import { EpochRegistration, LeaseHandover } from "../../node/lease-handover.js";
import { NetworkSync } from "../../node/network-sync.js";
import { PageFills } from "../../node/page-fills.js";
import { Reconciler } from "../../node/reconciler.js";
import type { Slots } from "../../node/slots.js";
import type { NameOwnership } from "../../node/name-ownership.js";
import type { AssetsPart } from "./browser-assets.js";
import { openGateway } from "../gateway.js";
import type { JournalPart } from "./journal.js";
import type { Config } from "../../config/config.js";
import type { DaemonParts } from "../parts.js";
import type { Stores } from "../stores.js";
import { keepPasskeyOrdered, openFillOrder, openPasskeyOrder, refuseLateOrder } from "../vaults.js";
import { makeRegister } from "./registration.js";

/** What a node does for the leases of its browsers, from a grant to the drain. */
export interface LeaseWork extends JournalPart {
  readonly nameOwnership: NameOwnership;
  readonly networkSync: NetworkSync;
  readonly registration: EpochRegistration;
  readonly handover: LeaseHandover;
  readonly leaseCommands: LeaseCommands;
  readonly passkeys: ArmedPasskeys;
  readonly reconciler: Reconciler;
  readonly drain: Drain;
  readonly requestedDrain: RequestedDrain;
  readonly standstill: Standstill;
}

export function openLeaseWork(
  shared: DaemonParts,
  {
    node,
    nameOwnership,
    slots,
    assets,
    ...kept
  }: Pick<LeaseWork, "nameOwnership" | "journal" | "recovery"> & {
    node: NodeId;
    slots: Slots;
    assets: AssetsPart;
  },
): LeaseWork {
  const { config, clock, log, stores, keys } = shared;
  const { poolStore, reports, projects, nodes, messages } = stores;
  const networkSync = new NetworkSync({ poolStore, reports, clock, log });
  const registration = new EpochRegistration({ node, slots, reports, log });
  const handover = new LeaseHandover({ slots, poolStore, reports, networkSync, registration, log });
  const ofLeases = { networkSync, registration, handover };
  const ofOrders = { seal: keys.seal, refuseLate: (order: string) => refuseLateOrder(shared, order) };
  const passkeys = new ArmedPasskeys({
    ...ofOrders,
    clock,
    log,
    openPasskey: (order) => openPasskeyOrder(shared, order),
    keepPasskey: (order, made) => keepPasskeyOrdered(shared, order, made),
  });
  const leaseCommands = new LeaseCommands({
    slots,
    poolStore,
    reports,
    log,
    ...ofLeases,
    ...assets.changing(slots, networkSync),
    passkeys,
    pageFills: new PageFills({ ...ofOrders, openFill: (order) => openFillOrder(shared, order) }),
    resetLimitMs: config.node.resetLimitMs,
    answer: ({ control, question }, { isDone: ok, ...why }) =>
      messages.toControl(control, { kind: "answer", question, ok, ...why }),
  });
  const holdsName = (): Promise<boolean> => nameOwnership.holds();
  const draining = { node, poolStore, projects, nodes, slots, clock, log, holdsName };
  const parts = { node, nameOwnership, slots, handover, ...kept };
  const reconciler = openReconciler({ config, clock, log, stores }, parts);
  const drains = { drain: new Drain(draining), requestedDrain: new RequestedDrain(draining) };
  const standstill = new Standstill(clock, config.node.lostAfterMs);
  return { nameOwnership, ...ofLeases, leaseCommands, passkeys, reconciler, standstill, ...drains, ...kept };
}

interface ReconcilerParts extends Pick<DaemonParts, "clock" | "log"> {
  readonly config: {
    readonly node: Pick<Config["node"], "expirePeriodMs" | "probePeriodMs" | "probeLimitMs">;
  };
  readonly stores: Pick<Stores, "poolStore" | "reports" | "projects" | "nodes" | "dataset">;
}

/** Holds what Redis says of this node's browsers against what runs here. */
export function openReconciler(
  { config, clock, log, stores }: ReconcilerParts,
  {
    journal,
    recovery,
    ...parts
  }: Pick<LeaseWork, "handover"> & {
    journal: Pick<Journal, "noteRead">;
    recovery: Pick<Recovery, "check">;
    node: NodeId;
    slots: Slots;
    nameOwnership: Pick<NameOwnership, "holds">;
  },
): Reconciler {
  const { poolStore, reports, projects, nodes, dataset } = stores;
  const { expirePeriodMs, probePeriodMs, probeLimitMs } = config.node;
  return new Reconciler({
    ...parts,
    recover: () => recovery.check(),
    listAgain: (partition) => dataset.listAgain(partition),
    noteRead: (partition, read) => journal.noteRead(partition, read),
    nodes,
    poolStore,
    projects,
    reports,
    clock,
    log,
    expirePeriodMs,
    probePeriodMs,
    probeLimitMs,
  });
}

interface NodeGatewayParts extends LeaseWork {
  readonly node: NodeId;
  readonly slots: Slots;
  readonly unreachable: GatewayPorts["unreachable"];
}

/** The gateway over the browsers of this node. */
export const openNodeGateway = (shared: DaemonParts, parts: NodeGatewayParts): Gateway =>
  openGateway(shared, {
    own: parts.node,
    standstill: parts.standstill,
    unreachable: parts.unreachable,
    onUnplaced: (browser) => void parts.reconciler.lookFor(browser),
    local: { findBrowser: (browser) => parts.slots.find(browser), connect: makeRegister(shared, parts) },
  });
