import { within } from "../base/deadline.js";
import { Seal } from "../base/crypto/seal.js";
import { Stops } from "../base/stops.js";
import type { BrowserId } from "../base/ids.js";
import { findTool } from "../browser/executable.js";
import type { BrowserHost } from "../browser/host.js";
import { hasPrivateRoot } from "../browser/isolation/rungs.js";
import type { Config } from "../config/config.js";
import { encryptionKey } from "../config/kept.js";
import { findNamespaces } from "../egress/namespace/namespace.js";
import { makeReservedEndpoints } from "../egress/reserved-endpoints.js";
import type { EgressSettings, Listener } from "../egress/parts.js";
import { canFindPeerUid } from "../egress/peer.js";
import { openPort } from "../egress/port.js";
import { makeResolve } from "../egress/resolve.js";
import type { DaemonContext } from "./boot.js";
import { EndpointWatch, redisEndpoints } from "./reserved-endpoints.js";
import { BrowserEgress, type BrowserEgressPorts } from "../node/browser-egress.js";
import type { NodeAddress } from "../gateway/ports.js";
import { TrafficCounters } from "../node/traffic-counters.js";
import { openUpstream } from "../registry/proxies/operations.js";
import { patternsOf } from "../base/net/hosts.js";
import { PoolLabels } from "../pool/pool-labels.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import type { Stores } from "./state.js";
import type { Metrics } from "../observe/metrics.js";

/** How the browsers of a node are let out. */
export interface EgressPart {
  open(browser: BrowserId, template: LaunchTemplate): Promise<BrowserEgress>;
  /** Why no browser can be let out as the settings demand. */
  readonly unready: string | undefined;
  /** Where this daemon listens, closed to browsers from now on. */
  close(place: NodeAddress): Promise<void>;
}

interface Wiring {
  readonly stores: Stores;
  readonly metrics: Metrics;
  readonly host: BrowserHost;
}

/** Longest head of a request: what Chromium sends with every cookie it may have. */
const headerBytes = 256 * 1024;
const tellEveryMs = 1000;
/** A failover is followed within it. */
const ownPlacesMs = 5000;

/** The egress of a node, wired by hand. */
export async function openEgress(
  config: Config,
  { log, clock, redisUrl }: DaemonContext,
  { stores, metrics, host }: Wiring,
): Promise<{ egressPart: EgressPart; stops: Stops }> {
  const stops = new Stops(clock, config.stop.stepMs);
  const tier = await findTier(config, { host, clock, log });
  if (tier.close) stops.add("network namespaces", tier.close);
  const seal = new Seal(await encryptionKey(config));
  const own = new EndpointWatch({ clock, log, sources: [stores.redisMembers, () => stores.nodes.living()] });
  await Promise.all([
    own.add({ host: "127.0.0.1", port: host.canary.port }),
    ...redisEndpoints(redisUrl.reveal()).map((place) => own.add(place)),
  ]);
  stops.add(
    "own places",
    clock.every(ownPlacesMs, () => void own.refresh()),
  );
  const counters = new TrafficCounters();
  const labels = new PoolLabels(stores.poolStore);
  stops.add(
    "tally",
    clock.every(tellEveryMs, () => void counters.tell((partition) => labels.ofPartition(partition), metrics)),
  );
  const { connectLimitMs, resolvers, privateHosts, privateHostsCeiling } = config.egress;
  const ports: BrowserEgressPorts = {
    privateHosts,
    privateHostsCeiling: patternsOf(privateHostsCeiling),
    allowedProbeUrl: config.egress.allowedProbeUrl,
    log,
    meter: metrics,
    openListener: tier.openListener,
    openUpstream: (id) => openUpstream({ store: stores.proxies, seal }, id),
    egress: {
      settings: settingsOf(config),
      reserved: makeReservedEndpoints(own.places),
      clock,
      log,
      meter: counters,
      resolve: makeResolve({ clock, limitMs: connectLimitMs, ...(resolvers && { servers: resolvers }) }),
    },
  };
  const egressPart: EgressPart = {
    open: (browser, launch) => BrowserEgress.open(browser, launch, ports),
    unready: tier.unready,
    async close(place) {
      await own.add(place);
      await own.refresh();
    },
  };
  return { egressPart, stops };
}

const settingsOf = ({ egress }: Config): EgressSettings => ({
  connectMs: egress.connectLimitMs,
  idleMs: egress.idleMs,
  maxConnections: egress.maxConnections,
  bytesPerSecond: egress.bytesPerSecond,
  headerBytes,
  curlBodyBytes: egress.curlBodyBytes,
});

type TierParts = Pick<DaemonContext, "clock" | "log"> & { readonly host: BrowserHost };

interface Tier {
  openListener(): Promise<Listener>;
  readonly unready?: string;
  readonly close?: () => Promise<void>;
}

const peerLimitMs = 2000;

/**
 * Whose connections may be a browser's: of root's uids for them, else our own. undefined where this machine
 * does not tell whose one is.
 */
async function findPeerRule(
  { uids, clock }: BrowserHost,
  log: DaemonContext["log"],
): Promise<((uid: number) => boolean) | undefined> {
  const isTold = await within(
    clock,
    { what: "finding whose a connection is", limitMs: peerLimitMs },
    canFindPeerUid(),
  ).catch(() => false);
  if (isTold) return (uid) => (uids ? uids.owns(uid) : uid === process.geteuid?.());
  log.warn(
    {},
    "proxies of browsers take connections of every user of this machine: whose one is cannot be found out here",
  );
  return undefined;
}

/**
 * `auto` takes what this machine grants; where a namespace is demanded and not granted, nothing is opened at
 * all.
 */
async function findTier({ egress, node }: Config, { host, clock, log }: TierParts): Promise<Tier> {
  const mayConnect = await findPeerRule(host, log);
  const viaPort: Tier = { openListener: async () => openPort({ ...(mayConnect && { mayConnect }) }) };
  if (egress.isolation === "proxy") return viaPort;
  // Without a private root, which gives it a uid back, Chromium would be root of the user namespace, and
  // refuse to run.
  const unshare = host.walls && hasPrivateRoot(host.walls.rung) ? await findTool("unshare") : undefined;
  const namespaces = await findNamespaces({
    tools: { ...host.tools, ...(unshare && { unshare }) },
    clock,
    log,
    stock: node.parallelLaunches,
  });
  if (namespaces.kind === "available")
    return { openListener: namespaces.openNamespace, close: namespaces.close };
  if (egress.isolation === "auto") return viaPort;
  const unready = `egress.isolation demands a network namespace for each browser, and none can be made here: ${namespaces.why}`;
  return { unready, openListener: () => Promise.reject(new Error(unready)) };
}
