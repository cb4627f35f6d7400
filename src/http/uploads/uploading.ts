import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

const uploading = new WeakSet<Duplex>();

/**
 * Whether the body of the connection's request is read under limits of its own, longer than Node.js's for
 * whole requests.
 */
export const isUploading = (socket: Duplex): boolean => uploading.has(socket);

/** Frees the connection from the limits for ordinary requests; the result puts it under them again. */
export function beginUpload(socket: Socket): () => void {
  const { timeout } = socket;
  uploading.add(socket);
  socket.setTimeout(0);
  return () => {
    uploading.delete(socket);
    socket.setTimeout(timeout ?? 0);
  };
}
