import { Stops } from "../../base/stops.js";
import { type BrowserId, projectOf } from "../../base/ids.js";
import { patternsOf } from "../../base/net/hosts.js";
import { within } from "../../base/deadline.js";
import { findTool } from "../../browser/executable.js";
import type { BrowserHost } from "../../browser/host.js";
import { hasPrivateRoot } from "../../browser/isolation/rungs.js";
import type { Config } from "../../config/config.js";
import { makeReservedEndpoints } from "../../egress/reserved-endpoints.js";
import type { EgressSettings, ProxyListener } from "../../egress/parts.js";
import { canFindPeerUid } from "../../egress/peer/peer.js";
import { admitNamed, admitOnly, openPort } from "../../egress/port.js";
import { findNamespaces } from "../../egress/namespace/namespace.js";
import { BrowserEgress, type BrowserEgressPorts } from "../../node/browser-egress.js";
import { TrafficCounters } from "../../node/usage/traffic-counters.js";
import { openUpstream } from "../../registry/proxies/operations.js";
import type { LaunchTemplate } from "../../spec/launch-template.js";
import type { DaemonParts } from "../parts.js";

/** Builds the egress of a node's browsers. */
export interface EgressPart {
  open(browser: BrowserId, template: LaunchTemplate): Promise<BrowserEgress>;
  /** Why no browser can be let out as the settings demand. */
  readonly unready: string | undefined;
  readonly stops: Stops;
}

/** Longest head of a request: what Chromium sends with every cookie it may have. */
const headerBytes = 256 * 1024;
const countEveryMs = 1000;
/** A failover is followed within it. */
const endpointsEveryMs = 5000;

export async function openEgress(shared: DaemonParts, host: BrowserHost): Promise<EgressPart> {
  const { config, clock, endpoints, labels, metrics } = shared;
  const stops = new Stops(clock, config.stop.stepMs);
  const tier = await findTier(shared, host);
  if (tier.close) stops.add("network namespaces", tier.close);
  await endpoints.add({ host: "127.0.0.1", port: host.canary.port });
  stops.add(
    "reserved endpoints",
    clock.every(endpointsEveryMs, () => void endpoints.refresh()),
  );
  const counters = new TrafficCounters();
  stops.add(
    "traffic counters",
    clock.every(
      countEveryMs,
      () => void counters.report((partition) => labels.ofPartition(partition), metrics),
    ),
  );
  const ports: BrowserEgressPorts = { ...portsOf(shared, counters), openListener: tier.openListener };
  return {
    open: (browser, template) => BrowserEgress.open(browser, template, ports),
    unready: tier.unready,
    stops,
  };
}

function portsOf(
  { config, clock, log, stores, keys, metrics, endpoints, resolve }: DaemonParts,
  counters: TrafficCounters,
): Omit<BrowserEgressPorts, "openListener"> {
  const { privateHosts, privateHostsCeiling, proxyHosts, allowedProbeUrl } = config.egress;
  return {
    privateHosts,
    privateHostsCeiling: patternsOf(privateHostsCeiling),
    allowedProbeUrl,
    log,
    meter: metrics,
    openUpstream: (id) =>
      openUpstream({ store: stores.projects.of(projectOf(id)).proxies, seal: keys.seal }, id),
    egress: {
      settings: settingsOf(config),
      reserved: makeReservedEndpoints(endpoints.places),
      proxyHosts: patternsOf(proxyHosts),
      clock,
      log,
      meter: counters,
      resolve,
    },
  };
}

const settingsOf = ({ egress }: Config): EgressSettings => ({
  connectMs: egress.connectLimitMs,
  idleMs: egress.idleMs,
  maxConnections: egress.maxConnections,
  bytesPerSecond: egress.bytesPerSecond,
  headerBytes,
  curlBodyBytes: egress.curlBodyBytes,
});

/** What holds browsers of this node to their proxies. */
interface Tier {
  openListener(): Promise<ProxyListener>;
  readonly unready?: string;
  readonly close?: () => Promise<void>;
}

const peerLimitMs = 2000;

/**
 * Finds who may connect to a browser's proxy: browsers have uids of their own where the daemon may give them,
 * else the daemon's. Everybody may where this machine does not tell whose a connection is.
 */
async function findAdmission(
  { uids, clock }: BrowserHost,
  log: DaemonParts["log"],
): Promise<() => Pick<ProxyListener, "admits" | "admit">> {
  const canFindUid = await within(
    clock,
    { what: "finding whose a connection is", limitMs: peerLimitMs },
    canFindPeerUid(),
  ).catch(() => false);
  const own = process.geteuid?.();
  if (canFindUid && own !== undefined) return uids ? admitNamed : () => admitOnly(own);
  log.warn(
    {},
    "proxies of browsers take connections of every user of this machine: whose one is cannot be found out here",
  );
  return () => ({});
}

/**
 * `auto` takes what this machine grants; where a namespace is demanded and not granted, nothing is opened at
 * all.
 */
async function findTier({ config, clock, log }: DaemonParts, host: BrowserHost): Promise<Tier> {
  const { egress, node } = config;
  const makeAdmission = await findAdmission(host, log);
  const viaPort: Tier = { openListener: async () => openPort({ admission: makeAdmission() }) };
  if (egress.isolation === "proxy") return viaPort;
  // A private root gives Chromium its uid back. Without one it would be root of the user namespace, and
  // refuse to run.
  const unshare = host.walls && hasPrivateRoot(host.walls.rung) ? await findTool("unshare") : undefined;
  const namespaces = await findNamespaces({
    tools: { ...host.tools, ...(unshare && { unshare }) },
    clock,
    log,
    spare: node.parallelLaunches,
  });
  if (namespaces.kind === "available")
    return { openListener: namespaces.openNamespace, close: namespaces.close };
  if (egress.isolation === "auto") return viaPort;
  const unready =
    "egress.isolation demands a network namespace for each browser, " +
    `and none can be made here: ${namespaces.why}`;
  return { unready, openListener: () => Promise.reject(new Error(unready)) };
}
