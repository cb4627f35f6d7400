import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { textOf, type Log } from "../base/log.js";
import { answerJson, refuseRequest } from "./answer.js";
import type { Gateway } from "./gateway.js";

export interface NodeServerParts {
  readonly gateway: Pick<Gateway, "request" | "upgrade">;
  readonly log: Log;
  unready(): string | undefined;
  readonly metrics: { readonly contentType: string; text(): Promise<string> };
  /** Whether `/metrics` may be read without a key: on a loopback bind, or where the operator says so. */
  readonly showsMetrics: boolean;
}

/** The server of the node role: its browsers' URLs, health, metrics. The API is the controls'. */
export async function listenAsNodeServer(
  at: { readonly host: string; readonly port: number; readonly requestTimeoutMs: number },
  parts: NodeServerParts,
): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer({ requestTimeout: at.requestTimeoutMs, headersTimeout: at.requestTimeoutMs }, (request, response) => {
    void answer(parts, request, response).catch((error: unknown) => {
      parts.log.error({ error: textOf(error) }, "request failed");
      refuseRequest(response, { code: "internal" });
    });
  });
  server.on("upgrade", (request, socket, head) => parts.gateway.upgrade(request, socket, head));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: at.host, port: at.port }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(parts: NodeServerParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (parts.gateway.request(request, response)) return;
  const path = (request.url ?? "/").split("?", 1)[0];
  if (path === "/healthz") return answerJson(response, { status: "ok" });
  if (path === "/readyz") return answerReadiness(parts, response);
  if (path === "/metrics" && parts.showsMetrics) {
    response.writeHead(200, { "content-type": parts.metrics.contentType }).end(await parts.metrics.text());
    return;
  }
  refuseRequest(response, { code: "route_not_found" });
}

function answerReadiness({ unready }: NodeServerParts, response: ServerResponse): void {
  const why = unready();
  if (why === undefined) answerJson(response, { status: "ready" });
  else refuseRequest(response, { code: "unavailable", message: `Not ready: ${why}` });
}
