import type { FastifyReply } from "fastify";
import type { Granted } from "../pool/operations.js";
import { hasHungUp } from "./hung-up.js";

/**
 * Tells a grant how its reply fared, once: `delivered` when a success was flushed, `lost` when the connection
 * closed before or an error was answered instead. Node.js emits `finish` also for a socket destroyed with the
 * reply still in its buffer, and for one whose other end hung up before the reply was written: hence the look
 * at the socket, the last thing before that.
 */
export function settleWithReply(reply: FastifyReply, granted: Granted): void {
  const { raw } = reply;
  const { socket } = raw;
  let settled = false;
  const settle = (outcome: "delivered" | "lost"): void => {
    if (settled) return;
    settled = true;
    granted.settle(outcome);
  };
  if (raw.destroyed || (socket && hasHungUp(socket))) return settle("lost");
  raw.once("finish", () =>
    settle(socket?.destroyed === true || raw.statusCode >= 300 ? "lost" : "delivered"),
  );
  raw.once("close", () => settle("lost"));
}
