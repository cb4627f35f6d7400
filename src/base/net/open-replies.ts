import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

const owed = Symbol("owed replies");
declare module "node:stream" {
  interface Duplex {
    /** Replies that are still to be sent, in the order of their requests. */
    [owed]?: Set<ServerResponse>;
  }
}

/** The replies that a connection still has to bring, in the order of their requests. */
export const repliesOn = (socket: Duplex): readonly ServerResponse[] => [...(socket[owed] ?? [])];

/**
 * Keeps which replies the connections of a server have to bring, and tells `onIdle` of each that has brought
 * its last one.
 *
 * Node.js does not tell a reply that its connection has closed while others went before it (RFC 9112, 9.3.2):
 * whoever waits for such a caller to hang up would wait for ever. Here it is told.
 */
export function watchReplies(server: Server, onIdle: (socket: Socket) => void = () => {}): void {
  server.prependListener("request", ({ socket }, response) => {
    const replies = (socket[owed] ??= new Set());
    replies.add(response);
    response.once("close", () => {
      replies.delete(response);
      if (replies.size === 0 && !socket.destroyed) onIdle(socket);
    });
  });
  server.on("connection", (socket: Socket) =>
    socket.once("close", () => {
      for (const reply of repliesOn(socket)) if (reply.socket === null) closeUnsent(reply);
    }),
  );
}

/** Says what Node.js says of a reply whose turn had come. */
function closeUnsent(reply: ServerResponse): void {
  reply.destroy();
  reply.emit("close");
}
