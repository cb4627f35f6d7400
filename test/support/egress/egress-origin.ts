import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import {
  type AddressInfo,
  connect,
  createServer as createNetServer,
  type Server as NetServer,
  type Socket,
} from "node:net";
import { Worker } from "node:worker_threads";
import { until } from "../browser/chromium-until.js";
import { testCertificate, testKey } from "./egress-certificate.js";

/** Something on loopback that is listened at. */
export interface TestServer<Kind extends NetServer = NetServer> {
  readonly server: Kind;
  readonly port: number;
  /** Connections it has ever had. */
  readonly accepted: Socket[];
  close(): Promise<void>;
}

export async function listenOn<Kind extends NetServer>(
  server: Kind,
  host = "127.0.0.1",
): Promise<TestServer<Kind>> {
  const accepted: Socket[] = [];
  server.on("connection", (socket: Socket) => {
    accepted.push(socket);
    socket.on("error", () => {});
  });
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    server,
    port,
    accepted,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of accepted) socket.destroy();
      await closed;
    },
  };
}

/** An origin over HTTP. */
export const openOrigin = (listener: RequestListener): Promise<TestServer<Server>> =>
  listenOn(createServer({ keepAliveTimeout: 30_000 }, listener));

export const openSecureOrigin = (listener: RequestListener): Promise<TestServer> =>
  listenOn(createSecureServer({ key: testKey, cert: testCertificate }, listener));

/** An origin that is given its sockets as they are. */
export const openRawOrigin = (listener: (socket: Socket) => void): Promise<TestServer> =>
  listenOn(createNetServer({ allowHalfOpen: true }, listener));

const acceptNothing = `
  const server = require("node:net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
    require("node:worker_threads").parentPort.postMessage(server.address().port);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;

/**
 * A port that neither takes connections nor refuses them, as behind a firewall that drops them. Linux holds
 * one more than the backlog for a process that does not accept any, and drops what comes then.
 */
export async function openDroppingPort(): Promise<{ readonly port: number; close(): Promise<void> }> {
  const worker = new Worker(acceptNothing, { eval: true });
  const [port] = (await once(worker, "message")) as [number];
  const held = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
  await Promise.all(held.map((socket) => once(socket, "connect")));
  return {
    port,
    async close() {
      for (const socket of held) socket.destroy();
      await worker.terminate();
    },
  };
}

/**
 * Resolves when nobody holds the other end of a connection any more. A reset that is noticed together with
 * data is read as an end (libuv 1.46, `uv__stream_io`); a half-open socket then reads nothing more, and
 * learns the rest by writing.
 */
export async function lossOf(socket: Socket): Promise<void> {
  await until("the connection is lost", () => {
    if (socket.readableEnded) socket.write("?");
    return socket.destroyed;
  });
}
