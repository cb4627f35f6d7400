import { newRequestId, type NodeId } from "../../base/ids.js";
import { makeHostCheck } from "../../base/net/host-check.js";
import { openWhole, Stops } from "../../base/stops.js";
import type { Config } from "../../config/config.js";
import { nodeId, nodeOrigin } from "../../config/data-directory.js";
import type { Gateway } from "../../gateway/gateway.js";
import type { GatewayPorts, NodeAddress } from "../../gateway/ports.js";
import { makeDirectMessages } from "../../gateway/relay/direct-messages.js";
import { listenAsNodeServer } from "../../node/server.js";
import { NameOwnership } from "../../node/name-ownership.js";
import { openBrowserAssets } from "./browser-assets.js";
import { openBrowserHost, whyNot } from "./browser-host.js";
import { openBrowsers } from "./browsers.js";
import { openEgress } from "./egress.js";
import { nodeAddressOf } from "../gateway.js";
import { openJournal } from "./journal.js";
import { beginNodeWork, beatFactsOf } from "./node-work.js";
import { openLeaseWork, openNodeGateway } from "./lease-work.js";
import type { DaemonParts } from "../parts.js";
import { makeRole, take } from "../shared.js";
import { whyUnready } from "../stores.js";

/** Runs browsers only. */
export const nodeRole = makeRole(async (shared, stops) => {
  const { config, stores, url, log, keys, metrics } = shared;
  const identity = await nodeIdentity(config);
  const agent = take(stops, "agent", await openNode(shared, { identity }));
  const { host, port, requestTimeoutMs, maxConnections, publicUrl } = config.server;
  const server = await listenAsNodeServer(
    { host, port, requestTimeoutMs, maxConnections },
    {
      gateway: agent.gateway,
      direct: agent.direct,
      log,
      unready: agent.unready,
      hasStore: stores.isConnected,
      metrics,
      key: keys.api,
      hosts: makeHostCheck({ host, urls: [publicUrl, config.node.address] }),
    },
  );
  stops.add("server", () => server.close());
  // The agent stops before the server, which serves clients until their leases have ended. A second run gives
  // the result of the first.
  stops.add("agent", () => agent.stops.run());
  url.set(server.port);
  await stores.contact();
  await agent.begin(nodeAddressOf(config, server.port), { host, port: server.port });
  log.info({ url: url.of(), node: identity.node }, "listening");
});

interface NodeIdentity {
  readonly node: NodeId;
  /** The same for all daemons of one data directory, until the machine boots. */
  readonly origin: string;
}

export async function nodeIdentity(config: Config): Promise<NodeIdentity> {
  const [node, origin] = await Promise.all([nodeId(config), nodeOrigin(config)]);
  return { node, origin };
}

interface Agent {
  readonly gateway: Gateway;
  /** Takes what Redis may not bring. */
  readonly direct: ReturnType<typeof makeDirectMessages>;
  readonly stops: Stops;
  /**
   * Takes work and says that it is alive. `listening`: where this daemon does listen; others may reach it by
   * another `address`.
   */
  begin(address: NodeAddress, listening: NodeAddress): Promise<void>;
  unready(): string | undefined;
}

interface NodeParts {
  readonly identity: NodeIdentity;
  readonly unreachable?: GatewayPorts["unreachable"];
}

/** A node: opened, then begun once its address is known. */
export async function openNode(shared: DaemonParts, parts: NodeParts): Promise<Agent> {
  const { config, clock } = shared;
  const stops = new Stops(clock, config.stop.stepMs + config.drain.limitMs);
  return await openWhole(stops, () => openAgent(shared, parts, stops));
}

async function openAgent(
  shared: DaemonParts,
  { identity, unreachable }: NodeParts,
  stops: Stops,
): Promise<Agent> {
  const { config, log, clock, stopping, stores, endpoints, keys } = shared;
  const { node } = identity;
  const run = newRequestId();
  const host = await openBrowserHost(shared, stops);
  const egress = take(stops, "egress", await openEgress(shared, host));
  const assets = openBrowserAssets(shared, host);

  let beatSoon = (): void => {};
  const { slots, ...known } = await openBrowsers(
    shared,
    { node, host, egress, assets, changed: () => beatSoon() },
    stops,
  );
  const { lostAfterMs } = config.node;
  const nameOwnership = new NameOwnership({ ...identity, run, nodes: stores.nodes, clock, lostAfterMs });
  const kept = await openJournal(shared, { node, slots }, stops);
  const leaseWork = openLeaseWork(shared, { node, nameOwnership, slots, assets, ...kept });
  const gateway = openNodeGateway(shared, { node, slots, unreachable, ...leaseWork });

  const begin = async (address: NodeAddress, listening: NodeAddress): Promise<void> => {
    await Promise.all([endpoints.add(address), endpoints.add(listening)]);
    await endpoints.refresh();
    const { recovery } = kept;
    const facts = () =>
      beatFactsOf({ ...identity, ...known, run, config, address, stopping, recovery, slots, host, egress });
    beatSoon = await beginNodeWork(shared, { node, slots, gateway, facts, ...leaseWork }, stops);
  };
  const receive = leaseWork.leaseCommands.receiveDirectly.bind(leaseWork.leaseCommands);
  return {
    gateway,
    direct: makeDirectMessages({ secret: keys.cluster, clock, log, receive }),
    stops,
    begin,
    unready: () => whyUnready(stopping, stores) ?? whyNot(host, config, egress),
  };
}
