import type { Config } from "../config/config.js";
import { urlOf } from "../config/resolve.js";
import type { DaemonContext } from "./boot.js";
import type { BrowserId, LeaseId, NodeId } from "../base/ids.js";
import type { Secret } from "../base/crypto/secret.js";
import { defaultGate } from "../gateway/gates/default-gate.js";
import { Gateway } from "../gateway/gateway.js";
import { defaultGatewayLimits, type GatewayLimits } from "../gateway/limits.js";
import type { GatewayMetrics, GatewayPorts, NodeAddress } from "../gateway/ports.js";
import { isReachable } from "../gateway/relay/reachability.js";
import { SilentNodes } from "../pool/silent-nodes.js";
import { lateAfterMs, type Stores } from "./state.js";
import type { Metrics } from "../observe/metrics.js";

export interface GatewayContext {
  readonly secret: Secret;
  readonly metrics: Metrics;
  publicUrl(): string;
  findAddress(browser: BrowserId): Promise<NodeAddress | undefined>;
  findEnd(browser: BrowserId, lease: LeaseId): Promise<string | undefined>;
  /** Told where a node could not be reached; absent in a process that lends no browsers. */
  unreachable?(address: NodeAddress): void;
}

/** A gateway over the browsers of this process; a control alone has none and sends every client on. */
export function makeGateway(
  config: Config,
  { clock, log }: DaemonContext,
  { wiring, local }: { wiring: GatewayContext; local: Pick<GatewayPorts, "findBrowser" | "connect"> },
): Gateway {
  return new Gateway({
    clock,
    log,
    secret: wiring.secret,
    gate: defaultGate,
    limits: gatewayLimitsOf(config),
    judgeScript: new URL("../gateway/gates/judge-worker.js", import.meta.url),
    get publicUrl() {
      return wiring.publicUrl();
    },
    ports: {
      ...local,
      findAddress: wiring.findAddress,
      findEnd: wiring.findEnd,
      ...(wiring.unreachable && { unreachable: wiring.unreachable }),
      metrics: meterOf(wiring.metrics),
    },
  });
}

export const gatewayLimitsOf = ({ gateway, egress }: Config): GatewayLimits => ({
  ...defaultGatewayLimits,
  messageBytes: gateway.maxMessageBytes,
  clients: gateway.maxClients,
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

export const openSilentNodes = (
  config: Config,
  { clock, log }: DaemonContext,
  { poolStore, projects, nodes }: Stores,
): SilentNodes =>
  new SilentNodes({
    poolStore,
    projects,
    nodes,
    clock,
    log,
    lookEveryMs: config.node.beatPeriodMs,
    keptMs: config.node.lostAfterMs,
    answers: (node) => isReachable(node, { clock, limitMs: lateAfterMs(config.node) }),
  });

/** Where the node of a session is reached, by its record and the node's own beat; never this node itself. */
export const findNodeAddress =
  ({ poolStore, nodes }: Stores, own: string | undefined) =>
  async (browser: BrowserId): Promise<NodeAddress | undefined> => {
    const found = await poolStore.findBrowser(browser);
    if (!found || found.browser.node === own) return undefined;
    return await findNode({ nodes })(found.browser.node);
  };

/** Where a node is reached, by its own beat. */
export const findNode =
  ({ nodes }: Pick<Stores, "nodes">) =>
  async (id: NodeId): Promise<NodeAddress | undefined> => {
    const facts = (await nodes.living()).find((node) => node.id === id);
    return facts && { host: facts.host, port: facts.port, ...(facts.isSecure && { isSecure: true }) };
  };

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
    const tombstone = await projects.findTombstone(browser);
    return tombstone && (tombstone.lease === lease ? tombstone.reason : "released");
  };

/** Where other daemons reach this node. */
export function nodeAddressOf(config: Pick<Config, "node" | "server">, port: number): NodeAddress {
  const { hostname, port: named, protocol } = new URL(config.node.address ?? urlOf(config.server.host, port));
  const isSecure = protocol === "https:";
  return {
    host: hostname.replaceAll(/^\[|\]$/g, ""),
    port: Number(named || (isSecure ? 443 : 80)),
    ...(isSecure && { isSecure }),
  };
}
