import { once } from "node:events";
import { rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";

/** Stands between daemons and a Redis on a socket, and can be taken away. */
export interface RedisProxy {
  /** What `REDIS_URL` may be. */
  readonly url: string;
  /** Every connection is cut, and none is taken any more. */
  cut(): Promise<void>;
  restore(): Promise<void>;
  close(): Promise<void>;
}

export async function openRedisProxy(target: string): Promise<RedisProxy> {
  const url = `${target}.proxy`;
  const sockets = new Set<Socket>();
  let server: Server | undefined;
  const restore = async (): Promise<void> => {
    server = createServer((socket) => {
      const onward = connect(target);
      for (const end of [socket, onward]) {
        sockets.add(end);
        end.on("error", () => {}).once("close", () => {
          sockets.delete(end);
          socket.destroy();
          onward.destroy();
        });
      }
      socket.pipe(onward).pipe(socket);
    }).listen(url);
    await once(server, "listening");
  };
  const cut = async (): Promise<void> => {
    const closing = server;
    server = undefined;
    if (!closing) return;
    closing.close();
    for (const socket of sockets) socket.destroy();
    await once(closing, "close");
    rmSync(url, { force: true });
  };
  await restore();
  return { url, cut, restore, close: cut };
}
