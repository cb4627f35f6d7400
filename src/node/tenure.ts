import { within } from "../base/deadline.js";
import type { Clock, Millis } from "../base/clock.js";
import type { NodeId, RequestId } from "../base/ids.js";
import type { BeatResult, NodeStore } from "../pool/ports/node-store.js";

export interface TenurePorts {
  readonly node: NodeId;
  /** As in the facts of this daemon's beats. */
  readonly run: RequestId;
  readonly origin: string;
  readonly nodes: Pick<NodeStore, "holder">;
  readonly clock: Clock;
  /** Without a beat for so long another may have the name. */
  readonly lostAfterMs: Millis;
}

/**
 * Whether this daemon still has its name. One that stood still, or was cut off, may wake up when another has
 * it: then all records that name this node are the other's, and so is its queue, and it leaves them alone
 * until it has ended.
 */
export class Tenure {
  #isOver = false;
  #countedAt: Millis;

  constructor(private readonly ports: TenurePorts) {
    this.#countedAt = ports.clock.monotonic();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** What a beat has come to. */
  onBeat({ kind }: BeatResult): void {
    if (kind === "taken") this.#isOver = true;
    if (kind === "beaten") this.#countedAt = this.ports.clock.monotonic();
  }

  /** By its last beats; where they are too long ago it is asked. */
  async mayWork(): Promise<boolean> {
    const { clock, lostAfterMs } = this.ports;
    return clock.monotonic() - this.#countedAt <= lostAfterMs ? !this.#isOver : await this.holds();
  }

  /** Asked each time: a machine that was suspended does not know for how long. */
  async holds(): Promise<boolean> {
    if (this.#isOver) return false;
    const { node, run, origin, nodes } = this.ports;
    const holder = await nodes.holder(node);
    return holder === undefined || holder.run === run || holder.origin === origin;
  }
}

interface Beating {
  readonly clock: Clock;
  readonly limitMs: Millis;
  beat(): Promise<void>;
  look(): Promise<void>;
}

/**
 * After so long a silence it may have been taken for lost: what still lives here is brought in order before
 * anything is placed here again.
 */
export function makeBeat({ clock, limitMs, beat, look }: Beating): () => Promise<void> {
  let beatAt = clock.monotonic();
  return async () => {
    if (clock.monotonic() - beatAt > limitMs)
      await within(clock, { what: "a look at what lives here", limitMs }, look()).catch(() => {});
    await beat();
    beatAt = clock.monotonic();
  };
}
