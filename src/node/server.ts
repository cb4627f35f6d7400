import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { textOf, type Log } from "../base/log.js";
import { hasTwoHosts, type HostCheck } from "../base/net/host-check.js";
import { endServer } from "../base/net/end-server.js";
import { listenOn } from "../base/net/listen-on.js";
import { watchReplies } from "../base/net/open-replies.js";
import { bearerOf } from "../base/crypto/bearer.js";
import { makeKeyCheck } from "../base/crypto/key-check.js";
import type { Secret } from "../base/crypto/secret.js";
import { securityHeaders } from "../base/net/security-headers.js";
import { answerJson, refuseRequest, refuseUpgrade } from "../gateway/refusals.js";
import type { Gateway } from "../gateway/gateway.js";

interface NodeServerOptions {
  readonly host: string;
  readonly port: number;
  /** The limit in which a request has to arrive, its headers included. */
  readonly requestTimeoutMs: number;
  readonly maxConnections: number;
}

interface NodeServerParts {
  readonly gateway: Pick<Gateway, "request" | "upgrade">;
  /** Takes the messages of other daemons. */
  readonly direct: Pick<Gateway, "request">;
  readonly log: Log;
  unready(): string | undefined;
  /** Whether Redis is there; sockets are served without it. */
  hasStore(): boolean;
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  /** The key of `/metrics`, which nobody needs who comes to a loopback address by a loopback name. */
  readonly key: Secret;
  readonly hosts: HostCheck;
}

/** The server of the node role: its browsers' URLs, health, metrics. The API is the controls'. */
export async function listenAsNodeServer(
  { host, port, requestTimeoutMs, maxConnections }: NodeServerOptions,
  parts: NodeServerParts,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const { hosts } = parts;
  const mayReadMetrics = makeMetricsCheck(parts);
  const server = createServer(
    {
      requestTimeout: requestTimeoutMs,
      headersTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(requestTimeoutMs, 5000),
    },
    (request, response) => {
      if (hasTwoHosts(request)) return refuseRequest(response, { code: "bad_request" });
      if (!hosts.admits(request.headers.host)) return refuseRequest(response, { code: "misdirected" });
      void answer({ ...parts, mayReadMetrics }, request, response).catch((error: unknown) => {
        parts.log.error({ error: textOf(error) }, "request failed");
        refuseRequest(response, { code: "internal" });
      });
    },
  );
  watchReplies(server);
  server.maxConnections = maxConnections;
  server.on("upgrade", (request, socket, head) => {
    const isTwice = hasTwoHosts(request);
    if (!isTwice && hosts.admits(request.headers.host)) return parts.gateway.upgrade(request, socket, head);
    socket.on("error", () => socket.destroy());
    refuseUpgrade(socket, { code: isTwice ? "bad_request" : "misdirected" });
  });
  await listenOn(server, { host, port });
  return { port: (server.address() as AddressInfo).port, close: () => endServer(server) };
}

type MetricsCheck = (headers: IncomingHttpHeaders) => boolean;

function makeMetricsCheck({ key, hosts }: NodeServerParts): MetricsCheck {
  const isKey = makeKeyCheck(key);
  return ({ host, authorization }) => hosts.isLocal(host) || isKey(bearerOf(authorization) ?? "");
}

async function answer(
  parts: NodeServerParts & { readonly mayReadMetrics: MetricsCheck },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (parts.gateway.request(request, response) || parts.direct.request(request, response)) return;
  const path = (request.url ?? "/").split("?", 1)[0];
  if (path === "/healthz") return answerJson(response, { status: "ok" });
  if (path === "/readyz") return answerReadiness(parts, response);
  if (path === "/metrics") {
    if (!parts.mayReadMetrics(request.headers)) return refuseRequest(response, { code: "unauthorized" });
    response
      .writeHead(200, { ...securityHeaders, "content-type": parts.metrics.contentType })
      .end(await parts.metrics.text());
    return;
  }
  refuseRequest(response, { code: "route_not_found" });
}

function answerReadiness({ unready, hasStore }: NodeServerParts, response: ServerResponse): void {
  const why = unready();
  if (why === undefined) answerJson(response, { status: "ready", store: hasStore() ? "connected" : "lost" });
  else refuseRequest(response, { code: "unavailable", message: `Not ready: ${why}` });
}
