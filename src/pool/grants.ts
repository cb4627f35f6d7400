import type { Clock, Millis } from "../base/clock.js";
import { type ControlId, type Home, type LeaseId, newRequestId, type RequestId } from "../base/ids.js";
import { groupBy } from "../base/group.js";
import { textOf, type Log } from "../base/log.js";
import type { Desk } from "./desk.js";
import type { Wish } from "./lending.js";
import type { Homes, Projects } from "./ports.js";

interface Waiting {
  readonly home: Home;
  readonly lease: LeaseId;
  readonly connection: RequestId;
  readonly waiter: RequestId;
}

/** A grant to be undone; the request makes every further try a repeat of the first. */
interface Lost {
  readonly home: Home;
  readonly request: RequestId;
}

interface GrantPorts {
  readonly homes: Homes;
  readonly projects: Pick<Projects, "freeName">;
  readonly desk: Desk;
  readonly clock: Clock;
  readonly log: Log;
  readonly beatPeriodMs: Millis;
}

/** How often replies that were flushed are confirmed, in one script per home. */
const confirmEveryMs: Millis = 50;

/**
 * The grants and waiters of this control: confirms what was delivered (batched, off the caller's path), undoes what was lost, and
 * beats in every home where it has any, so that nobody takes them for a dead control's. What Redis cannot be told is told again at
 * each beat: as this control lives, nobody else takes it back.
 */
export class Grants {
  readonly #delivered = new Map<Home, LeaseId[]>();
  readonly #open = new Map<LeaseId, Home>();
  readonly #waiting = new Map<RequestId, Waiting>();
  readonly #lost = new Map<LeaseId, Lost>();
  readonly #abandoned = new Map<RequestId, Wish>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #stops: (() => void)[];

  constructor(
    private readonly control: ControlId,
    private readonly ports: GrantPorts,
  ) {
    this.#stops = [
      ports.clock.every(confirmEveryMs, () => this.#confirm()),
      ports.clock.every(ports.beatPeriodMs, () => this.#beat()),
    ];
  }

  /** A lease whose reply is on its way. */
  opened(home: Home, lease: LeaseId): void {
    this.#open.set(lease, home);
  }

  settle(home: Home, lease: LeaseId, outcome: "delivered" | "lost"): void {
    this.#open.delete(lease);
    if (outcome === "delivered") {
      this.#deliveredAt(home).push(lease);
      return;
    }
    this.#lost.set(lease, { home, request: newRequestId() });
    this.#background("lost grant undone", this.#undo(lease));
  }

  /** A wish whose caller was answered with a fault, while a script may have granted it or put it in line. */
  abandon(wish: Wish): void {
    this.#abandoned.set(wish.caller.request, wish);
    this.#background("abandoned wish taken back", this.#takeBack(wish));
  }

  waits(waiting: Waiting): () => void {
    this.#waiting.set(waiting.connection, waiting);
    return () => this.#waiting.delete(waiting.connection);
  }

  /** Confirms and undoes what is left; resolves when nothing is under way. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    await Promise.all(this.#underWay);
    this.#confirm();
    this.#tryAgain();
    await Promise.all(this.#underWay);
  }

  #tryAgain(): void {
    for (const lease of this.#lost.keys()) this.#background("lost grant undone", this.#undo(lease));
    for (const wish of this.#abandoned.values()) this.#background("abandoned wish taken back", this.#takeBack(wish));
  }

  async #undo(lease: LeaseId): Promise<void> {
    const lost = this.#lost.get(lease);
    if (!lost) return;
    await this.ports.homes.undo(lost.home, lease, lost.request);
    this.#lost.delete(lease);
  }

  async #takeBack({ home, waiter, keyed, caller }: Wish): Promise<void> {
    const { homes, projects } = this.ports;
    // A retry under a key is given its first attempt's lease or place.
    const stands = (keyed && (await homes.findKeyed(home, keyed.key))) ?? { waiter: waiter.id, lease: waiter.lease };
    const reply = await homes.withdraw(home, { ...stands, connection: caller.request });
    if (reply.kind === "granted") this.settle(home, stands.lease, "lost");
    const isOwn = stands.lease === waiter.lease && reply.kind !== "unknown";
    if (waiter.name !== undefined && !isOwn) await projects.freeName({ kind: "session", name: waiter.name, owner: waiter.lease });
    this.#abandoned.delete(caller.request);
  }

  #deliveredAt(home: Home): LeaseId[] {
    const leases = this.#delivered.get(home) ?? [];
    this.#delivered.set(home, leases);
    return leases;
  }

  #confirm(): void {
    for (const [home, leases] of this.#delivered) {
      const confirmed = this.ports.homes.confirm(home, leases).catch((error: unknown) => {
        // Tried again: an unconfirmed lease of a living control is only kept in doubt, never taken back.
        this.#deliveredAt(home).push(...leases);
        throw error;
      });
      this.#background("delivered grants confirmed", confirmed);
    }
    this.#delivered.clear();
  }

  #beat(): void {
    const homes = new Set([...this.#open.values(), ...this.#delivered.keys(), ...[...this.#waiting.values()].map((waiting) => waiting.home)]);
    for (const home of homes) this.#background("control beaten", this.ports.homes.beat(home, this.control));
    for (const [home, waiting] of groupBy(this.#waiting.values(), (one) => one.home)) this.#background("lost grants looked for", this.#look(home, waiting));
    this.#tryAgain();
  }

  /** The message of a grant may have been lost; the record is the truth. */
  async #look(home: Home, waiting: readonly Waiting[]): Promise<void> {
    const { homes, desk } = this.ports;
    const held = new Set(await homes.heldAmong(home, waiting.map(({ lease }) => lease)));
    for (const { lease, connection, waiter } of waiting.filter((one) => held.has(one.lease))) {
      const found = await homes.findHeld(home, lease);
      if (found) desk.deliver(connection, { kind: "granted", waiter, connection, browser: JSON.stringify(found.browser), at: found.at });
    }
  }

  #background(what: string, work: Promise<unknown>): void {
    const watched = work.catch((error: unknown) => this.ports.log.warn({ error: textOf(error), what }, "grant keeping failed"));
    this.#underWay.add(watched);
    void watched.finally(() => this.#underWay.delete(watched));
  }
}
