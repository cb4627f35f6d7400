import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { endServer } from "../base/net/end-server.js";
import { listenOn } from "../base/net/listen-on.js";

interface HealthOptions {
  readonly host: string;
  readonly port: number;
  /** Why it does no work, if it does none. */
  unready(): string | undefined;
}

/** `/healthz` and `/readyz`, and nothing else: nobody has anything to ask of an operator. */
export async function listenForProbes({
  host,
  port,
  unready,
}: HealthOptions): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer({ requestTimeout: 5000, headersTimeout: 5000 }, ({ url }, response) => {
    const reason = url === "/readyz" ? unready() : undefined;
    const isKnown = url === "/healthz" || url === "/readyz";
    response.writeHead(isKnown ? (reason === undefined ? 200 : 503) : 404, {
      "content-type": "application/json",
    });
    response.end(JSON.stringify(reason === undefined ? { status: "ok" } : { status: reason }));
  });
  server.maxConnections = 100;
  await listenOn(server, { host, port });
  return { port: (server.address() as AddressInfo).port, close: () => endServer(server) };
}
