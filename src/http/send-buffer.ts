import type { Socket } from "node:net";

type SetSockOpt = (
  ...args: readonly [fd: number, level: number, name: number, value: Buffer, length: number]
) => number;

/** SOL_SOCKET and SO_SNDBUF of Linux (socket(7)). */
const [socketLevel, sendBuffer] = [1, 7];

/**
 * Bounds what the system keeps of an answer that its reader does not take. By itself Linux lets it grow to
 * 4 MiB for each connection, which hundreds of readers who never read make as much as it has for all
 * connections of the machine (tcp_mem in tcp(7)): then everybody's stand still. Nothing is changed where
 * this is not Linux, or koffi has no build for it.
 */
export function boundSendBuffer(socket: Socket | null, bytes: number): void {
  const fd = socket && descriptorOf(socket);
  if (!libc || typeof fd !== "number") return;
  const value = Buffer.alloc(4);
  value.writeInt32LE(bytes);
  libc.setsockopt(fd, socketLevel, sendBuffer, value, value.length);
}

/** Reads the descriptor from Node.js's own handle, which has no public name for it. */
export function descriptorOf(socket: Socket): number | undefined {
  const handle = (socket as { readonly _handle?: { readonly fd?: number } | null })._handle;
  return handle?.fd !== undefined && handle.fd >= 0 ? handle.fd : undefined;
}

const libc =
  process.platform === "linux"
    ? await import("koffi").then(
        ({ default: koffi }) => ({
          setsockopt: koffi
            .load(null)
            .func(
              "int setsockopt(int fd, int level, int name, const void *value, uint length)",
            ) as unknown as SetSockOpt,
        }),
        () => undefined,
      )
    : undefined;
