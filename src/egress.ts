import { Seal } from "./base/seal.js";
import { Stops } from "./base/stops.js";
import type { BrowserId } from "./base/ids.js";
import type { Host } from "./browser/host.js";
import type { Config } from "./config.js";
import { encryptionKey } from "./config/kept.js";
import { findNamespaces } from "./egress/namespace.js";
import { makeOwn, type OwnPlace } from "./egress/own.js";
import type { EgressSettings, Listener } from "./egress/parts.js";
import { openPort } from "./egress/port.js";
import { makeResolve } from "./egress/resolve.js";
import type { Surroundings } from "./ground.js";
import { placesOf, redisPlace } from "./own-places.js";
import { Door, type DoorPorts } from "./node/doors.js";
import type { NodeAddress } from "./node/ports.js";
import { Tally } from "./node/tally.js";
import { openUpstream } from "./registry/proxy-operations.js";
import { Labels } from "./pool/labels.js";
import type { LaunchConfig } from "./pool/launch-config.js";
import type { State } from "./state.js";
import type { Metrics } from "./telemetry/metrics.js";

/** How the browsers of a node are let out. */
export interface Ways {
  open(browser: BrowserId, config: LaunchConfig): Promise<Door>;
  /** Why no browser can be let out as the settings demand. */
  readonly unready: string | undefined;
  /** Where this daemon listens, closed to browsers from now on. */
  close(place: NodeAddress): Promise<void>;
}

interface Wiring {
  readonly state: State;
  readonly metrics: Metrics;
  readonly host: Host;
}

/** Longest head of a request: what Chromium sends with every cookie it may have. */
const headerBytes = 256 * 1024;
const tellEveryMs = 1000;

/** The egress of a node, wired by hand. */
export async function openWays(config: Config, { log, clock, redisUrl }: Surroundings, { state, metrics, host }: Wiring): Promise<{ ways: Ways; stops: Stops }> {
  const stops = new Stops(clock, config.stop.stepMs);
  const tier = await findTier(config, { host, log });
  const seal = new Seal(await encryptionKey(config));
  const own: OwnPlace[] = [{ host: "127.0.0.1", port: host.canary.port }, ...(await placesOf(redisPlace(redisUrl.reveal())))];
  const tally = new Tally();
  const labels = new Labels(state.homes);
  stops.add("tally", clock.every(tellEveryMs, () => void tally.tell((home) => labels.ofHome(home), metrics)));
  const { connectLimitMs, resolvers, privateHosts } = config.egress;
  const ports: DoorPorts = {
    privateHosts, allowedProbeUrl: config.egress.allowedProbeUrl, log, meter: metrics, openListener: tier.openListener, openUpstream: (id) => openUpstream({ store: state.proxies, seal }, id),
    egress: {
      settings: settingsOf(config), own: makeOwn(own), clock, log, meter: tally,
      resolve: makeResolve({ clock, limitMs: connectLimitMs, ...(resolvers && { servers: resolvers }) }),
    },
  };
  const ways: Ways = {
    open: (browser, launch) => Door.open(browser, launch, ports),
    unready: tier.unready,
    close: async (place) => void own.push(...(await placesOf(place))),
  };
  return { ways, stops };
}

const settingsOf = ({ egress }: Config): EgressSettings => ({
  connectMs: egress.connectLimitMs, idleMs: egress.idleMs, maxConnections: egress.maxConnections, bytesPerSecond: egress.bytesPerSecond,
  headerBytes, curlBodyBytes: egress.curlBodyBytes,
});

interface Tier {
  openListener(): Promise<Listener>;
  readonly unready?: string;
}

/** `auto` takes what this machine grants; where a namespace is demanded and not granted, nothing is opened at all. */
async function findTier({ egress }: Config, { host, log }: { host: Host; log: Surroundings["log"] }): Promise<Tier> {
  const viaPort: Tier = { openListener: async () => openPort() };
  if (egress.isolation === "proxy") return viaPort;
  const namespaces = await findNamespaces({ tools: host.tools, log });
  if (namespaces.kind === "available") return { openListener: namespaces.openNamespace };
  if (egress.isolation === "auto") return viaPort;
  const unready = `egress.isolation demands a network namespace for each browser, and none can be made here: ${namespaces.why}`;
  return { unready, openListener: () => Promise.reject(new Error(unready)) };
}
