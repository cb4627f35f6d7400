import type { TestRedis } from "../../support/store/redis.js";
import { openNamespaceNetwork } from "./namespace-network.js";
import { openProxiedNetwork } from "./proxied-network.js";
import { canHaveNamespaces } from "./switch.js";

/** Where one daemon runs: its part of a network that a test takes from it. */
export interface Machine {
  /** A command that becomes the daemon. */
  readonly through: readonly string[];
  readonly redisUrl: string;
  /** Its settings, for where it listens and how others reach it. */
  readonly settings: { readonly server: object; readonly node: object };
  /** Set where it has to listen there. */
  readonly port?: number;
  /** Nothing comes or goes any more: from and to Redis, the other daemons and us. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  /** Everything that it sends takes so much longer. */
  delay(ms: number): Promise<void>;
  /** To the other side of a network that is parted, with all others that are moved; and back. */
  move?(side: "this" | "other"): void;
}

/** Several machines and one Redis on this one. */
export interface FleetNetwork {
  /** Told in each row of the table: what was really cut. */
  readonly kind: "network namespaces" | "proxies on loopback" | "processes on loopback";
  readonly redis: RestartableRedis;
  join(): Promise<Machine>;
  close(): Promise<void>;
}

/** A Redis with an append-only file, which it finds again. */
export interface RestartableRedis extends Pick<TestRedis, "client"> {
  /** Ends it by SIGKILL. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** Network namespaces where this machine grants them. */
export const openFleetNetwork = (): Promise<FleetNetwork> =>
  canHaveNamespaces() ? openNamespaceNetwork() : openProxiedNetwork();
