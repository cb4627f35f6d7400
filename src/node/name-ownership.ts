import { within } from "../base/deadline.js";
import { CannotStart } from "../base/cannot-start.js";
import { type Clock, type Millis, pause } from "../base/clock.js";
import type { NodeId, RequestId } from "../base/ids.js";
import type { Log } from "../base/log.js";
import type { BeatResult, NodeFacts, NodeStore } from "../pool/ports/node-store.js";

interface NameOwnershipPorts {
  readonly node: NodeId;
  /** The run that the facts of this daemon's beats name. */
  readonly run: RequestId;
  readonly origin: string;
  readonly nodes: Pick<NodeStore, "holder">;
  readonly clock: Clock;
  /** After so long without a beat another may have the name. */
  readonly lostAfterMs: Millis;
}

/**
 * Whether this daemon still has its name. One that stood still, or was cut off, may wake up when another has
 * it: then all records that name this node are the other's, and so is its queue, and it leaves them alone
 * until it has ended.
 */
export class NameOwnership {
  #isOver = false;
  #countedAt: Millis;

  constructor(private readonly ports: NameOwnershipPorts) {
    this.#countedAt = ports.clock.monotonic();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** What a beat has come to. */
  onBeat({ kind }: BeatResult): void {
    if (kind === "taken") this.#isOver = true;
    if (kind === "accepted") this.#countedAt = this.ports.clock.monotonic();
  }

  /** Decides by the last beat; where that is too long ago, Redis is asked. */
  async mayWork(): Promise<boolean> {
    const { clock, lostAfterMs } = this.ports;
    return clock.monotonic() - this.#countedAt <= lostAfterMs ? !this.#isOver : await this.holds();
  }

  /** Redis is asked each time: a machine that was suspended does not know for how long. */
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
 * After so long a silence this node may have been taken for lost: what still lives here is brought in order
 * before anything is placed here again.
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

interface NodeNamePorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly stopping: AbortSignal;
  readonly beatPeriodMs: Millis;
  /** After so long without a beat, whoever had the name is gone. */
  readonly lostAfterMs: Millis;
  beat(): Promise<BeatResult>;
  /** Clears what the earlier one held, where that was taken for lost. */
  clear(): Promise<void>;
}

/** Two daemons of one name would end each other's browsers. */
export class NodeNameTaken extends CannotStart {
  constructor({ id, host, port }: NodeFacts) {
    super(
      `the node id ${id} is in use by the daemon at ${host}:${port}: ` +
        "stop that daemon, or give this one another id (node.id)",
    );
  }
}

/**
 * Beats until the beat counts: that another of this name has died is known only after a while. Throws where
 * it lives and does not stop.
 */
export async function claimNodeName(ports: NodeNamePorts): Promise<void> {
  const startedAt = ports.clock.monotonic();
  for (let result = await ports.beat(); result.kind !== "accepted"; result = await ports.beat()) {
    ports.stopping.throwIfAborted();
    if (result.kind === "taken") await waitFor(ports, result.by, ports.clock.monotonic() - startedAt);
    else await ports.clear();
  }
}

async function waitFor(
  { clock, log, stopping, beatPeriodMs, lostAfterMs }: NodeNamePorts,
  other: NodeFacts,
  waitedMs: Millis,
): Promise<void> {
  log.warn(
    { node: other.id, at: `${other.host}:${other.port}`, waitedMs: Math.round(waitedMs) },
    "node waits for another of its id to be gone",
  );
  if (!other.isDraining && waitedMs > lostAfterMs + 2 * beatPeriodMs) throw new NodeNameTaken(other);
  await pause(clock, beatPeriodMs, stopping);
}
