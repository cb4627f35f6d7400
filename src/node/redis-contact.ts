import { groupBy } from "../base/group-by.js";
import type { Clock, Millis } from "../base/clock.js";
import { type Partition, partitionOf, type NodeId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { type Browser, leaseOf } from "../pool/browser.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { NetworkSync } from "./network-sync.js";
import type { Slot } from "./slot.js";
import type { Slots } from "./slots.js";

interface RedisContactPorts {
  readonly node: NodeId;
  readonly slots: Slots;
  readonly poolStore: PoolStore;
  readonly networkSync: NetworkSync;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether each pool may have another master. Where there is one, a look at any pool finds it. */
  readonly isCluster: boolean;
  /**
   * A node that could not look for so long closes the way out of its browsers: it may have missed a change.
   * Null: never.
   */
  readonly limitMs: Millis | null;
  /** A node that could not look for so long ends its browsers. */
  readonly isolatedMs: Millis;
}

const lookEveryMs: Millis = 1000;
const checkEveryMs: Millis = 250;
/** However short the limit is, so that one answer that comes late is not yet beyond it. */
const timesPerLimit = 4;
/**
 * A pool of which no browser's network may change is looked at so many times within the shorter limit, only
 * to know that its master answers.
 */
const looksPerLimit = 10;

/**
 * This node's contact with Redis. Changes to what browsers may reach are counted there, and the count is
 * looked at every second, since the message that tells of one may be lost. Without contact sockets and
 * traffic go on: whoever asks for a change that this node has not said to be in force is told so. Only a node
 * that was alone for long ends its browsers, which others may have replaced. In a Redis Cluster the masters
 * of some pools may be away: what follows concerns the browsers of those pools alone.
 */
export class RedisContact {
  readonly #seen = new Map<Partition, string>();
  readonly #stops: readonly (() => void)[];
  /**
   * When the last look at a pool began that has succeeded (monotonic): both limits count from there. A pool
   * that is new here has been in contact, since a browser of it is being launched.
   */
  readonly #lookedAt = new Map<Partition, Millis>();
  readonly #underWay = new Set<Partition>();
  #isShut = false;
  #isClosed = false;

  constructor(private readonly ports: RedisContactPorts) {
    const { clock, limitMs } = ports;
    const mostMs = (limitMs ?? Infinity) / timesPerLimit;
    this.#stops = [
      clock.every(Math.min(lookEveryMs, mostMs), () => void this.look()),
      clock.every(Math.min(checkEveryMs, mostMs), () => this.#checkShut()),
    ];
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
  }

  /**
   * Never throws. A pool whose look is under way still, as where its master does not answer, is left to that.
   */
  async look(): Promise<void> {
    const { slots, networkSync, isCluster } = this.ports;
    // What was closed meanwhile is opened again by what is read now.
    this.#checkShut();
    for (const slot of slots.all())
      slot.egress.egress.closeWhile(() => this.#isOverdue(partitionOf(slot.id)));
    const partitions = groupBy(slots.all(), ({ id }) => partitionOf(id));
    for (const known of [this.#seen, this.#lookedAt])
      for (const partition of [...known.keys()].filter((any) => !partitions.has(any)))
        known.delete(partition);
    const changing = [...partitions].map(
      ([partition, all]) => [partition, all.filter(mayChange(networkSync))] as const,
    );
    const quiet = changing.flatMap(([partition, own]) => (own.length === 0 ? partition : []));
    const due = quiet.filter((partition) => this.#isDue(partition));
    const asked = new Set(isCluster ? due : due.slice(0, 1));
    const looks = changing.filter(([partition, own]) => own.length > 0 || asked.has(partition));
    await Promise.all(
      looks.map(([partition, own]) =>
        this.#lookOnce(partition, { slots: own, alike: isCluster ? [] : quiet }),
      ),
    );
  }

  /** Whether contact with the master of a pool is to be tried that has nothing else to be looked for. */
  #isDue(partition: Partition): boolean {
    const { limitMs, isolatedMs } = this.ports;
    return this.#aloneMs(partition) >= Math.min(limitMs ?? isolatedMs, isolatedMs) / looksPerLimit;
  }

  /** `alike`: pools of which nothing is looked for, and to whose master this look speaks, too. */
  async #lookOnce(
    partition: Partition,
    { slots, alike }: { readonly slots: readonly Slot[]; readonly alike: readonly Partition[] },
  ): Promise<void> {
    if (this.#underWay.has(partition)) return;
    this.#underWay.add(partition);
    const startedAt = this.ports.clock.monotonic();
    try {
      await this.#lookAt(partition, slots);
      for (const reached of [partition, ...alike]) this.#lookedAt.set(reached, startedAt);
    } catch (error) {
      this.ports.log.debug({ error: textOf(error) }, "network changes could not be looked for");
      for (const missed of new Set([partition, ...alike])) this.#checkAlone(missed);
    } finally {
      this.#underWay.delete(partition);
    }
  }

  async #lookAt(partition: Partition, slots: readonly Slot[]): Promise<void> {
    const { poolStore, networkSync } = this.ports;
    const changes = await poolStore.networkChanges(partition);
    const others = changes === this.#seen.get(partition) ? [] : await this.#othersIn(partition);
    const heard = others.filter(mayChange(networkSync));
    const behind = slots.filter((slot) => networkSync.isBehind(slot));
    for (const each of new Set([...behind, ...heard])) this.#sync(each);
    // A change of a lease that this node has not heard of yet is found again until it has.
    if (heard.length === others.length) this.#seen.set(partition, changes);
  }

  /** Browsers whose records ask for another network than the one that is in force. */
  async #othersIn(partition: Partition): Promise<readonly Slot[]> {
    const { poolStore, node, slots } = this.ports;
    const { browsers } = await poolStore.browsersOf(partition, node);
    return browsers.flatMap((record) => {
      const slot = slots.find(record.id);
      return slot && isOther(slot, record) ? [slot] : [];
    });
  }

  /** Nobody waits for it: a sync that takes long closes the way out of its own browser only. */
  #sync(slot: Slot): void {
    this.ports.networkSync.sync(slot).catch((error: unknown) => {
      this.ports.log.warn({ browser: slot.id, error: textOf(error) }, "network not brought in line");
    });
  }

  #aloneMs(partition: Partition): Millis {
    const now = this.ports.clock.monotonic();
    const lookedAt = this.#lookedAt.get(partition);
    if (lookedAt === undefined) this.#lookedAt.set(partition, now);
    return now - (lookedAt ?? now);
  }

  /**
   * Each way out asks too: a process that was stopped goes on with what it had begun before its timers tell
   * it how late it is.
   */
  #isOverdue(partition: Partition): boolean {
    const { limitMs } = this.ports;
    return !this.#isClosed && limitMs !== null && this.#aloneMs(partition) >= limitMs;
  }

  #checkShut(): void {
    const { log, slots, limitMs } = this.ports;
    const overdue = slots.all().filter(({ id }) => this.#isOverdue(partitionOf(id)));
    for (const slot of overdue) slot.egress.shut();
    if (overdue.length > 0 && !this.#isShut)
      log.warn({ limitMs, browsers: overdue.length }, "contact lost: egress of browsers shut");
    this.#isShut = overdue.length > 0;
  }

  /**
   * Ends browsers of a pool only after a look at it has failed: a process that was stopped for a while has
   * not been refused anything, and looks first.
   */
  #checkAlone(partition: Partition): void {
    const { log, slots, isolatedMs: limitMs } = this.ports;
    if (this.#aloneMs(partition) < limitMs) return;
    const alone = slots.all().filter(({ id, isEnding }) => !isEnding && partitionOf(id) === partition);
    if (alone.length > 0) log.warn({ limitMs, browsers: alone.length }, "contact lost: browsers ended");
    const why = "its node was without Redis for too long";
    for (const slot of alone) {
      slots.retireNow(slot, "node_lost", why).catch((error: unknown) => {
        log.warn({ browser: slot.id, error: textOf(error) }, "browser could not be ended");
      });
    }
  }
}

/**
 * Whether the record may ask for another network: a change that this node was not told of is found when the
 * record is read.
 */
const mayChange =
  (networkSync: NetworkSync) =>
  (slot: Slot): boolean =>
    slot.activity.lease !== undefined || slot.network !== undefined || networkSync.isBehind(slot);

/** Whether a record asks for another network than the one that is in force. */
const isOther = ({ network }: Slot, record: Browser): boolean => {
  const lease = leaseOf(record);
  return (
    lease !== undefined &&
    (lease.networkWanted !== undefined || lease.network?.revision !== network?.revision)
  );
};
