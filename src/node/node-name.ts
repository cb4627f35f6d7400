import { type Clock, type Millis, pause } from "../base/clock.js";
import type { Log } from "../base/log.js";
import type { BeatResult, NodeFacts } from "../pool/ports/node-store.js";

interface NodeNamePorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly stopping: AbortSignal;
  readonly beatPeriodMs: Millis;
  /** Without a beat for so long, whoever had the name is gone. */
  readonly lostAfterMs: Millis;
  beat(): Promise<BeatResult>;
  /** Clears what the earlier one held, where that was taken for lost. */
  clear(): Promise<void>;
}

/** Two daemons of one name would end each other's browsers: said to the user as it is, without a stack. */
export class NodeNameTaken extends Error {
  constructor({ id, host, port }: NodeFacts) {
    super(
      `the node id ${id} is in use by the daemon at ${host}:${port}: stop that daemon, or give this one another id (node.id)`,
    );
    this.name = "NameTaken";
    this.stack = this.message;
  }
}

/**
 * Beats until the beat counts: that another of this name has died is known only after a while. Throws where
 * it lives and does not stop.
 */
export async function claimNodeName(ports: NodeNamePorts): Promise<void> {
  const startedAt = ports.clock.monotonic();
  for (let beaten = await ports.beat(); beaten.kind !== "beaten"; beaten = await ports.beat()) {
    ports.stopping.throwIfAborted();
    if (beaten.kind === "taken") await waitFor(ports, beaten.by, ports.clock.monotonic() - startedAt);
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
