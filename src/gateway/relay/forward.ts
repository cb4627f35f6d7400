import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { connect as connectSecurely } from "node:tls";
import type { Clock } from "../../base/clock.js";
import type { UpgradeRequest } from "../handshake.js";
import { refuseRequest, refuseUpgrade, type GatewayRefusal } from "../refusals.js";
import type { GatewayLimits } from "../limits.js";
import type { NodeAddress } from "../ports.js";
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
  readonly limits: Pick<GatewayLimits, "connectMs" | "answerMs">;
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

/** Repeats the upgrade on the node's address and joins the two sockets: frames pass unseen. */
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
    // What the node has said is still sent on, for a while.
    node.once("close", () => {
      if (socket.destroyed) return;
      socket.end(() => socket.destroy());
      cancel = clock.after(limits.answerMs, end);
    });
    node.pipe(socket);
  });
  return end;
}

function headOf({ method, url, httpVersion, rawHeaders }: IncomingMessage): string {
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let i = 0; i < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return [...lines, `${marker}: 1`, "", ""].join("\r\n");
}

/** Sends the request on to the node's address and its answer back, both unread. */
export function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { address, clock, limits, unreachable: told }: RelayRoute,
): void {
  const { method, url, headers } = request;
  const onward = requestTo(address, {
    method,
    path: url,
    headers: { ...headers, [marker]: "1" },
    agent: false,
  });
  let refused = unreachable;
  const late = (): void => void onward.destroy(new Error("the node did not answer in time"));
  let cancel = clock.after(limits.connectMs, late);
  onward.once("socket", (socket) =>
    socket.once(address.isSecure ? "secureConnect" : "connect", () => {
      cancel();
      refused = silent;
      cancel = clock.after(limits.answerMs, late);
    }),
  );
  onward.once("response", (answer) => {
    cancel();
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    answer.once("error", () => response.destroy());
  });
  onward.once("error", () => {
    cancel();
    const isClientGone = response.destroyed;
    refuseRequest(response, refused);
    if (!isClientGone) told?.();
  });
  response.once("close", () => onward.destroy());
  request.pipe(onward);
}
