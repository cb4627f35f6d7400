import type { Clock, Millis } from "../../base/clock.js";
import type { BrowserId } from "../../base/ids.js";
import { type Log, textOf } from "../../base/log.js";

interface ShortagePorts {
  /** Which browsers stand by here. */
  standing(): readonly BrowserId[];
  /** What this node's processes may have together, and how much of that is left. */
  readMemory(): Promise<{ readonly bytes: number; readonly leftBytes: number }>;
  /** Retires browsers that stand by; gives those that are sessions by now, and stay. */
  retire(browsers: readonly BrowserId[]): Promise<readonly BrowserId[]>;
  /** So much of the memory is to be left, from 0 to 1; 0: whatever is left is enough. */
  readonly part: number;
  readonly periodMs: Millis;
  /** Called when the next beat would tell something else of this node. */
  changed(): void;
  readonly meter: { memoryLeft(bytes: number): void; standbyEnded(browsers: number): void };
  readonly clock: Clock;
  readonly log: Log;
}

/** An idle browser has about so much (docs/deployment.md#capacity). */
const idleBytes = 100 * 2 ** 20;
/** Those that are launched at once have to fit in, or the last of them would end as soon as it is there. */
const spareBytes = 2 * idleBytes;

/** How many browsers that stand by have to end, so that so much is left again. */
const surplusAt = (leftBytes: number, wantedBytes: number): number =>
  Math.max(0, Math.ceil((wantedBytes - leftBytes) / idleBytes));

/**
 * Whether memory of this node is short, whatever classes have been admitted: then some of the browsers that
 * stand by end, and others are launched to stand by on other nodes only.
 */
export class MemoryShortage {
  #isShort = false;
  #isLooking = false;

  constructor(private readonly ports: ShortagePorts) {}

  get isShort(): boolean {
    return this.#isShort;
  }

  /** Looks every `periodMs` from now on; gives what stops that. */
  start(): () => void {
    return this.ports.clock.every(this.ports.periodMs, () => void this.look());
  }

  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#look();
    } catch (error) {
      this.ports.log.warn({ error: textOf(error) }, "memory of the node could not be watched");
    } finally {
      this.#isLooking = false;
    }
  }

  async #look(): Promise<void> {
    const { readMemory, part, meter } = this.ports;
    const { bytes, leftBytes } = await readMemory();
    meter.memoryLeft(leftBytes);
    const wantedBytes = bytes * part;
    const wasShort = this.#isShort;
    const isShort = leftBytes < wantedBytes + (wasShort ? spareBytes : 0);
    if (isShort !== wasShort) this.#turn(isShort, { bytes, leftBytes });
    // The next look knows that none is to be launched here in their place.
    if (wasShort) await this.#shrink(surplusAt(leftBytes, wantedBytes));
  }

  #turn(isShort: boolean, memory: { readonly bytes: number; readonly leftBytes: number }): void {
    const { log, changed } = this.ports;
    this.#isShort = isShort;
    if (isShort) log.warn(memory, "memory of the node is short: browsers that stand by end");
    else log.info(memory, "memory of the node is not short any more");
    changed();
  }

  /** One that was lent a moment ago stays, and another ends in its place. */
  async #shrink(count: number): Promise<void> {
    const { retire, meter } = this.ports;
    const standing = [...this.ports.standing()];
    for (let left = count; left > 0 && standing.length > 0;) {
      const asked = standing.splice(0, left);
      const ended = asked.length - (await retire(asked)).length;
      meter.standbyEnded(ended);
      left -= ended;
    }
  }
}
