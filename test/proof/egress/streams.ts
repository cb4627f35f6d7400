import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

/** A server that keeps connections going until they are cut. */
export interface Streams {
  readonly host: string;
  readonly port: number;
  /** Connections that are open, of whatever kind. */
  openCount(): number;
  /** Everything that was asked for or sent, one text each. */
  readonly heard: readonly string[];
  close(): Promise<void>;
}

const beatMs = 20;

/**
 * Answers `/stream` without an end, also as a download or events by the query `type`; takes WebSockets
 * elsewhere, and answers any other request at once, to be asked again on the same connection.
 */
export async function openStreams(host: string): Promise<Streams> {
  const heard: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://streams");
    heard.push(pathname);
    request.on("data", (data: Buffer) => void heard.push(data.toString("latin1").slice(0, 80)));
    request.on("error", () => {});
    const headers = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };
    if (pathname === "/stream")
      stream(response, { ...headers, "content-type": searchParams.get("type") ?? "text/plain" });
    else response.writeHead(200, headers).end("answered");
  });
  const upgrades = new WebSocketServer({ server });
  upgrades.on("connection", (socket: WebSocket) => {
    heard.push("opened");
    socket.on("message", (data: Buffer) => void heard.push(data.toString())).on("error", () => {});
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).once("close", () => sockets.delete(socket));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, host, resolve));
  return {
    host,
    port: (server.address() as AddressInfo).port,
    heard,
    openCount: () => sockets.size,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}

function stream(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  response.writeHead(200, headers);
  const beat = setInterval(() => response.write(`data: ${"x".repeat(2000)}\n\n`), beatMs);
  response.once("close", () => clearInterval(beat)).on("error", () => {});
}
