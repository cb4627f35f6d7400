import type { TrafficCounts } from "./byte-counts.js";
import { dial } from "./dial.js";
import type { EgressParts } from "./parts.js";
import type { ConnectAttempt, TargetSocket, OpenRoute } from "./connections.js";
import type { TargetHost } from "./rules.js";
import type { Upstream } from "../registry/proxies/proxy.js";
import { dialThrough, dialUpstream } from "./upstream.js";

type ConnectorParts = Pick<EgressParts, "resolve" | "reserved" | "proxyHosts" | "clock"> & {
  readonly counts: TrafficCounts;
};

/** Makes the connections of one browser, once they are judged, and has their bytes counted. */
export class Connector {
  constructor(private readonly parts: ConnectorParts) {}

  /** Connects to the target itself, directly or through an upstream. */
  async tunnel(target: TargetHost, route: OpenRoute, attempt: ConnectAttempt): Promise<TargetSocket> {
    if (route.kind === "direct") return await this.direct(route.addresses, target.port, attempt);
    return this.#counted({ socket: await dialThrough(route.upstream, target, this.#options(attempt)) });
  }

  async direct(
    addresses: readonly string[],
    port: number,
    { until, signal }: ConnectAttempt,
  ): Promise<TargetSocket> {
    return this.#counted(await dial(addresses, port, { clock: this.parts.clock, until, signal }));
  }

  /** Connects to an HTTP proxy, which is then sent requests in absolute form. */
  async upstream(upstream: Upstream, attempt: ConnectAttempt): Promise<TargetSocket> {
    return this.#counted({ socket: await dialUpstream(upstream, this.#options(attempt)) });
  }

  #options({ until, signal }: ConnectAttempt) {
    const { clock, resolve, reserved, proxyHosts } = this.parts;
    return { connectMs: until - clock.monotonic(), clock, signal, resolve, reserved, proxyHosts };
  }

  #counted(connection: TargetSocket): TargetSocket {
    // The next owner listens too; until then a reset must not end the process.
    connection.socket.on("error", () => {});
    this.parts.counts.track(connection.socket);
    return connection;
  }
}
