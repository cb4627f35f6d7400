import type { Socket } from "node:net";
import type { FastifyReply } from "fastify";
import type { Granted } from "../pool/operations.js";
import { descriptorOf } from "./send-buffer.js";

/**
 * Tells a grant how its reply fared, once: `delivered` when a success was flushed, `lost` when the connection
 * closed before or an error was answered instead. Node.js emits `finish` also for a socket destroyed with the
 * reply still in its buffer, and for one whose other end hung up before the reply was written (Node.js
 * 20.20): hence the look at the socket, the last thing before that.
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

type Recv = (...args: readonly [fd: number, into: Buffer, length: number, flags: number]) => number;

const peek = 2;
/** EAGAIN on Linux and on macOS. */
const wouldBlock = new Set([11, 35]);
const one = Buffer.alloc(1);

/**
 * Whether the other end has closed or reset the connection already. Asks the kernel, since Node.js hears of
 * it only at its next turn of the event loop, and may write a whole reply before. A client that has sent more
 * is there. False where koffi has no build for this platform.
 */
function hasHungUp(socket: Socket): boolean {
  const fd = descriptorOf(socket);
  if (!libc || fd === undefined) return false;
  const got = libc.recv(fd, one, 1, peek);
  return got === 0 || (got < 0 && !wouldBlock.has(libc.errno()));
}

const libc = await import("koffi").then(
  ({ default: koffi }) => ({
    recv: koffi.load(null).func("long recv(int fd, void *into, size_t length, int flags)") as unknown as Recv,
    errno: () => koffi.errno(),
  }),
  () => undefined,
);
