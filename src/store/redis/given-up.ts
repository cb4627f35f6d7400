import type { Redis } from "ioredis";
import { type Log, textOf } from "../../base/log.js";

/** A connection as its server names it. */
interface Peer {
  readonly id: string;
  readonly addr: string;
}

/**
 * Has the server close each connection that was given up here, before anything is asked on the next one. A
 * command that was sent on it may still be on its way, and would be carried out after its caller was told
 * otherwise, so that nobody would know of the lease. Now each command either ran before that moment, and a
 * repeat finds its answer, or it never runs.
 */
export function closeGivenUp(redis: Redis, log: Log): void {
  const givenUp = new Set<Peer>();
  let present: Peer | undefined;
  const close = (peer: Peer): void => {
    // Both have to match: another server, after a failover, counts its own connections.
    redis.call("CLIENT", "KILL", "ID", peer.id, "ADDR", peer.addr).then(
      () => void givenUp.delete(peer),
      (error: unknown) => {
        log.info({ error: textOf(error) }, "redis did not close a connection that was given up");
        // The next connection asks again, unless it is Redis that refuses.
        if (error instanceof Error && error.name === "ReplyError") givenUp.delete(peer);
      },
    );
  };
  redis.on("ready", () => {
    const { stream } = redis;
    if (present) givenUp.add(present);
    present = undefined;
    for (const peer of givenUp) close(peer);
    redis.client("INFO").then(
      (text) => void (redis.stream === stream && (present = peerIn(String(text)))),
      () => {},
    );
  });
}

/** Reads the peer from the answer to CLIENT INFO (redis.io, CLIENT LIST). */
function peerIn(text: string): Peer | undefined {
  const fields = new Map(
    text.split(" ").map((field) => [field.slice(0, field.indexOf("=")), field.slice(field.indexOf("=") + 1)]),
  );
  const [id, addr] = [fields.get("id"), fields.get("addr")];
  return id && addr ? { id, addr } : undefined;
}
