import type { ArchiveCache, Staging } from "../archive/archives.js";
import type { ArchiveBackend } from "../archive/kept-archives.js";
import type { StreamSeal } from "../archive/stream-seal.js";
import type { Clock, Millis } from "../base/clock.js";
import type { Seal } from "../base/crypto/seal.js";
import type { Secret } from "../base/crypto/secret.js";
import type { Stops } from "../base/stops.js";
import type { Config } from "../config/config.js";
import { urlOf } from "../config/resolve.js";
import type { Resolve } from "../egress/resolve.js";
import type { Metrics } from "../observe/metrics.js";
import type { PoolLabels } from "../pool/pool-labels.js";
import type { Recorder } from "../telemetry/recorder.js";
import type { VaultKeyring } from "../vault/encryption/rewrap.js";
import type { DaemonContext } from "./boot.js";
import type { EndpointWatch } from "./reserved-endpoints.js";
import type { Stores } from "./stores.js";

/** What every role of a daemon has beside its configuration: each part is built once, whatever uses it. */
export interface DaemonParts extends DaemonContext {
  readonly config: Config;
  readonly stores: Stores;
  readonly keys: DaemonKeys;
  readonly url: PublicUrl;
  readonly labels: PoolLabels;
  readonly metrics: Metrics;
  readonly archives: ArchivesPart;
  /** Takes what happens in browsers into the streams of their leases. */
  readonly recorder: Recorder;
  readonly resolve: Resolve;
  /**
   * The endpoints on which Remuda and its Redis listen: neither a browser nor a check of a proxy goes there.
   */
  readonly endpoints: EndpointWatch;
}

export interface DaemonKeys {
  readonly api: Secret;
  /** Signs the URLs of browsers, and messages between daemons. */
  readonly cluster: Secret;
  /** Seals fields of records in Redis. */
  readonly seal: Seal;
  /** Wraps the keys of vaults. */
  readonly vaults: VaultKeyring;
  /** Encrypts archives. */
  readonly streamSeal: StreamSeal;
}

/** A machine's addresses may change. Looking at them takes some 40 us, more than the rest of a URL. */
const addressesKeptMs = 1000;

/** The URL at which clients reach this daemon, which is known for certain only once the port is. */
export class PublicUrl {
  #port: number;
  #found: { readonly url: string; readonly at: Millis } | undefined;
  constructor(
    private readonly server: Config["server"],
    private readonly clock: Clock,
  ) {
    this.#port = server.port;
  }

  readonly of = (): string => this.server.publicUrl ?? this.#find();

  set(port: number): void {
    this.#port = port;
    this.#found = undefined;
  }

  #find(): string {
    const now = this.clock.monotonic();
    if (!this.#found || now - this.#found.at >= addressesKeptMs)
      this.#found = { url: urlOf(this.server.host, this.#port), at: now };
    return this.#found.url;
  }
}

export interface ArchivesPart {
  readonly archives: ArchiveBackend;
  readonly staging: Staging;
  /** What a node has fetched. */
  readonly cache: ArchiveCache;
  readonly stops: Stops;
}
