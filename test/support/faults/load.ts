import { randomUUID } from "node:crypto";
import { setTimeout as hold } from "node:timers/promises";
import type { DaemonClient, Lease } from "../daemon/daemon.js";
import { connectRaw, type RawCdp } from "../gateway/raw-cdp.js";
import type { Got } from "../http/http-server.js";

/** What happened to callers, by how often. */
export interface LoadFigures {
  granted: number;
  /** Answers other than 200 to an acquire, with their codes. */
  readonly refusals: Map<string, number>;
  /** Connections that were refused or broke off before an answer; the same was asked of another control. */
  repeated: number;
  /** What may never happen, in words. */
  readonly faults: string[];
}

interface LoadOptions {
  readonly pool: string;
  /** Controls that are to be asked now, as a load balancer knows them. */
  controls(): readonly DaemonClient[];
  readonly callers: number;
  /** Ends a caller after so many leases; without it they go on until the load is stopped. */
  readonly each?: number;
  /** How long a lease is held at most, in ms. */
  readonly holdMs: number;
  /** Holders have a socket to their browser, which has to stay open until they give it back. */
  readonly connects: boolean;
}

const acquireSeconds = 30;

/**
 * Callers that acquire, hold and release, and keep a book: a browser that somebody holds is nobody else's, a
 * lease lives until its holder gives it back, and each acquire is answered.
 */
export class Load {
  readonly figures: LoadFigures = { granted: 0, refusals: new Map(), repeated: 0, faults: [] };
  readonly #held = new Map<string, string>();
  readonly #leases = new Set<string>();
  readonly #callers: Promise<unknown>;
  #isStopped = false;
  #turn = 0;

  constructor(private readonly options: LoadOptions) {
    this.#callers = Promise.all(Array.from({ length: options.callers }, () => this.#run()));
  }

  /** Resolves when every caller has ended its last lease; throws where something happened that may not. */
  async stop(): Promise<LoadFigures> {
    this.#isStopped = true;
    return await this.ended();
  }

  async ended(): Promise<LoadFigures> {
    await this.#callers;
    if (this.figures.faults.length > 0) throw new Error(this.figures.faults.join("\n"));
    return this.figures;
  }

  async #run(): Promise<void> {
    const { each = Infinity } = this.options;
    for (let done = 0; done < each && !this.#isStopped;) {
      const lease = await this.#acquire();
      if (!lease) continue;
      done += 1;
      await this.#use(lease);
    }
  }

  async #acquire(): Promise<Lease | undefined> {
    const { pool } = this.options;
    const body = { acquire_timeout_seconds: acquireSeconds };
    const got = await this.#ask(`POST /browser_pools/${pool}/acquire`, body);
    if (got.status !== 200) return this.#refused(got);
    const lease = got.body as Lease;
    this.figures.granted += 1;
    const holder = this.#held.get(lease.session_id);
    if (holder !== undefined) this.#fault(`${lease.session_id} was lent while ${holder} had it`);
    if (this.#leases.has(lease.lease_id)) this.#fault(`${lease.lease_id} was granted twice`);
    this.#held.set(lease.session_id, lease.lease_id);
    this.#leases.add(lease.lease_id);
    return lease;
  }

  #refused({ status, headers, body }: Got): undefined {
    const retry = headers.get("retry-after");
    const name = `${status} ${String((body as { code?: string } | undefined)?.code ?? "")}`.trim();
    this.figures.refusals.set(name, (this.figures.refusals.get(name) ?? 0) + 1);
    // 204 says that it may be asked again; everything else is a failed acquire.
    if (status !== 204 || retry === null)
      this.#fault(`an acquire was answered ${name}, Retry-After ${retry}`);
  }

  async #use(lease: Lease): Promise<void> {
    const { pool, connects, holdMs } = this.options;
    const id = lease.session_id;
    const client = connects ? await this.#connect(lease) : undefined;
    await hold(Math.random() * holdMs);
    if (client && (await client.send("Browser.getVersion")).result === undefined)
      this.#fault(`the browser of ${lease.lease_id} does not answer its holder`);
    const seen = await this.#ask(`GET /browsers/${id}`);
    if (seen.status !== 200 || seen.body.lease_id !== lease.lease_id)
      this.#fault(`${lease.lease_id} was over before its end: ${seen.status} ${seen.text}`);
    this.#held.delete(id);
    const released = await this.#ask(`POST /browser_pools/${pool}/release`, { session_id: id });
    if (released.status !== 204) this.#fault(`a release was answered ${released.status} ${released.text}`);
    await client?.close();
  }

  async #connect({ cdp_ws_url: url, lease_id: lease }: Lease): Promise<RawCdp | undefined> {
    try {
      const client = await connectRaw(url);
      void client.closed.then(({ code }) => {
        if ([...this.#held.values()].includes(lease))
          this.#fault(`the socket of ${lease} was closed: ${code}`);
      });
      return client;
    } catch (error) {
      this.#fault(`no socket for ${lease}: ${String(error)}`);
      return undefined;
    }
  }

  /** Asks one control after the other until one answers; repeats are known by their key. */
  async #ask(operation: string, body?: object): Promise<Got> {
    const headers = operation.startsWith("POST") ? { "idempotency-key": randomUUID() } : {};
    for (let tries = 1; ; tries += 1) {
      const got = await this.#next(tries)
        ?.call(operation, body, headers)
        .catch((error: unknown) => {
          if (tries > 50) throw error;
        });
      if (got) return got;
      this.figures.repeated += 1;
      await hold(50);
    }
  }

  #next(tries: number): DaemonClient | undefined {
    const controls = this.options.controls();
    if (tries === 1) this.#turn += 1;
    return controls[(this.#turn + tries) % controls.length];
  }

  #fault(what: string): void {
    this.figures.faults.push(what);
  }
}
