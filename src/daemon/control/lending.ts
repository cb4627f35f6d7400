import { type ControlId, newControlId } from "../../base/ids.js";
import type { Stops } from "../../base/stops.js";
import { makeSendDirectly } from "../../gateway/relay/direct-messages.js";
import { makeAskCurl } from "../../gateway/relay/remote-curl.js";
import { makeAskNode } from "../../lease/ask-node.js";
import { PendingCuts } from "../../lease/cuts.js";
import { Grants } from "../../lease/grants.js";
import { Waiters } from "../../lease/waiters.js";
import { leasedParser } from "../../pool/browser.js";
import type { AskCurl, ControlMessage } from "../../pool/ports/messages.js";
import type { SilentNodes } from "../../pool/silent-nodes.js";
import { findNodeAddress, findNodeDirectly } from "../gateway.js";
import type { DaemonParts } from "../parts.js";

/** Who waits at this control, what it has granted, and how it asks nodes. */
export interface Lending {
  readonly control: ControlId;
  readonly waiters: Waiters;
  readonly grants: Grants;
  readonly askNode: ReturnType<typeof makeAskNode>["ask"];
  readonly askCurl: AskCurl;
  onMessage(message: ControlMessage): void;
}

export function openLending(shared: DaemonParts, silentNodes: SilentNodes, stops: Stops): Lending {
  const { config, clock, log, stores, keys } = shared;
  const { poolStore, projects, messages, signals } = stores;
  const control = newControlId();
  const waiters = new Waiters(clock);
  const beatPeriodMs = config.acquire.controlBeatPeriodMs;
  const grants = new Grants(control, { poolStore, projects, waiters, clock, log, beatPeriodMs });
  stops.add("grants", () => grants.close());

  const remote = { secret: keys.cluster, clock, log, unreachable: silentNodes.suspect.bind(silentNodes) };
  const sendDirectly = makeSendDirectly({ ...remote, findNode: findNodeDirectly(stores, silentNodes) });
  const cuts = new PendingCuts({ poolStore, clock, log, sendDirectly });
  signals.on("lease.cut", (cut) => cuts.watch(cut));
  stops.add("cuts", () => cuts.close());

  const requests = makeAskNode(control, { messages, clock, sendDirectly });
  const askCurl = makeAskCurl({ ...remote, findAddress: findNodeAddress(stores, undefined) });
  const onMessage = (message: ControlMessage): void =>
    message.kind === "answer" ? requests.answered(message) : deliver({ waiters, grants }, message);
  return { control, waiters, grants, askNode: requests.ask, askCurl, onMessage };
}

/** This is exported for tests. */
export function deliver(
  { waiters, grants }: { waiters: Waiters; grants: Grants },
  message: Exclude<ControlMessage, { kind: "answer" }>,
): void {
  if (waiters.deliver(message.connection, message) || message.kind !== "granted") return;
  const { id, lease } = leasedParser.json(message.browser);
  grants.unwanted(lease.id, id);
}
