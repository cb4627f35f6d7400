import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { openSecureSite } from "../../../support/egress/egress-secure-site.js";

/** A web server that remembers what it has seen of whom. */
export interface RememberingSite {
  readonly origin: string;
  readonly host: string;
  /** How often a path was asked for. */
  countOf(path: string): number;
  /** Whether somebody still takes a file that never ends. */
  isSending(): boolean;
  /** One whose certificate nobody trusts; each request takes a connection of its own. */
  readonly secure: {
    readonly origin: string;
    /** The last request's connection went on with a TLS session of before. */
    wasResumed(): boolean;
  };
  close(): Promise<void>;
}

const user = "held";
const worker = { "content-type": "text/javascript" };
const sharedWorker = `let held = 0; onconnect = ({ ports: [port] }) => { port.onmessage = ({ data }) => { if (data === "leave") held = 1; port.postMessage(held); }; };`;

/**
 * `/auth` wants a password once, `/cached` may be kept, `/file` is a download, `/slow-file` one without an
 * end, `/socket` tells whether its connection was used before.
 */
export async function openRememberingSite(): Promise<RememberingSite> {
  const counts = new Map<string, number>();
  const known = new WeakSet<Socket>();
  const sending = new Set<ServerResponse>();
  const isKnown = (socket: Socket): string => {
    const text = known.has(socket) ? "known" : "new";
    known.add(socket);
    return text;
  };
  const paths: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => unknown>> = {
    "/shared.js": (_, response) => response.writeHead(200, worker).end(sharedWorker),
    "/sw.js": (_, response) => response.writeHead(200, worker).end("onfetch = () => {};"),
    "/worklet.js": (_, response) => response.writeHead(200, worker).end(""),
    "/socket": ({ socket }, response) => response.end(isKnown(socket)),
    "/cached": (_, response) => response.writeHead(200, { "cache-control": "max-age=9999" }).end("kept"),
    "/file": (_, response) =>
      response.writeHead(200, { "content-disposition": "attachment; filename=kept.txt" }).end("kept"),
    "/slow-file": (_, response) => {
      sending.add(response);
      response.once("close", () => sending.delete(response));
      response.writeHead(200, { "content-disposition": "attachment; filename=slow.txt" }).write("begun");
    },
    "/auth": ({ headers: { authorization } }, response) =>
      authorization === undefined
        ? response.writeHead(401, { "www-authenticate": `Basic realm="${user}"` }).end("who?")
        : response.end("known"),
    "/headers": ({ headers }, response) => response.end(JSON.stringify(headers)),
  };
  const server = createServer((request, response) => {
    const [path = "/"] = (request.url ?? "/").split("?");
    counts.set(path, (counts.get(path) ?? 0) + 1);
    const answer = paths[path];
    if (answer) answer(request, response);
    else response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><body>");
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  let wasResumed = false;
  const secure = await openSecureSite("127.0.0.1", (request, response) => {
    wasResumed = (request.socket as TLSSocket).isSessionReused();
    response.writeHead(200, { "content-type": "text/html", connection: "close" });
    response.end("<!doctype html><link rel=icon href='data:,'>");
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    origin: `http://${host}`,
    countOf: (path) => counts.get(path) ?? 0,
    isSending: () => sending.size > 0,
    secure: { origin: secure.origin, wasResumed: () => wasResumed },
    async close() {
      await secure.close();
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
