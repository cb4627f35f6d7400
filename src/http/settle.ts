import type { FastifyReply } from "fastify";
import type { Granted } from "../pool/operations.js";

/**
 * Tells a grant how its reply fared, once: `delivered` when a success was flushed, `lost` when the connection closed before or
 * an error was answered instead. Node.js emits `finish` also for a socket destroyed with the reply still in its buffer.
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
  if (raw.destroyed) return settle("lost");
  raw.once("finish", () => settle(socket?.destroyed === true || raw.statusCode >= 300 ? "lost" : "delivered"));
  raw.once("close", () => settle("lost"));
}
