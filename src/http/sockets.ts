import { type IncomingMessage, Server, type ServerOptions, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Refusal, refusal } from "../base/errors.js";
import { hasTwoHosts, type HostCheck } from "../base/net/host-check.js";
import { repliesOn, watchReplies } from "../base/net/open-replies.js";
import { type AppState, hostCheckOf } from "./app.js";
import type { AuditTrail } from "./audit.js";
import type { HttpDeps, HttpOptions } from "./deps.js";
import { isInterceptedPath } from "./request-interceptor.js";
import { refuseMalformed, refuseOnSocket } from "./raw-reply.js";

type HttpListener = (request: IncomingMessage, response: ServerResponse) => void;

interface Wiring {
  readonly options: HttpOptions;
  readonly deps: HttpDeps;
  readonly state: AppState;
  /** Undefined where there is no audit log. */
  readonly trail: AuditTrail | undefined;
  /** Sockets that were upgraded: Node.js no longer counts them as its own when it closes. */
  readonly upgraded: Set<Duplex>;
  readonly isDocsPath: (url: string) => boolean;
  readonly docs: HttpListener;
}

/**
 * Node.js takes a connection for idle as soon as its reply was ended; closing it then cuts off what its
 * client has yet to read (http.Server of Node.js 20 to 24). Here it is idle once its last reply has left.
 */
class ApiServer extends Server {
  /** The bytes that an idle connection had received by then: more of them are a request on its way. */
  readonly #idle = new Map<Socket, number>();

  constructor(options: ServerOptions, listener: HttpListener) {
    super(options, listener);
    watchReplies(this, (socket) => this.#idle.set(socket, socket.bytesRead));
    this.prependListener("request", ({ socket }) => this.#idle.delete(socket));
    this.on("connection", (socket: Socket) => socket.once("close", () => this.#idle.delete(socket)));
  }

  override closeIdleConnections(): void {
    for (const [socket, bytes] of this.#idle) if (socket.bytesRead === bytes) socket.destroy();
  }
}

/** The Node.js server under the API: who sees a request first, what is malformed, what takes too long. */
export function makeServer(wiring: Wiring, api: HttpListener): Server {
  const { options } = wiring;
  const hosts = hostCheckOf(options);
  const server = new ApiServer(
    {
      headersTimeout: options.headersTimeoutMs,
      requestTimeout: options.requestTimeoutMs,
      keepAliveTimeout: options.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(options.headersTimeoutMs, 5000),
      // Refused below: Node.js answers it without a body.
      requireHostHeader: false,
      noDelay: true,
    },
    guarded(wiring, hosts, route(wiring, api)),
  );
  server.maxConnections = options.maxConnections;
  server.setTimeout(options.silenceTimeoutMs, cutSilent);
  const refuse = (request: IncomingMessage, refused: Refusal): void => {
    wiring.trail?.refused(request, refused);
    refuseOnSocket(request.socket, refused, request);
  };
  server.on("clientError", (error, socket) =>
    refuseMalformed(error, socket, (request, refused) => wiring.trail?.refused(request, refused)),
  );
  server.on("checkExpectation", (request: IncomingMessage) => refuse(request, expectsUnknown));
  // Node.js would close the connection without a word.
  server.on("connect", (request: IncomingMessage) => refuse(request, isNoProxy));
  server.on("upgrade", (request, socket, head) => {
    wiring.trail?.upgrading(request, socket);
    // Whatever is said there now would stand before replies that are still to come.
    if (repliesOn(socket).length > 0) return void socket.destroy();
    // A page of any origin may open a WebSocket here: it has to know the token, which nothing sends by itself
    // as it does a cookie.
    if (hasTwoHosts(request)) return refuseOnSocket(socket, ambiguous, request);
    if (!hosts.admits(request.headers.host)) return refuseOnSocket(socket, misdirected, request);
    upgrade(wiring, request, { socket, head });
  });
  return server;
}

/** What was sent of a reply would wait in the system for minutes more; a reset throws it away. */
function cutSilent(socket: Socket): void {
  if (repliesOn(socket).some(({ headersSent }) => headersSent)) socket.resetAndDestroy();
  else socket.destroy();
}

const route =
  ({ deps, trail, isDocsPath, docs }: Wiring, api: HttpListener): HttpListener =>
  (request, response) => {
    const url = request.url ?? "/";
    trail?.received(request, response);
    if (isInterceptedPath(url) && deps.interceptor.request(request, response)) return;
    if (isDocsPath(url)) docs(request, response);
    else api(request, response);
  };

const expectsUnknown = refusal("bad_request", { message: "The Expect header asks for what is not known" });
const isNoProxy = refusal("method_not_allowed", { message: "This daemon is no proxy" });
const misdirected = refusal("misdirected", {
  message:
    "This daemon listens on loopback and is not known by the name in the Host header: see server.public_url",
});
const withoutHost = refusal("bad_request", { message: "The Host header is missing" });
const ambiguous = refusal("bad_request", { message: "There is more than one Host header" });

const guarded =
  ({ deps, trail }: Wiring, hosts: HostCheck, listener: HttpListener): HttpListener =>
  (request, response) => {
    const refuse = (refused: Refusal): void => {
      trail?.refused(request, refused);
      refuseOnSocket(request.socket, refused, request);
    };
    try {
      if (request.httpVersion === "1.1" && request.headers.host === undefined) return refuse(withoutHost);
      if (hasTwoHosts(request)) return refuse(ambiguous);
      if (!hosts.admits(request.headers.host)) return refuse(misdirected);
      listener(request, response);
    } catch (error) {
      deps.log.error({ error }, "request failed before it was routed");
      refuse(refusal("internal"));
    }
  };

function upgrade(
  { deps, state, upgraded }: Wiring,
  request: IncomingMessage,
  { socket, head }: { socket: Duplex; head: Buffer },
): void {
  upgraded.add(socket);
  socket.once("close", () => upgraded.delete(socket));
  // The interceptor listens itself once it has taken the socket; until then a reset must not end the process.
  socket.on("error", () => socket.destroy());
  if ("setTimeout" in socket && typeof socket.setTimeout === "function") socket.setTimeout(0);
  if (state.closing) return refuseOnSocket(socket, refusal("draining"), request);
  try {
    if (deps.interceptor.upgrade(request, socket, head)) return;
    refuseOnSocket(
      socket,
      refusal("route_not_found", { message: "There is nothing to upgrade to on this path" }),
      request,
    );
  } catch (error) {
    deps.log.error({ error }, "upgrade failed");
    refuseOnSocket(socket, refusal("internal"), request);
  }
}
