import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { abortResponse, malformed, egressRefusalOf, refuseProxied } from "./refusals.js";
import { destroySocket } from "./dial.js";
import { backwardHeaders, onwardHeaders } from "./headers.js";
import type { Origins } from "./origins.js";
import type { ConnectAttempt, TargetSocket, OpenRoute, OpenConnection } from "./connections.js";
import { basicAuthorization, UpstreamFailure } from "./upstream.js";
import { awaitPace, pipeBytes } from "./join-sockets.js";
import { type AbsoluteTarget, authorityOf, hostHeaderOf, parseAbsoluteTarget } from "./target.js";
import type { TunnelParts } from "./tunnel.js";

export interface ForwardParts extends TunnelParts {
  readonly origins: Origins;
  readonly headerBytes: number;
}

/** One plain request of a browser. */
export interface ProxyExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Sends a plain request on and its answer back, both as they come. */
export async function forward(exchange: ProxyExchange, shared: ForwardParts): Promise<void> {
  const { request, response } = exchange;
  const asked = parseAbsoluteTarget(request.url ?? "");
  if (!asked) return refuseProxied(response, malformed("A proxy is asked for an absolute http URL"));
  const { headers, fault } = onwardHeaders(request.rawHeaders, { host: hostHeaderOf(asked.target) });
  if (fault !== undefined) return refuseProxied(response, malformed(fault));
  const hasBody =
    request.headers["transfer-encoding"] !== undefined || (request.headers["content-length"] ?? "0") !== "0";
  await awaitPace(shared.pace, (giveUp) => response.once("close", giveUp));
  if (response.destroyed) return;
  await new Forwarding(exchange, { asked, headers, shared, hasBody }).run();
}

interface ForwardedRequest {
  readonly asked: AbsoluteTarget;
  readonly headers: readonly string[];
  readonly hasBody: boolean;
  readonly shared: ForwardParts;
}

/**
 * One exchange; it is repeated where the first attempt cannot have reached the origin, or its rules are gone.
 */
class Forwarding {
  /** The key under which its connection is kept for the next request. */
  #key = "";
  /** A kept connection may have been given up by its origin; what cannot be sent again gets a new one. */
  #needsFresh: boolean;

  constructor(
    private readonly exchange: ProxyExchange,
    private readonly parts: ForwardedRequest,
  ) {
    this.#needsFresh = parts.hasBody;
  }

  async run(): Promise<void> {
    const { response } = this.exchange;
    const { connections } = this.parts.shared;
    const entry = await connections.enter(this.parts.asked.target, (route, attempt) =>
      this.#connect(route, attempt),
    );
    if (entry.kind !== "open") return refuseProxied(response, egressRefusalOf(entry));
    const { connection } = entry;
    if (response.destroyed) return connection.cut();
    // The rules have changed since it was entered, and nothing was sent.
    if (connection.isCut) return this.#again();
    try {
      this.#send(connection);
    } catch (error) {
      connection.cut();
      throw error;
    }
  }

  async #connect(route: OpenRoute, attempt: ConnectAttempt): Promise<TargetSocket> {
    const {
      asked: { target },
      shared: { connector },
    } = this.parts;
    if (route.kind === "upstream") {
      const isAbsolute = route.upstream.protocol !== "socks5";
      this.#key = `${attempt.generation} ${route.upstream.id} ${isAbsolute ? "" : authorityOf(target)}`;
      return (
        this.#idle() ??
        (isAbsolute
          ? await connector.upstream(route.upstream, attempt)
          : await connector.tunnel(target, route, attempt))
      );
    }
    for (const address of route.addresses) {
      this.#key = authorityOf({ ...target, host: address });
      const idle = this.#idle(address);
      if (idle) return idle;
    }
    const made = await connector.direct(route.addresses, target.port, attempt);
    this.#key = authorityOf({ ...target, host: made.address ?? target.host });
    return made;
  }

  #idle(address?: string): TargetSocket | undefined {
    const socket = this.#needsFresh ? undefined : this.parts.shared.origins.findIdle(this.#key);
    return socket && { socket, address };
  }

  #send(connection: OpenConnection): void {
    const { request, response } = this.exchange;
    const { origins, headerBytes, pace } = this.parts.shared;
    const onward = origins.ask(this.#key, connection.connection.socket, {
      method: request.method ?? "GET",
      path: this.#path(connection),
      headers: this.#headers(connection),
      headerBytes,
    });
    connection.onCut(() => {
      onward.destroy();
      if (response.headersSent) abortResponse(response);
    });
    onward.once("continue", () => response.writeContinue());
    onward.once("response", (answer) => this.#answer(answer, connection));
    onward.on("error", () => this.#fail(onward, connection));
    // No request asked for another protocol, so an upgrade is refused.
    onward.once("upgrade", (_, socket: Socket) => {
      destroySocket(socket);
      this.#fail(onward, connection);
    });
    onward.once("close", () => {
      connection.release();
      if (response.closed) connection.end();
    });
    response.once("close", () => {
      onward.destroy();
      if (onward.closed) connection.end();
    });
    if (!this.parts.hasBody) return void onward.end();
    onward.flushHeaders();
    request.once("end", () => addTrailers(onward, request.rawTrailers));
    pipeBytes(request, onward, pace);
  }

  #path({ route }: OpenConnection): string {
    const { target, path } = this.parts.asked;
    return route.kind === "upstream" && route.upstream.protocol !== "socks5"
      ? `http://${hostHeaderOf(target)}${path}`
      : path;
  }

  #headers({ route }: OpenConnection): readonly string[] {
    const { headers, hasBody } = this.parts;
    const authorization =
      route.kind === "upstream" && route.upstream.protocol !== "socks5"
        ? basicAuthorization(route.upstream)
        : undefined;
    return [
      ...headers,
      "Connection",
      hasBody ? "close" : "keep-alive",
      ...(authorization === undefined ? [] : ["Proxy-Authorization", authorization]),
      // Node.js would otherwise write an empty chunked body for a POST (Node.js 20.20).
      ...(hasBody || "content-length" in this.exchange.request.headers
        ? []
        : bodiless(this.exchange.request.method)),
    ];
  }

  #answer(answer: IncomingMessage, { route }: OpenConnection): void {
    const { response } = this.exchange;
    if (route.kind === "upstream" && answer.statusCode === 407) {
      answer.destroy();
      return refuseProxied(
        response,
        egressRefusalOf({
          kind: "failed",
          message: new UpstreamFailure(route.upstream.id, "answered 407").message,
        }),
      );
    }
    response.sendDate = false;
    try {
      response.writeHead(
        answer.statusCode ?? 502,
        answer.statusMessage ?? "",
        backwardHeaders(answer.rawHeaders),
      );
    } catch {
      // The parser lets some answers pass that cannot be written, such as one with status 099.
      answer.destroy();
      return refuseProxied(
        response,
        egressRefusalOf({ kind: "failed", message: "The answer is not valid HTTP" }),
      );
    }
    answer.once("end", () => addTrailers(response, answer.rawTrailers));
    answer.once("error", () => abortResponse(response));
    pipeBytes(answer, response, this.parts.shared.pace);
  }

  #fail({ reusedSocket }: ClientRequest, connection: OpenConnection): void {
    const { response } = this.exchange;
    connection.end();
    if (response.destroyed || response.headersSent) return abortResponse(response);
    if (!this.parts.hasBody && (reusedSocket || connection.isCut)) return this.#again();
    if (!connection.isCut)
      return refuseProxied(
        response,
        egressRefusalOf({ kind: "failed", message: "The connection broke before there was an answer" }),
      );
    refuseProxied(
      response,
      egressRefusalOf({
        kind: "denied",
        by: "closed",
        message: "The rules were changed while the request was sent",
      }),
    );
  }

  #again(): void {
    this.#needsFresh = true;
    this.run().catch(() => this.exchange.response.destroy());
  }
}

const bodiless = (method = ""): readonly string[] =>
  ["POST", "PUT", "PATCH"].includes(method) ? ["Content-Length", "0"] : [];

function addTrailers(message: ClientRequest | ServerResponse, raw: readonly string[]): void {
  const pairs = Array.from({ length: raw.length / 2 }, (_, place): [string, string] => [
    raw[place * 2] ?? "",
    raw[place * 2 + 1] ?? "",
  ]);
  try {
    message.addTrailers(pairs);
  } catch {
    // What cannot be a trailer is left out; the message is whole without.
  }
}
