import type { Server, Socket } from "node:net";
import type { Clock, Millis } from "../base/clock.js";
import type { BrowserId } from "../base/ids.js";
import type { Log } from "../base/log.js";
import type { DeniedBy, ProxyHostParts } from "./rules.js";

export interface EgressSettings {
  /**
   * The limit for reaching one target, from the dialling to the end of an upstream's handshake, all its
   * addresses together.
   */
  readonly connectMs: Millis;
  /** A tunnel or request on which nothing moved for so long is cut; at most a quarter later. */
  readonly idleMs: Millis;
  /** Tunnels and requests of one browser at a time. */
  readonly maxConnections: number;
  /** What one browser may carry, both directions together; null: no limit. */
  readonly bytesPerSecond: number | null;
  /** Longest head of a request. */
  readonly headerBytes: number;
  /** Largest body that `fetch` returns; left out: 10 MiB. */
  readonly curlBodyBytes?: number;
}

export interface EgressUsage {
  readonly requests: number;
  readonly denied: Readonly<Partial<Record<DeniedBy, number>>>;
  /** Bytes that the browser sent, as written to the outer sockets. */
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** Tunnels and requests that are open now. */
  readonly connections: number;
}

export interface Meter {
  request(browser: BrowserId, outcome: "direct" | "upstream" | DeniedBy): void;
  carried(browser: BrowserId, direction: "sent" | "received", bytes: number): void;
}

export interface EgressParts extends ProxyHostParts {
  readonly settings: EgressSettings;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** Told of each request that did not get through. It may come very often. */
  refused?(host: string, why: DeniedBy | "failed"): void;
}

/** Listens for one browser's requests; each tier makes its own kind. */
export interface ProxyListener {
  readonly tier: "namespace" | "proxy";
  /** The value of --proxy-server; in the proxy tier it is known once the proxy listens. */
  readonly proxyUrl: string;
  /** /proc path of the network namespace; absent in the proxy tier. */
  readonly namespace?: string;
  /** /proc path of the user namespace that owns it, where it was made without root. */
  readonly userNamespace?: string;
  listen(server: Server): Promise<void>;
  /**
   * Whether the connection is the browser's own; undefined where no process holds its other end any more.
   * Never rejects. Left out: nobody else can connect.
   */
  admits?(socket: Socket): Promise<boolean | undefined>;
  /**
   * Admits connections of the browser's uid until the returned function is called; before, nobody's are. Left
   * out: the browser has no uid of its own, or is the only one that can connect.
   */
  admit?(uid: number): () => void;
  /** Has to be called after the server has closed. */
  close(): void;
}

export interface CurlRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly timeoutMs: Millis;
  /** Called with how much of the answer's body is held by now. */
  kept?(bytes: number): void;
}

export interface CurlAnswer {
  readonly status: number;
  /** The names are in lower case. */
  readonly headers: Record<string, string[]>;
  readonly body: Buffer;
  readonly durationMs: Millis;
}
