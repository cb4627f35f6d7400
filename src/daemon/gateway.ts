import type { Config } from "../config/config.js";
import { urlOf } from "../config/resolve.js";
import { type BrowserId, type LeaseId, type NodeId, partitionOf } from "../base/ids.js";
import { defaultGate } from "../gateway/gates/default-gate.js";
import { Gateway } from "../gateway/gateway.js";
import { defaultGatewayLimits, type GatewayLimits } from "../gateway/limits.js";
import type { Standstill } from "../gateway/standstill.js";
import type { GatewayMetrics, GatewayPorts, NodeAddress } from "../gateway/ports.js";
import { KnownAddresses } from "../gateway/relay/known-addresses.js";
import { isReachable } from "../gateway/relay/post.js";
import type { NodeFacts } from "../pool/ports/node-store.js";
import { SilentNodes } from "../pool/silent-nodes.js";
import type { DaemonParts } from "./parts.js";
import { lateAfterMs, type Stores } from "./stores.js";
import type { Metrics } from "../observe/metrics.js";

interface DaemonGatewayParts {
  readonly standstill?: Standstill;
  /** The browsers of this process. */
  readonly local: Pick<GatewayPorts, "findBrowser" | "connect">;
  /** The node in this process, to which no client is sent on. */
  readonly own?: NodeId;
  /** Called when a node could not be reached; absent in a process that lends no browsers. */
  readonly unreachable?: GatewayPorts["unreachable"];
  /** Called with a browser whose record names no other node, and which may have been lost here. */
  onUnplaced?(browser: BrowserId): void;
}

/** What a control without a node has: it sends every client on. */
export const browsersElsewhere: DaemonGatewayParts["local"] = {
  findBrowser: () => undefined,
  connect: () => Promise.resolve({ kind: "gone", reason: "no browser is here" }),
};

export function openGateway(
  { config, clock, log, stores, keys, metrics, url }: DaemonParts,
  { local, own, unreachable, onUnplaced, standstill }: DaemonGatewayParts,
): Gateway {
  const known = new KnownAddresses({
    clock,
    limitMs: config.redis.commandTimeoutMs,
    find: findNodeAddress(stores, own),
  });
  return new Gateway({
    clock,
    log,
    secret: keys.cluster,
    gate: defaultGate,
    ...(standstill && { standstill }),
    limits: gatewayLimitsOf(config),
    judgeScript: new URL("../gateway/gates/judge-worker.js", import.meta.url),
    mapperScript: new URL("../gateway/bidi/mapper-process.js", import.meta.url),
    get publicUrl() {
      return url.of();
    },
    ports: {
      ...local,
      async findAddress(browser) {
        const address = await known.find(browser);
        if (!address) onUnplaced?.(browser);
        return address;
      },
      findEnd: findLeaseEnd(stores),
      ...(unreachable && { unreachable }),
      metrics: meterOf(metrics),
    },
  });
}

export const gatewayLimitsOf = ({ gateway, egress }: Config): GatewayLimits => ({
  ...defaultGatewayLimits,
  messageBytes: gateway.maxMessageBytes,
  clients: gateway.maxClients,
  bidiClients: { lease: gateway.maxBidiClients, daemon: gateway.maxTotalBidiClients },
  bidiHeapBytes: gateway.bidiHeapBytes,
  cutBytes: gateway.maxBufferedBytes,
  holdMs: gateway.stalledMs,
  sessions: { client: gateway.maxSessions, browser: gateway.maxBrowserSessions },
  unfinished: { browserBytes: gateway.maxUnfinishedBytes, daemonBytes: gateway.maxTotalUnfinishedBytes },
  unread: { browserBytes: gateway.maxBrowserBufferedBytes, daemonBytes: gateway.maxTotalBufferedBytes },
  curl: { browserBytes: egress.curlBrowserBytes, daemonBytes: egress.curlTotalBytes },
  pingMs: gateway.pingMs,
  connectMs: gateway.upgradeLimitMs / 2,
  answerMs: gateway.upgradeLimitMs,
  readyMs: gateway.startUrlWaitMs,
  restartMs: gateway.upgradeLimitMs / 2,
});

const meterOf = (metrics: Metrics): GatewayMetrics => ({
  clientOpened: () => metrics.connected(),
  clientClosed: () => metrics.disconnected(),
  received: (bytes) => metrics.carried("to_browser", bytes),
  sent: (bytes) => metrics.carried("to_client", bytes),
  refused: (method) => metrics.refused(method),
});

export const openSilentNodes = ({ config, clock, log, stores }: DaemonParts): SilentNodes =>
  new SilentNodes({
    poolStore: stores.poolStore,
    projects: stores.projects,
    nodes: stores.nodes,
    clock,
    log,
    lookEveryMs: config.node.beatPeriodMs,
    keptMs: config.node.lostAfterMs,
    answers: (node) => isReachable(node, { clock, limitMs: lateAfterMs(config.node) }),
  });

/**
 * Finds where the node of a session is reached, by the session's record and the node's own beat; never gives
 * this node itself.
 */
export const findNodeAddress =
  ({ poolStore, nodes }: Stores, own: string | undefined) =>
  async (browser: BrowserId): Promise<NodeAddress | undefined> => {
    const found = await poolStore.findBrowser(browser);
    if (!found || found.browser.node === own) return undefined;
    return await findNode({ nodes })(found.browser.node);
  };

/** Finds where a node is reached, by its own beat. */
const findNode =
  ({ nodes }: Pick<Stores, "nodes">) =>
  async (id: NodeId): Promise<NodeAddress | undefined> => {
    const facts = await nodes.holder(id);
    return facts && addressIn(facts);
  };

/**
 * Finds where a node takes what Redis may not have brought it. It goes by what was known last and does not
 * ask Redis, which may be what is sick.
 */
export const findNodeDirectly =
  (stores: Pick<Stores, "nodes">, silentNodes: Pick<SilentNodes, "lastKnown">) =>
  async (id: NodeId): Promise<NodeAddress | undefined> => {
    const known = silentNodes.lastKnown(id);
    return known ? addressIn(known) : await findNode(stores)(id);
  };

const addressIn = ({ host, port, isSecure }: NodeFacts): NodeAddress => ({
  host,
  port,
  ...(isSecure && { isSecure }),
});

/**
 * Why a lease is over: its browser's record tells, or its tombstone, where the session ended with it; else it
 * was released.
 */
export const findLeaseEnd =
  ({ poolStore, projects }: Pick<Stores, "poolStore" | "projects">) =>
  async (browser: BrowserId, lease: LeaseId): Promise<string | undefined> => {
    // The record first: what it no longer tells has become a tombstone by then.
    const reason = await poolStore.findLeaseEnd(browser, lease);
    if (reason !== undefined) return reason;
    const tombstone = await projects.at(partitionOf(browser)).findTombstone(browser);
    return tombstone && (tombstone.lease === lease ? tombstone.reason : "released");
  };

/** The address at which other daemons reach this node. */
export function nodeAddressOf(config: Pick<Config, "node" | "server">, port: number): NodeAddress {
  const { hostname, port: named, protocol } = new URL(config.node.address ?? urlOf(config.server.host, port));
  const isSecure = protocol === "https:";
  return {
    host: hostname.replaceAll(/^\[|\]$/g, ""),
    port: Number(named || (isSecure ? 443 : 80)),
    ...(isSecure && { isSecure }),
  };
}
