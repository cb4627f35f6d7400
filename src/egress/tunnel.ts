import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { malformed, egressRefusalOf, refuseTunnel } from "./refusals.js";
import { onwardHeaders } from "./headers.js";
import type { Connector } from "./connector.js";
import type { EgressConnections } from "./connections.js";
import { awaitPace, type Pace, joinSockets } from "./join-sockets.js";
import { hostHeaderOf, parseAbsoluteTarget, parseConnectTarget } from "./target.js";
import type { TargetHost } from "./rules.js";

export interface TunnelParts {
  readonly connections: EgressConnections;
  readonly connector: Connector;
  readonly pace: Pace;
}

/** A browser's request for a tunnel, with what it has sent after it. */
export interface TunnelRequest {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  readonly head: Buffer;
}

const established = "HTTP/1.1 200 Connection established\r\n\r\n";

/** CONNECT: everything after the 200 passes unread. */
export async function tunnel(asking: TunnelRequest, shared: TunnelParts): Promise<void> {
  const target = parseConnectTarget(asking.request.url ?? "");
  if (!target) return refuseTunnel(asking.socket, malformed("CONNECT needs a host and a port"));
  await join(asking, target, { shared, toInner: established, toOuter: "" });
}

/** A plain request that asks for another protocol: a tunnel whose first bytes are its head. */
export async function upgrade(asking: TunnelRequest, shared: TunnelParts): Promise<void> {
  const { request } = asking;
  const asked = parseAbsoluteTarget(request.url ?? "");
  if (!asked) return refuseTunnel(asking.socket, malformed("A proxy is asked for an absolute http URL"));
  const { headers, fault } = onwardHeaders(request.rawHeaders, {
    host: hostHeaderOf(asked.target),
    keepsUpgrade: true,
  });
  if (fault !== undefined) return refuseTunnel(asking.socket, malformed(fault));
  const lines = [`${request.method} ${asked.path} HTTP/1.1`];
  for (let place = 0; place < headers.length; place += 2)
    lines.push(`${headers[place]}: ${headers[place + 1]}`);
  await join(asking, asked.target, { shared, toInner: "", toOuter: [...lines, "", ""].join("\r\n") });
}

interface Joining {
  readonly shared: TunnelParts;
  readonly toInner: string;
  readonly toOuter: string;
}

async function join(
  { socket, head }: TunnelRequest,
  target: TargetHost,
  { shared, toInner, toOuter }: Joining,
): Promise<void> {
  const { connections, connector, pace } = shared;
  // A reset must not end the process before the two sockets are joined.
  socket.on("error", () => socket.destroy());
  await awaitPace(pace, (giveUp) => socket.once("close", giveUp));
  if (socket.destroyed) return;
  const entry = await connections.enter(target, (way, attempt) => connector.tunnel(target, way, attempt));
  if (entry.kind !== "open") return refuseTunnel(socket, egressRefusalOf(entry));
  const { connection } = entry;
  if (socket.destroyed) return connection.cut();
  // The rules may have changed since it was entered.
  if (connection.isCut) return void socket.destroy();
  joinSockets(socket, connection, pace);
  if (toInner !== "") socket.write(toInner, "latin1");
  if (toOuter !== "") connection.connection.socket.write(toOuter, "latin1");
  if (head.length > 0) socket.unshift(head);
}
