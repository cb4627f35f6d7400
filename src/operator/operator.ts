import { type Clock, type Millis, pause } from "../base/clock.js";
import { forEachConcurrently } from "../base/concurrently.js";
import { type Log, textOf } from "../base/log.js";
import { type BrowserPool, type SeenMetadata, stampOf } from "./browser-pool.js";
import { type Cluster, clusterCodeOf, isAbsent } from "./cluster.js";

interface OperatorParts {
  readonly cluster: Pick<Cluster, "list" | "find" | "watch">;
  reconcile(resource: BrowserPool): Promise<void>;
  /** Sees to pools of which it is open whether they have a resource, once a round. */
  settleCreations(): Promise<void>;
  /** What is done for nodes, once a round. */
  lookAfterNodes(): Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
  readonly periodMs: Millis;
  random(): number;
}

const width = 8;
const backoffMs = { least: 1000, most: 30_000 } as const;

/**
 * Lists all resources every period, which is the truth, and watches them in between, which is a hint: a watch
 * that has ended or hangs costs a period. One reconciliation of a resource at a time.
 */
export class Operator {
  readonly #stopping = new AbortController();
  /** Set to true where a resource has changed again meanwhile. */
  readonly #underWay = new Map<string, boolean>();
  /** What was last seen of each resource, by its name; one that is gone is forgotten with the next list. */
  #stamps = new Map<string, string>();
  #lastListedAt: Millis | undefined;
  #version = "";

  constructor(private readonly parts: OperatorParts) {}

  /** Gives what ends it, which waits for what is under way. */
  start(): () => Promise<void> {
    const loops = Promise.all([this.#goRound(), this.#watch()]);
    return async () => {
      this.#stopping.abort();
      await loops;
    };
  }

  /** Why it does no work, if it does none: for probes. */
  unready(): string | undefined {
    const { clock, periodMs } = this.parts;
    if (this.#lastListedAt === undefined) return "BrowserPools were not listed yet";
    return clock.monotonic() - this.#lastListedAt > 3 * periodMs
      ? "BrowserPools were not listed for three periods"
      : undefined;
  }

  async #goRound(): Promise<void> {
    const { clock, periodMs } = this.parts;
    while (!this.#stopping.signal.aborted) {
      await this.#try("BrowserPools were not listed", () => this.#round());
      await this.#try("pools of deleted BrowserPools were not taken back", () =>
        this.parts.settleCreations(),
      );
      await this.#try("nodes were not looked after", () => this.parts.lookAfterNodes());
      await pause(clock, periodMs, this.#stopping.signal);
    }
  }

  async #round(): Promise<void> {
    const { cluster, clock, log } = this.parts;
    const { pools, faults, version } = await cluster.list();
    this.#lastListedAt = clock.monotonic();
    this.#version = version;
    for (const fault of faults) log.warn({ fault }, "a BrowserPool is not as it has to be");
    this.#stamps = new Map(pools.map(({ metadata }) => [metadata.name, stampOf(metadata)]));
    await forEachConcurrently(pools, width, async (resource) => {
      const { metadata } = resource;
      // What the watch has told of since it was listed is seen to already, and by what it is now.
      if (this.#stamps.get(metadata.name) === stampOf(metadata))
        await this.#reconcile(metadata.name, resource);
    });
  }

  async #watch(): Promise<void> {
    const { cluster, clock, log, random } = this.parts;
    let waitMs: Millis = backoffMs.least;
    while (!this.#stopping.signal.aborted) {
      const startedAt = clock.monotonic();
      try {
        await cluster.watch(this.#version, (seen) => this.#hear(seen));
      } catch (error) {
        log.debug({ error: textOf(error) }, "watch of BrowserPools ended");
      }
      waitMs = clock.monotonic() - startedAt > backoffMs.most ? backoffMs.least : waitMs;
      await pause(clock, waitMs * (0.5 + random()), this.#stopping.signal);
      waitMs = Math.min(2 * waitMs, backoffMs.most);
    }
  }

  /**
   * A status is told of as well, and each look at a busy pool gives it another: it would be the next look's
   * reason, without end.
   */
  #hear(seen: SeenMetadata): void {
    const stamp = stampOf(seen);
    if (this.#stamps.get(seen.name) === stamp) return;
    this.#stamps.set(seen.name, stamp);
    void this.#reconcile(seen.name);
  }

  /** What was read is used once; a repeat, and whoever was only told a name, reads it anew. */
  async #reconcile(name: string, listed?: BrowserPool): Promise<void> {
    if (this.#underWay.has(name)) {
      this.#underWay.set(name, true);
      return;
    }
    let known = listed;
    do {
      this.#underWay.set(name, false);
      const resource = known;
      known = undefined;
      await this.#try("a BrowserPool was not reconciled", () => this.#once(name, resource), { pool: name });
    } while (this.#underWay.get(name) === true && !this.#stopping.signal.aborted);
    this.#underWay.delete(name);
  }

  async #once(name: string, listed: BrowserPool | undefined): Promise<void> {
    const resource = listed ?? (await this.parts.cluster.find(name));
    if (resource) await this.parts.reconcile(resource);
  }

  /** The next round is the retry. */
  async #try(what: string, work: () => Promise<void>, fields: object = {}): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      // Another operator, or its owner, was first.
      const isRace = isAbsent(error) || clusterCodeOf(error) === 409;
      this.parts.log[isRace ? "debug" : "warn"]({ ...fields, error: textOf(error) }, what);
    }
  }
}
