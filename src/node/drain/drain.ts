import { type Clock, type Millis, pause } from "../../base/clock.js";
import { attemptEach } from "../../base/concurrently.js";
import { isOnDemand, newRequestId, type NodeId, type Partition, partitionOf } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";
import type { Browser, RetireReason } from "../../pool/browser.js";
import type { NodeStore } from "../../pool/ports/node-store.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { Projects } from "../../pool/ports/project-store.js";
import { ClosedPools, type BrowsersByPartition } from "./closed-pools.js";
import type { Slots } from "../slots.js";

interface DrainPorts {
  readonly node: NodeId;
  readonly poolStore: PoolStore;
  readonly projects: Pick<Projects, "partitions">;
  readonly nodes: NodeStore;
  readonly slots: Slots;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether no other run has this node's name by now. */
  holdsName(): Promise<boolean>;
}

/**
 * Idle browsers of a draining node stay in service so long, while their replacements are warmed elsewhere.
 */
const handOverMs: Millis = 30_000;
const lookEveryMs: Millis = 1000;
/** The answer is as long as there are nodes, and hundreds of them may drain at once. */
const aloneEveryMs: Millis = 10_000;
const partitionsAtOnce = 32;

type Cleared = [which: "idle" | "all" | "lost", why: RetireReason, only?: readonly Partition[]];

/** Instants are those of the monotonic clock. */
interface DrainTimes {
  readonly from: Millis;
  readonly until: Millis;
}

/**
 * Empties a node: leases may end within the limit, replacements are warmed elsewhere first, then the rest is
 * retired.
 */
export class Drain {
  readonly #closedPools: ClosedPools;
  /** Where the last reading found browsers; undefined where all partitions are to be asked. */
  #foundIn: readonly Partition[] | undefined;
  #alone = { lookedAt: -Infinity, is: false };

  constructor(private readonly ports: DrainPorts) {
    this.#closedPools = new ClosedPools(ports);
  }

  /**
   * Lets leases end within `limitMs`, or until `hurry`; a limit of 0 does not wait. What is launched from now
   * on, until `hurry`, is lent only where nothing else exists.
   */
  async wait(limitMs: Millis, hurry: AbortSignal): Promise<void> {
    if (hurry.aborted) return;
    const { clock, log } = this.ports;
    const from = clock.monotonic();
    const time = { from, until: from + limitMs };
    this.#closedPools.watchLaunches(time.until, hurry);
    if (limitMs === 0) return;
    log.info({ limitMs }, "drain begun");
    while (clock.monotonic() < time.until && !hurry.aborted) {
      if (await this.#mayEnd(time)) return;
      await pause(clock, lookEveryMs, hurry);
    }
    log.warn({ limitMs }, "drain limit reached");
  }

  /** Where Redis cannot be asked, the leases live on, and so does the drain. */
  #mayEnd(time: DrainTimes): Promise<boolean> {
    return this.#look(time).catch((error: unknown) => {
      this.ports.log.warn({ error: textOf(error) }, "drain could not be looked after");
      return false;
    });
  }

  async #look(time: DrainTimes): Promise<boolean> {
    const own = await this.#own();
    await this.#closedPools.set(own, time.until);
    const idle = partitionsWith(own, ({ state }) => state === "idle");
    // Nobody has to wait for what stands by, and nobody is to be lent it here.
    await this.#clearIdle(idle.filter(isOnDemand));
    const isHandedOver = this.ports.clock.monotonic() - time.from >= handOverMs;
    if (isHandedOver) await this.#clearIdle(idle);
    // A node alone has no replacements to wait for; what is idle is lent while its leases last.
    const mayGo = isHandedOver || (await this.#isAlone()) ? isUnused : isEmpty;
    return mayGo(own) && (await this.#endsWith(mayGo, time));
  }

  /** Looked at now and then; in between it is taken to be as it was. */
  async #isAlone(): Promise<boolean> {
    const now = this.ports.clock.monotonic();
    if (now - this.#alone.lookedAt >= aloneEveryMs)
      this.#alone = { lookedAt: now, is: await this.#looksAlone() };
    return this.#alone.is;
  }

  async #looksAlone(): Promise<boolean> {
    const living = await this.ports.nodes.living();
    return living.every(({ id, isDraining }) => id === this.ports.node || isDraining);
  }

  /**
   * What was free when it was read may have been lent since, where nothing else exists. So before the end
   * nothing is lent here any more, and only then it is read what is.
   */
  async #endsWith(mayGo: (own: BrowsersByPartition) => boolean, { until }: DrainTimes): Promise<boolean> {
    this.#foundIn = undefined;
    const own = await this.#own();
    await this.#closedPools.set(own, Math.min(until, this.ports.clock.monotonic()));
    const left = await this.#own();
    if (mayGo(left)) return true;
    await this.#closedPools.set(left, until);
    return false;
  }

  /** Takes its marks back, for a drain that was ended: what is left here is lent again. */
  async unmark(): Promise<void> {
    await this.#closedPools.unset();
  }

  /** Ends what is left on this node, which goes on running. */
  async empty(): Promise<void> {
    await this.#clearOwn("all", "drained");
  }

  /**
   * Ends what is left on this node, records included; resolves when no process, directory or record of it is
   * left. A save may take long enough for another run to have the name.
   */
  async finish(why: "drained" | "stopped"): Promise<void> {
    const saves = await this.#clearOwn("all", why).catch((error: unknown) => {
      this.ports.log.warn({ error: textOf(error) }, "records left to the reaper");
      return true;
    });
    await this.ports.slots.close({ saves });
    await this.#clearOwn("lost", why);
  }

  /** What an earlier run of this node has left in Redis: its processes are gone. */
  async forgetEarlierRun(): Promise<void> {
    await this.#clear("lost", "node_lost");
    await this.ports.nodes.clearRooms(this.ports.node);
  }

  /**
   * Clears what an earlier run of this node has left that was taken for lost: the control that cleared up
   * after it may have died.
   */
  async finishEarlierRun(): Promise<void> {
    await this.#clear("lost", "node_lost");
    await this.ports.nodes.forget(this.ports.node);
  }

  async #clearIdle(partitions: readonly Partition[]): Promise<void> {
    if (partitions.length > 0) await this.#clearOwn("idle", "drained", partitions);
  }

  /** Gives false, and does nothing, where the records that name this node are another run's. */
  async #clearOwn(...what: Cleared): Promise<boolean> {
    const isOwn = await this.ports.holdsName();
    if (isOwn) await this.#clear(...what);
    return isOwn;
  }

  async #clear(...[which, why, only]: Cleared): Promise<void> {
    const { poolStore, projects, node } = this.ports;
    await attemptEach(only ?? (await projects.partitions()), partitionsAtOnce, (partition) =>
      poolStore.clearNode(partition, { node, why, which, request: newRequestId() }),
    );
  }

  /**
   * Reads where browsers of this node run or were found by the last reading. All partitions are asked at the
   * drain's begin and end alone: in between there comes nothing but launches, which are marked by themselves,
   * and records without a browser that a failover brings back, which the reconciler ends.
   */
  async #own(): Promise<BrowsersByPartition> {
    const { poolStore, node, slots } = this.ports;
    const found = this.#foundIn ?? (await this.#findAll());
    const partitions = new Set([...found, ...slots.all().map(({ id }) => partitionOf(id))]);
    const own = new Map<Partition, readonly Browser[]>();
    await attemptEach(partitions, partitionsAtOnce, async (partition) => {
      const { browsers } = await poolStore.browsersOf(partition, node);
      if (browsers.length > 0) own.set(partition, browsers);
    });
    this.#foundIn = [...own.keys()];
    return own;
  }

  async #findAll(): Promise<readonly Partition[]> {
    const { poolStore, projects, node } = this.ports;
    const found: Partition[] = [];
    await attemptEach(await projects.partitions(), partitionsAtOnce, async (partition) =>
      found.push(...(await poolStore.partitionsOf(node, [partition]))),
    );
    return found;
  }
}

/** A beat comes a little earlier or later than the one before. */
const sameMs: Millis = 5000;

interface RunningDrain {
  readonly end: AbortController;
  readonly until: Millis;
  readonly drain: Drain;
  readonly ran: Promise<void>;
  /** It is tried again at the next beat; until then it goes on marking what is launched. */
  hasFailed: boolean;
}

/** The drain of a node that goes on running, as Redis asks for it by the answers to beats. */
export class RequestedDrain {
  #under: RunningDrain | undefined;
  /** Settles when nothing of the drains before comes any more, which would undo marks of the next one. */
  #before: Promise<void> = Promise.resolve();

  constructor(private readonly ports: DrainPorts) {}

  /** `drainMs`: for how long it is still to drain; undefined where it is not to. */
  follow(drainMs: Millis | undefined): void {
    if (drainMs === undefined) return this.#revoke();
    const now = this.ports.clock.monotonic();
    const until = now + drainMs;
    // One with another end is another drain.
    const isSame = (under: RunningDrain): boolean =>
      drainMs === 0 && under.until <= now ? this.#isEmpty() : Math.abs(under.until - until) < sameMs;
    if (this.#under && !this.#under.hasFailed && isSame(this.#under)) return;
    const [end, drain] = [new AbortController(), new Drain(this.ports)];
    const ran = this.close().then(() => this.#run(drain, until, end.signal));
    this.#under = { end, until, drain, ran, hasFailed: false };
  }

  /**
   * A drain whose time is over has ended by itself. But a session that a control had placed here before it
   * heard of the drain may have come since the node was emptied, which can be long before that time.
   */
  #isEmpty(): boolean {
    return this.ports.slots.all().every(({ isEnding }) => isEnding);
  }

  /** Resolves when it marks nothing any more, and takes no mark back. */
  close(): Promise<void> {
    const under = this.#under;
    this.#under = undefined;
    under?.end.abort();
    if (under) this.#before = this.#before.then(() => under.ran);
    return this.#before;
  }

  /**
   * Pools were told already that the drain is over, by whoever has ended it; but this node heard of that at
   * its next beat only, and may have marked them once more.
   */
  #revoke(): void {
    const under = this.#under;
    if (!under) return;
    const { log } = this.ports;
    this.#before = this.close()
      .then(() => under.drain.unmark())
      .catch((error: unknown) => log.warn({ error: textOf(error) }, "marks of an ended drain were left"));
  }

  async #run(drain: Drain, until: Millis, end: AbortSignal): Promise<void> {
    try {
      await drain.wait(Math.max(0, until - this.ports.clock.monotonic()), end);
      if (!end.aborted) await drain.empty();
    } catch (error) {
      this.ports.log.warn({ error: textOf(error) }, "drain is tried again");
      if (this.#under?.drain === drain) this.#under.hasFailed = true;
    }
  }
}

const partitionsWith = (
  own: BrowsersByPartition,
  fits: (browser: Browser) => boolean,
): readonly Partition[] =>
  [...own].flatMap(([partition, browsers]) => (browsers.some(fits) ? [partition] : []));

const isEmpty = (own: BrowsersByPartition): boolean => own.size === 0;

/** A session on demand is its caller's from its launch on. */
const isUnused = (own: BrowsersByPartition): boolean =>
  [...own].every(([partition, browsers]) =>
    browsers.every(
      ({ state, standby }) =>
        state !== "leased" && !(state === "launching" && isOnDemand(partition) && standby === undefined),
    ),
  );
