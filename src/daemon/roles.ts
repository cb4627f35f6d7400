import { type NodeRole, openNode } from "./node.js";
import { announce } from "./announce.js";
import { openArchives } from "./archives.js";
import type { Config } from "../config/config.js";
import { apiKey, clusterSecret, nodeId, nodeOrigin } from "../config/kept.js";
import { urlOf } from "../config/resolve.js";
import { openControl } from "./control.js";
import { findLeaseEnd, findNodeAddress, nodeAddressOf, openSilentNodes, makeGateway } from "./gateway.js";
import type { Role, DaemonContext } from "./boot.js";
import { makeHostCheck } from "../base/net/host-check.js";
import type { Secret } from "../base/crypto/secret.js";
import { Stops } from "../base/stops.js";
import { makeDirectMessages } from "../gateway/relay/direct-messages.js";
import type { Gateway } from "../gateway/gateway.js";
import { listenAsNodeServer } from "../node/server.js";
import { PoolLabels } from "../pool/pool-labels.js";
import { gaugesOf } from "./gauges.js";
import { openStores, type Stores } from "./state.js";
import { Metrics, type Gauges } from "../observe/metrics.js";
import { packageRootOf, versionOf } from "./version.js";

const packageRoot = packageRootOf(import.meta.dirname);

/** A part that has its own stops, taken over whole. */
const take = <Part extends { readonly stops: Stops }>(stops: Stops, name: string, part: Part): Part => {
  stops.add(name, () => part.stops.run());
  return part;
};

/** Opens what a role needs, in order; where a part cannot be opened the others are stopped again. */
async function opened(
  config: Config,
  { clock }: DaemonContext,
  open: (stops: Stops) => Promise<void>,
): Promise<Stops> {
  const stops = new Stops(clock, config.drain.limitMs + config.stop.limitMs);
  try {
    await open(stops);
    return stops;
  } catch (error) {
    await stops.run().catch(() => {});
    throw error;
  }
}

/** Clients' way to any daemon; known for certain only once the port is. */
class PublicUrl {
  #port: number;
  constructor(private readonly config: Config) {
    this.#port = config.server.port;
  }
  readonly of = (): string => this.config.server.publicUrl ?? urlOf(this.config.server.host, this.#port);
  set(port: number): void {
    this.#port = port;
  }
}

type DirectWay = ReturnType<typeof makeDirectMessages>;
const directWay = (
  { log, clock }: DaemonContext,
  secret: Secret,
  { receiveDirectly: receive }: NodeRole,
): DirectWay => makeDirectMessages({ secret, clock, log, receive });

const frontOf = (gateway: Gateway, direct?: DirectWay) => ({
  request: (...[request, response]: Parameters<Gateway["request"]>): boolean =>
    direct?.request(request, response) || gateway.request(request, response),
  upgrade: (...[request, socket, head]: Parameters<Gateway["upgrade"]>): boolean => {
    gateway.upgrade(request, socket, head);
    return true;
  },
});

/** Metrics of this process; a lease is counted where the script ran that ended it. */
function openMetrics({ log, clock }: DaemonContext, stores: Stores, gauges?: Gauges): Metrics {
  const metrics = new Metrics({ clock, log, reachStore: stores.ping, ...(gauges && { gauges }) });
  const labels = new PoolLabels(stores.poolStore);
  stores.signals.on(
    "lease.ended",
    ({ partition, why }) =>
      void labels.ofPartition(partition).then(
        (pool) => metrics.leaseEnded(pool, why),
        () => {},
      ),
  );
  return metrics;
}

/** Everything in one process. */
const all: Role = (config, context) =>
  opened(config, context, async (stops) => {
    const { stores } = take(stops, "state", openStores(config, context));
    const [secret, node, origin] = await Promise.all([
      clusterSecret(config),
      nodeId(config),
      nodeOrigin(config),
    ]);
    const metrics = openMetrics(context, stores, gaugesOf(stores));
    const url = new PublicUrl(config);
    const silentNodes = openSilentNodes(config, context, stores);
    const wiring = {
      secret,
      metrics,
      publicUrl: url.of,
      findAddress: findNodeAddress(stores, node),
      findEnd: findLeaseEnd(stores),
      unreachable: silentNodes.suspect.bind(silentNodes),
    };
    const archives = take(stops, "archives", await openArchives(config, context));
    const agentPart = await openNode(config, context, {
      stores,
      parts: { ...wiring, node, origin, archives },
    });
    const { agent } = agentPart;
    const parts = {
      secret,
      metrics,
      publicUrl: url.of,
      front: frontOf(agent.gateway, directWay(context, secret, agent)),
      archives,
      silentNodes,
      version: versionOf(packageRoot),
      unready: agent.unready,
    };
    stops.add("agent", () => agentPart.stops.run());
    const { control } = take(stops, "control", await openControl(config, context, { stores, parts }));
    // Before the server: while leases end it takes their releases, and it waits for no client's socket. A
    // second run is the first.
    stops.add("agent", () => agentPart.stops.run());
    stops.add("waiting callers", control.dismiss);
    url.set(control.listening.port);
    await stores.contact();
    await agent.begin(nodeAddressOf(config, control.listening.port), {
      host: config.server.host,
      port: control.listening.port,
    });
    await control.begin();
    context.log.info({ url: url.of(), node }, "listening");
    announce({ config, url: url.of(), pools: control.pools, installRoot: packageRoot, ...context });
  });

/** HTTP and schedules; every client of a browser is sent on to its node. */
const control: Role = (config, context) =>
  opened(config, context, async (stops) => {
    const { stores } = take(stops, "state", openStores(config, context));
    const secret = await clusterSecret(config);
    const metrics = openMetrics(context, stores, gaugesOf(stores));
    const url = new PublicUrl(config);
    const silentNodes = openSilentNodes(config, context, stores);
    const wiring = {
      secret,
      metrics,
      publicUrl: url.of,
      findAddress: findNodeAddress(stores, undefined),
      findEnd: findLeaseEnd(stores),
      unreachable: silentNodes.suspect.bind(silentNodes),
    };
    const gateway = makeGateway(config, context, {
      wiring,
      local: {
        findBrowser: () => undefined,
        connect: () => Promise.resolve({ kind: "gone", reason: "no browser is here" }),
      },
    });
    const archives = take(stops, "archives", await openArchives(config, context));
    const parts = {
      secret,
      metrics,
      publicUrl: url.of,
      front: frontOf(gateway),
      archives,
      silentNodes,
      version: versionOf(packageRoot),
    };
    const opening = take(stops, "control", await openControl(config, context, { stores, parts }));
    stops.add("gateway", () => gateway.close());
    stops.add("waiting callers", opening.control.dismiss);
    url.set(opening.control.listening.port);
    await stores.contact();
    await opening.control.begin();
    context.log.info({ url: url.of() }, "listening");
  });

/** Browsers only. */
const node: Role = (config, context) =>
  opened(config, context, async (stops) => {
    const { log } = context;
    const { stores } = take(stops, "state", openStores(config, context));
    const [secret, id, origin] = await Promise.all([
      clusterSecret(config),
      nodeId(config),
      nodeOrigin(config),
    ]);
    const metrics = openMetrics(context, stores);
    const url = new PublicUrl(config);
    const archives = take(stops, "archives", await openArchives(config, context));
    const wiring = {
      secret,
      metrics,
      publicUrl: url.of,
      findAddress: findNodeAddress(stores, id),
      findEnd: findLeaseEnd(stores),
      node: id,
      origin,
      archives,
    };
    const { agent, stops: agentStops } = await openNode(config, context, { stores, parts: wiring });
    const { host, port, requestTimeoutMs, publicUrl } = config.server;
    const server = await listenAsNodeServer(
      { host, port, requestTimeoutMs },
      {
        gateway: agent.gateway,
        direct: directWay(context, secret, agent),
        log,
        unready: agent.unready,
        hasStore: stores.isConnected,
        metrics,
        key: await apiKey(config),
        hosts: makeHostCheck({ host, urls: [publicUrl, config.node.address] }),
      },
    );
    stops.add("server", () => server.close());
    stops.add("agent", () => agentStops.run());
    url.set(server.port);
    await stores.contact();
    await agent.begin(nodeAddressOf(config, server.port), { host, port: server.port });
    log.info({ url: url.of(), node: id }, "listening");
  });

export const roles: Readonly<Record<Config["role"], Role>> = { all, control, node };
