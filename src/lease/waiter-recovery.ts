import { type Clock, type Millis, pause } from "../base/clock.js";
import { groupBy } from "../base/group-by.js";
import { isOnDemand, type LeaseId, type Partition, type RequestId } from "../base/ids.js";
import type { Log } from "../base/log.js";
import type { LaunchFailure } from "../pool/ports/messages.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { RejoinReply } from "../pool/ports/store-replies.js";
import type { Projects } from "../pool/ports/project-store.js";
import type { Waiters } from "./waiters.js";

/** A request of this control that has a place in a pool's line, or a launch on demand. */
export interface QueuedRequest {
  readonly partition: Partition;
  readonly lease: LeaseId;
  readonly connection: RequestId;
  readonly waiter: RequestId;
  readonly name?: string;
  /** The waiter as the store keeps it, where its place is in a pool's line. */
  readonly stored?: string;
}

interface WaiterRecoveryPorts {
  readonly poolStore: PoolStore;
  readonly projects: Pick<Projects, "at">;
  readonly waiters: Waiters;
  readonly clock: Clock;
  readonly log: Log;
  /** Gives back a lease that nobody here wants any more. */
  undo(partition: Partition, lease: LeaseId): void;
}

interface FailedLaunch {
  readonly one: QueuedRequest;
  readonly failure: LaunchFailure;
}

/** A waiter with neither a browser nor a place is looked for again after this time. */
const lookAgainMs: Millis = 100;

/**
 * Watches the requests that wait at this control. It finds the browser of one whose message was lost, or the
 * failure of its launch, and puts back in line one that has lost its place.
 */
export class WaiterRecovery {
  readonly #waiting = new Map<RequestId, QueuedRequest>();
  readonly #closing = new AbortController();

  constructor(private readonly ports: WaiterRecoveryPorts) {}

  /** Watches a request until the returned function is called. */
  add(waiting: QueuedRequest): () => void {
    this.#waiting.set(waiting.connection, waiting);
    return () => this.#waiting.delete(waiting.connection);
  }

  partitions(): readonly Partition[] {
    return [...this.#waiting.values()].map(({ partition }) => partition);
  }

  /** Checks all watched requests: one promise for each partition, so that none waits for another. */
  recoverAll(): readonly Promise<void>[] {
    const byPartition = groupBy(this.#waiting.values(), ({ partition }) => partition);
    return [...byPartition].map(([partition, waiting]) => this.#recover(partition, waiting));
  }

  /** Ends the checks that are under way before they look a second time. */
  close(): void {
    this.#closing.abort();
  }

  /** A grant's message may have been lost, or a waiter's place; what Redis has recorded is the truth. */
  async #recover(partition: Partition, waiting: readonly QueuedRequest[]): Promise<void> {
    const [held, missing] = await this.#find(partition, waiting);
    for (const one of held) await this.#deliver(partition, one);
    const failed = await this.#findFailed(partition, waiting);
    if (missing.length === 0 && failed.length === 0) return;
    // A waiter that was just being served is not missing the second time.
    const { signal } = this.#closing;
    await pause(this.ports.clock, lookAgainMs, signal);
    if (signal.aborted) return;
    await this.#deliverFailures(partition, failed);
    const [, lost] = await this.#find(
      partition,
      missing.filter((one) => this.#isWaiting(one)),
    );
    if (lost.length > 0) await (isOnDemand(partition) ? this.#giveUp(lost) : this.#rejoin(partition, lost));
  }

  /** Finds which waiters have a browser, and which have neither a browser nor a place. */
  async #find(
    partition: Partition,
    waiting: readonly QueuedRequest[],
  ): Promise<readonly [held: QueuedRequest[], missing: QueuedRequest[]]> {
    if (waiting.length === 0) return [[], []];
    const { poolStore } = this.ports;
    const waitingStill = new Set(
      await poolStore.waitingAmong(
        partition,
        waiting.map(({ waiter }) => waiter),
      ),
    );
    const others = waiting.filter(({ waiter }) => !waitingStill.has(waiter));
    const held = new Set(
      others.length === 0
        ? []
        : await poolStore.heldAmong(
            partition,
            others.map(({ lease }) => lease),
          ),
    );
    return [others.filter(({ lease }) => held.has(lease)), others.filter(({ lease }) => !held.has(lease))];
  }

  async #deliver(partition: Partition, { lease, connection, waiter }: QueuedRequest): Promise<void> {
    const found = await this.ports.poolStore.findHeld(partition, lease);
    if (!found) return;
    const { browser, at } = found;
    this.ports.waiters.deliver(connection, {
      kind: "granted",
      waiter,
      connection,
      browser: JSON.stringify(browser),
      at,
    });
  }

  /** The failures of launches on demand that are followed by no other launch. */
  async #findFailed(
    partition: Partition,
    waiting: readonly QueuedRequest[],
  ): Promise<readonly FailedLaunch[]> {
    if (waiting.length === 0 || !isOnDemand(partition)) return [];
    const failures = await this.ports.poolStore.failedAmong(
      partition,
      waiting.map(({ waiter }) => waiter),
    );
    return failures.flatMap(({ connection, ...failure }) => {
      const one = this.#waiting.get(connection);
      return one ? [{ one, failure }] : [];
    });
  }

  /** Delivers those that are still the last word on their waiters; whoever has heard one passes over it. */
  async #deliverFailures(partition: Partition, failed: readonly FailedLaunch[]): Promise<void> {
    const seen = new Set(failed.map(({ failure }) => failure.browser));
    const again = await this.#findFailed(
      partition,
      failed.map(({ one }) => one),
    );
    for (const { one, failure } of again) {
      const { connection, waiter } = one;
      if (seen.has(failure.browser))
        this.ports.waiters.deliver(connection, { kind: "failed", waiter, connection, ...failure });
    }
  }

  /**
   * This control stood still, so its waiters were taken for a dead control's. They get their places back
   * where Redis still remembers those.
   */
  async #rejoin(partition: Partition, lost: readonly QueuedRequest[]): Promise<void> {
    const { poolStore, log } = this.ports;
    const named = await Promise.all(
      lost.map(async (one) => ((await this.#reserve(one)) ? one : this.#forget(one))),
    );
    const able = named.flatMap((one) => (one?.stored === undefined ? [] : [{ ...one, stored: one.stored }]));
    if (able.length === 0) return;
    const words = await poolStore.rejoin(
      partition,
      able.map(({ stored }) => stored),
    );
    log.warn({ partition, waiters: able.length }, "waiters put back in line");
    await Promise.all(able.map((one, at) => this.#settleRejoined(one, words[at])));
  }

  async #settleRejoined(one: QueuedRequest, word: RejoinReply | undefined): Promise<void> {
    const { connection, waiter } = one;
    if (!this.#isWaiting(one)) return await this.#takeBack(one, word);
    if (word === "deleted" || word === "superseded")
      this.ports.waiters.deliver(connection, { kind: word, waiter, connection });
    if (word === "over") this.#forget(one);
  }

  /** The caller has gone meanwhile. */
  async #takeBack(one: QueuedRequest, word: RejoinReply | undefined): Promise<void> {
    const { partition, lease, connection, waiter, name } = one;
    if (name !== undefined && (word === "deleted" || word === "over"))
      await this.ports.projects.at(partition).freeName({ kind: "session", name, owner: lease });
    if (word !== "waiting") return;
    const reply = await this.ports.poolStore.withdraw(partition, { waiter, connection, lease });
    if (reply.kind === "granted") this.ports.undo(partition, lease);
  }

  /** Reserves the session's name anew, since it was given back with the place. */
  async #reserve({ partition, name, lease }: QueuedRequest): Promise<boolean> {
    if (name === undefined) return true;
    const names = this.ports.projects.at(partition);
    return (await names.reserveName({ kind: "session", name, owner: lease, partition })) !== undefined;
  }

  #giveUp(lost: readonly QueuedRequest[]): void {
    for (const one of lost) this.#forget(one);
  }

  #forget({ connection, waiter }: QueuedRequest): undefined {
    this.ports.waiters.deliver(connection, { kind: "forgotten", waiter, connection });
  }

  #isWaiting({ connection }: QueuedRequest): boolean {
    return this.#waiting.has(connection);
  }
}
