import { groupBy } from "../base/group.js";
import type { Clock, Millis } from "../base/clock.js";
import { type Home, homeOf, type NodeId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { Homes } from "../pool/ports.js";
import type { Networks } from "./networks.js";
import type { Slot } from "./slot.js";
import type { Slots } from "./slots.js";

export interface ContactPorts {
  readonly node: NodeId;
  readonly slots: Slots;
  readonly homes: Homes;
  readonly networks: Networks;
  readonly clock: Clock;
  readonly log: Log;
  /** Less than the 5 s after which a caller is told that the way out of a silent node's browser is closed. */
  readonly limitMs: Millis;
}

const lookEveryMs: Millis = 1000;
const checkEveryMs: Millis = 250;

/**
 * Whether this node would know of a change to what a browser may reach. Changes are counted in Redis, and the count is looked at
 * every second, since the message that tells of one may be lost. A node that could not look for `limitMs` may have missed one: it
 * shuts the way out of all its browsers until it can look again.
 */
export class Contact {
  readonly #seen = new Map<Home, number>();
  readonly #stops: readonly (() => void)[];
  /** When the last look began that has succeeded (monotonic). */
  #lookedAt: Millis;
  #isLooking = false;
  #isLost = false;

  constructor(private readonly ports: ContactPorts) {
    const { clock } = ports;
    this.#lookedAt = clock.monotonic();
    this.#stops = [clock.every(lookEveryMs, () => void this.look()), clock.every(checkEveryMs, () => this.#check())];
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }

  /** Never throws. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    const { clock, log, slots } = this.ports;
    const startedAt = clock.monotonic();
    try {
      const homes = groupBy(slots.all(), (slot) => homeOf(slot.id));
      for (const home of [...this.#seen.keys()].filter((seen) => !homes.has(seen))) this.#seen.delete(home);
      await Promise.all([...homes].map(([home, own]) => this.#lookAt(home, own)));
      this.#lookedAt = startedAt;
      this.#isLost = false;
    } catch (error) {
      log.debug({ error: textOf(error) }, "network changes could not be looked for");
    } finally {
      this.#isLooking = false;
    }
  }

  async #lookAt(home: Home, slots: readonly Slot[]): Promise<void> {
    const { homes } = this.ports;
    const changes = await homes.networkChanges(home);
    const isNew = changes !== this.#seen.get(home);
    const wanting = isNew ? await this.#wanting(home) : new Set<string>();
    for (const slot of slots.filter(({ id, door }) => door.isShut || wanting.has(id))) this.#sync(slot);
    this.#seen.set(home, changes);
  }

  async #wanting(home: Home): Promise<ReadonlySet<string>> {
    const { browsers } = await this.ports.homes.browsersOf(home, this.ports.node);
    return new Set(browsers.filter(({ lease }) => lease?.networkWanted ?? lease?.network).map(({ id }) => id));
  }

  /** Not waited for: one that takes long shuts the way out of its own browser. */
  #sync(slot: Slot): void {
    this.ports.networks.sync(slot).catch((error: unknown) => {
      this.ports.log.warn({ browser: slot.id, error: textOf(error) }, "network not brought in line");
    });
  }

  #check(): void {
    const { clock, log, slots, limitMs } = this.ports;
    if (clock.monotonic() - this.#lookedAt < limitMs) return;
    for (const slot of slots.all()) slot.door.shut();
    if (!this.#isLost) log.warn({ limitMs }, "contact lost: egress of all browsers shut");
    this.#isLost = true;
  }
}
