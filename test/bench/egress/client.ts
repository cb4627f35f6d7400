import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { bodyBytes, bodyPath, ending } from "./exchange.js";

/** A way to the origin's port; without a proxy the direct one. */
export interface OriginPath {
  readonly origin: number;
  readonly proxy?: URL;
}

/** Asks over and over on something of its own until it is told to end. */
export interface Asker {
  ask(): Promise<void>;
  end(): void;
}

const host = "127.0.0.1";

async function open({ origin, proxy }: OriginPath): Promise<Socket> {
  const to = proxy ? { host: proxy.hostname, port: Number(proxy.port) } : { host, port: origin };
  const socket = connect({ ...to, noDelay: true });
  await once(socket, "connect");
  return socket;
}

/** Resolves when what was received ends so. */
function reply(socket: Socket, end: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const last = Buffer.from(end);
    const settle = (error?: Error): void => {
      socket.off("data", read).off("error", settle).off("close", broken);
      if (error) reject(error);
      else resolve();
    };
    const read = (data: Buffer): void => {
      if (data.subarray(-last.length).equals(last)) settle();
    };
    const broken = (): void => settle(new Error("the connection broke"));
    socket.on("data", read).once("error", settle).once("close", broken);
  });
}

async function openTunnel(way: OriginPath): Promise<Socket> {
  const { origin, proxy } = way;
  const socket = await open(way);
  if (proxy === undefined) return socket;
  socket.write(`CONNECT ${host}:${origin} HTTP/1.1\r\nHost: ${host}:${origin}\r\n\r\n`);
  await reply(socket, "\r\n\r\n");
  return socket;
}

function askerOn(socket: Socket, head: string): Asker {
  return {
    ask() {
      const answered = reply(socket, ending);
      socket.write(head);
      return answered;
    },
    end: () => void socket.destroy(),
  };
}

const headFor = (url: string, origin: number): string =>
  `GET ${url} HTTP/1.1\r\nHost: ${host}:${origin}\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n`;

/** Plain requests on one kept connection. */
export const openPlain = async (way: OriginPath): Promise<Asker> =>
  askerOn(
    await open(way),
    headFor(way.proxy === undefined ? "/" : `http://${host}:${way.origin}/`, way.origin),
  );

/** Requests inside one kept tunnel. */
export const openKept = async (way: OriginPath): Promise<Asker> =>
  askerOn(await openTunnel(way), headFor("/", way.origin));

/** A new tunnel for each request. */
export const openAnew = async (way: OriginPath): Promise<Asker> => ({
  async ask() {
    const asker = await openKept(way);
    await asker.ask();
    asker.end();
  },
  end: () => {},
});

/** Receives the large body through a tunnel. */
export async function receiveBody(way: OriginPath): Promise<void> {
  const socket = await openTunnel(way);
  let bytes = 0;
  socket.on("data", (data) => (bytes += data.length)).write(headFor(bodyPath, way.origin));
  await once(socket, "close");
  if (bytes < bodyBytes) throw new Error(`only ${bytes} bytes came`);
}
