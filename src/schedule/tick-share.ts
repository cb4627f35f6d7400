import type { Clock, Millis } from "../base/clock.js";
import type { ControlId, Partition } from "../base/ids.js";

/**
 * Spreads texts that differ in one letter over all numbers below 2^32 (FNV-1a, finished as MurmurHash3 is).
 */
function digestOf(text: string): number {
  let digest = 0x811c9dc5;
  for (let place = 0; place < text.length; place += 1)
    digest = Math.imul(digest ^ text.charCodeAt(place), 0x01000193);
  digest = Math.imul(digest ^ (digest >>> 16), 0x85ebca6b);
  digest = Math.imul(digest ^ (digest >>> 13), 0xc2b2ae35);
  return (digest ^ (digest >>> 16)) >>> 0;
}

/**
 * The control whose ticks a partition has: every one that knows of the same controls finds the same, and one
 * that comes or goes moves its own partitions only (rendezvous hashing).
 */
export function tickerOf(partition: Partition, controls: readonly ControlId[]): ControlId | undefined {
  let [best, most] = [undefined as ControlId | undefined, -1];
  for (const control of controls) {
    const weight = digestOf(`${control} ${partition}`);
    if (weight > most || (weight === most && best !== undefined && control < best))
      [best, most] = [control, weight];
  }
  return best;
}

/** How controls tell each other that they run ticks. */
interface TickBeats {
  /** This control lives; gives all that do. */
  beat(): Promise<readonly ControlId[]>;
  leave(): Promise<void>;
}

interface TickSharePorts {
  readonly control: ControlId;
  readonly beats: TickBeats;
  readonly clock: Clock;
  /** Others take a control for dead that has said nothing for so long. */
  readonly lostAfterMs: Millis;
}

/**
 * The partitions whose ticks this control runs. While a control comes or goes, two may run those of one for a
 * moment; all that ticks do may be done twice.
 */
export class TickShare {
  #controls: readonly ControlId[] = [];
  /** The instant (monotonic) at which this control began to say that it lives. */
  #saidAt: Millis = -Infinity;

  constructor(private readonly ports: TickSharePorts) {}

  /** Says that this control lives, and hears who else does. */
  async beat(): Promise<void> {
    const saidAt = this.ports.clock.monotonic();
    this.#controls = await this.ports.beats.beat();
    this.#saidAt = saidAt;
  }

  /** Holds none where this control stood still, or has no Redis: others run its ticks by then. */
  holds(partition: Partition): boolean {
    const { control, clock, lostAfterMs } = this.ports;
    const isHeard = clock.monotonic() - this.#saidAt < lostAfterMs;
    return isHeard && tickerOf(partition, this.#controls) === control;
  }

  /** The others need not wait until it counts as dead. */
  async leave(): Promise<void> {
    this.#saidAt = -Infinity;
    await this.ports.beats.leave();
  }
}
