import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectSecurely } from "node:tls";
import type { Clock, Millis } from "../../base/clock.js";
import type { UpgradeRequest } from "../handshake.js";
import { refuseRequest, refuseUpgrade, type GatewayRefusal } from "../refusals.js";
import type { GatewayLimits } from "../limits.js";
import type { NodeAddress } from "../ports.js";
import type { KeptConnections } from "./kept-connections.js";
import { requestTo, tlsTo } from "./post.js";

/**
 * This header is on what one daemon has forwarded to another: that one serves it or refuses, and never
 * forwards it again.
 */
const marker = "x-remuda-forwarded";

export const wasForwarded = (headers: IncomingHttpHeaders): boolean => headers[marker] !== undefined;

export interface RelayRoute {
  readonly address: NodeAddress;
  readonly clock: Clock;
  readonly kept: KeptConnections;
  readonly limits: Pick<GatewayLimits, "connectMs" | "answerMs" | "pingMs">;
  /** The node took no connection, or did not answer in time; a client that went before says nothing of it. */
  unreachable?(): void;
}

const unreachable: GatewayRefusal = { code: "node_unreachable" };
const silent: GatewayRefusal = { code: "node_silent" };

/** Gives the socket, and names the event at which it can be used. */
function dial(to: NodeAddress): readonly [Socket, "connect" | "secureConnect"] {
  return to.isSecure
    ? [connectSecurely(tlsTo(to)), "secureConnect"]
    : [connect({ host: to.host, port: to.port }), "connect"];
}

/**
 * Repeats the upgrade on the node's address and joins the two sockets: frames pass unseen. It has a
 * connection of its own, since a WebSocket is all that its connection carries from then on (RFC 6455, 4.1).
 */
export function forwardUpgrade(
  { request, socket, head }: UpgradeRequest,
  { address, clock, limits, unreachable: told }: RelayRoute,
): () => void {
  const [node, connected] = dial(address);
  const end = (): void => {
    socket.destroy();
    node.destroy();
  };
  const fail = (refused: GatewayRefusal) => (): void => {
    const isClientGone = socket.destroyed || socket.readableEnded;
    node.destroy();
    refuseUpgrade(socket, refused);
    if (!isClientGone) told?.();
  };
  const unreachableNow = fail(unreachable);
  let cancel = clock.after(limits.connectMs, unreachableNow);
  node.once("error", unreachableNow);
  socket.once("close", () => {
    node.destroy();
    cancel();
  });
  node.once(connected, () => {
    cancel();
    cancel = clock.after(limits.answerMs, fail(silent));
    node.setNoDelay(true);
    node.write(headOf(request));
    if (head.length > 0) node.write(head);
    socket.pipe(node);
  });
  // A failure before the node's first byte can still be answered as HTTP.
  node.once("readable", () => {
    cancel();
    if (node.readableLength === 0) return unreachableNow();
    node.off("error", unreachableNow).on("error", end);
    const stopWatching = watchNode({ node, client: socket, end }, clock, limits.pingMs);
    socket.once("close", stopWatching);
    // What the node has said is still sent on, for a while.
    node.once("close", () => {
      stopWatching();
      if (socket.destroyed) return;
      socket.end(() => socket.destroy());
      cancel = clock.after(limits.answerMs, end);
    });
    node.pipe(socket);
  });
  return end;
}

const mostSilentLooks = 3;

interface WatchedRelay {
  readonly node: Socket;
  readonly client: Pick<Duplex, "writableNeedDrain">;
  end(): void;
}

/**
 * Ends a client whose node has died without a word. A living node pings each client every `pingMs`, and sends
 * an answer that it has begun as fast as it is read, so that its socket brings something, unless it is not
 * read because the client reads nothing. Where this process stood still, what has come meanwhile is read
 * before the next look.
 */
function watchNode({ node, client, end }: WatchedRelay, clock: Clock, pingMs: Millis): () => void {
  let [bytesBefore, silentLooks] = [node.bytesRead, 0];
  return clock.every(pingMs, () => {
    const isSilent = node.bytesRead === bytesBefore && !client.writableNeedDrain;
    silentLooks = isSilent ? silentLooks + 1 : 0;
    bytesBefore = node.bytesRead;
    if (silentLooks >= mostSilentLooks) end();
  });
}

function headOf({ method, url, httpVersion, rawHeaders }: IncomingMessage): string {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return [...lines, `${marker}: 1`, "", ""].join("\r\n");
}

/** These speak of one connection, and not of what is sent on it (RFC 9110, 7.6.1). */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const endToEnd = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name)));

/**
 * The headers that say where the body ends, as the client sent them: without them the body would be taken for
 * further requests.
 */
const framed = (headers: IncomingHttpHeaders): IncomingHttpHeaders => {
  const encoding = headers["transfer-encoding"];
  return { ...endToEnd(headers), ...(encoding !== undefined && { "transfer-encoding": encoding }) };
};

interface Forwarded {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly route: RelayRoute;
}

/**
 * Only a request without a body goes over a kept connection: where the node has just closed that, it can be
 * sent again, and nothing of a body can be left on the connection for the next request.
 */
const mayShare = ({ method, headers }: IncomingMessage): boolean =>
  (method === "GET" || method === "HEAD") &&
  headers["content-length"] === undefined &&
  headers["transfer-encoding"] === undefined;

/** Sends the request on to the node's address and its answer back, both unread. */
export function forwardRequest(forwarded: Forwarded): void {
  const { request, route } = forwarded;
  if (!mayShare(request)) return sendWithBody(forwarded);
  const again = (): void => void send(forwarded, false).end();
  send(forwarded, route.kept.to(route.address), again).end();
}

function sendWithBody(forwarded: Forwarded): void {
  const { request, response } = forwarded;
  const onward = send(forwarded, false);
  request.pipe(onward);
  // What the node has not taken of the body would stand before the next request on its connection.
  response.once("close", () => request.unpipe(onward).resume());
}

/** `again`: called instead of a refusal where a kept connection was closed before any answer came. */
function send(
  { request, response, route }: Forwarded,
  agent: Agent | false,
  again?: () => void,
): ClientRequest {
  const { address, clock, limits, unreachable: told } = route;
  const { method, url, headers } = request;
  const onward = requestTo(address, {
    method,
    path: url,
    headers: { ...framed(headers), [marker]: "1" },
    agent,
  });
  let refused = unreachable;
  let isLate = false;
  const late = (): void => {
    isLate = true;
    onward.destroy(new Error("the node did not answer in time"));
  };
  let cancel = clock.after(limits.connectMs, late);
  const connected = (): void => {
    cancel();
    refused = silent;
    cancel = clock.after(limits.answerMs, late);
  };
  onward.once("socket", (socket) => {
    if (onward.reusedSocket) connected();
    else socket.once(address.isSecure ? "secureConnect" : "connect", connected);
  });
  onward.once("response", (answer) => {
    cancel();
    response.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers));
    answer.pipe(response);
    const end = (): void => void response.destroy();
    answer.once("error", end);
    const stopWatching = watchNode({ node: answer.socket, client: response, end }, clock, limits.pingMs);
    answer.once("end", stopWatching);
    response.once("close", stopWatching);
  });
  onward.once("error", () => {
    cancel();
    const isClientGone = response.destroyed;
    if (again && onward.reusedSocket && !isLate && !isClientGone && !response.headersSent) return again();
    refuseRequest(response, refused);
    if (!isClientGone) told?.();
  });
  // A connection on which something of this answer may still come is nobody else's: it is closed.
  response.once("close", () => onward.destroy());
  return onward;
}
