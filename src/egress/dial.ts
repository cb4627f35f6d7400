import { connect, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Clock, Millis } from "../base/clock.js";
import { withReadBuffers } from "../base/net/read-buffers.js";

interface DialLimits {
  readonly clock: Clock;
  /** A time on the monotonic clock. */
  readonly until: Millis;
  readonly signal?: AbortSignal | undefined;
}

/** An address that has neither taken the connection in time nor refused it. */
export class SilentAddress extends Error {}

interface DialledSocket {
  readonly socket: Socket;
  readonly address: string;
}

/**
 * Connects to the first address that answers, in their order; each is given its share of the time that is
 * left.
 */
export async function dial(
  addresses: readonly string[],
  port: number,
  limits: DialLimits,
): Promise<DialledSocket> {
  let failed: FailedDial | undefined;
  for (const [place, address] of addresses.entries()) {
    const limitMs = (limits.until - limits.clock.monotonic()) / (addresses.length - place);
    const answer = await dialOne({ address, port, limitMs }, limits).catch((failure: unknown) => ({
      failure,
    }));
    if (!("failure" in answer)) return { socket: answer, address };
    failed = answer;
    if (limits.signal?.aborted) break;
  }
  throw failed?.failure ?? new Error("there is no address");
}

interface FailedDial {
  readonly failure: unknown;
}

function dialOne(
  { address, port, limitMs }: { address: string; port: number; limitMs: Millis },
  { clock, signal }: DialLimits,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(new Error("given up"));
    // The socket is half-open, because whoever has sent everything may still be answered.
    const socket = withReadBuffers((onread) =>
      connect({ host: address, port, allowHalfOpen: true, noDelay: true, onread }),
    );
    const settle = (error?: Error): void => {
      cancel();
      signal?.removeEventListener("abort", giveUp);
      socket.off("error", settle);
      if (!error) return resolve(socket);
      socket.destroy();
      // The system's text would tell a page the address behind a name.
      reject(
        "code" in error
          ? Object.assign(new Error(`it could not be reached: ${String(error.code)}`), { code: error.code })
          : error,
      );
    };
    const giveUp = (): void => settle(new Error("given up"));
    const cancel = clock.after(limitMs, () => settle(new SilentAddress("no answer in time")));
    signal?.addEventListener("abort", giveUp);
    // This listener stays for as long as the socket lives: a reset must not end the process, neither between
    // two users of the socket nor while a library has it.
    socket.on("error", () => {});
    socket.once("error", settle);
    socket.once("connect", () => settle());
  });
}

/**
 * Resolves when TLS is spoken. A socket whose connection we have destroyed ourselves closes without an error.
 */
export const awaitHandshake = (socket: TLSSocket): Promise<void> =>
  new Promise((resolve, reject) => {
    // This listener stays: the socket may break with the last bytes of the handshake, before anybody else
    // listens to it.
    socket.on("error", reject);
    socket.once("close", () => reject(new Error("it was closed")));
    socket.once("secureConnect", resolve);
  });

/** The TCP socket under a TLS one. */
const rawSockets = new WeakMap<Socket, Socket>();

export const rawSocketOf = (socket: Socket): Socket => rawSockets.get(socket) ?? socket;
export const setRawSocket = (socket: Socket, rawSocket: Socket): void =>
  void rawSockets.set(socket, rawSocket);

/** Ends a connection at once; what the kernel has not sent yet is thrown away with it. */
export function destroySocket(socket: Socket): void {
  const rawSocket = rawSocketOf(socket);
  const isEnding = rawSocket.writableEnded && !rawSocket.writableFinished;
  // A reset is refused while connecting, and while the end is being sent.
  if (!rawSocket.destroyed && !rawSocket.connecting && !isEnding) rawSocket.resetAndDestroy();
  rawSocket.destroy();
  socket.destroy();
}
