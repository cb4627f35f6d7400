import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { Served } from "../../support/egress/egress-site.js";

/** A web server that browsers may reach: it serves what attempts need, and hears what they say. */
export interface Site {
  readonly origin: string;
  /** What is served at the path; gives its URL. Anything else is an empty page. */
  serve(path: string, served: Served): string;
  /** Resolves when the path is asked for, also when that was before. */
  heard(path: string): Promise<void>;
  /** The bodies of all requests for the path so far. */
  said(path: string): readonly string[];
  close(): Promise<void>;
}

const page: Served = { body: "<!doctype html><title>allowed</title><body>allowed" };

export async function openSite(): Promise<Site> {
  const served = new Map<string, Served>();
  const bodies = new Map<string, string[]>();
  const waiting = new Map<string, (() => void)[]>();
  const recordRequest = async (path: string, request: IncomingMessage): Promise<void> => {
    bodies.set(path, [...(bodies.get(path) ?? []), await text(request).catch(() => "")]);
    for (const resolve of waiting.get(path) ?? []) resolve();
  };
  const server = createServer((request, response) => {
    const [path = "/"] = (request.url ?? "/").split("?");
    const { status = 200, headers = {}, body = "" } = served.get(path) ?? page;
    void recordRequest(path, request).then(() => {
      response
        .writeHead(status, {
          "content-type": "text/html",
          "access-control-allow-origin": "*",
          "cache-control": "no-store",
          ...headers,
        })
        .end(body);
    });
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    origin,
    serve(path, what) {
      served.set(path, what);
      return origin + path;
    },
    heard: (path) =>
      bodies.has(path)
        ? Promise.resolve()
        : new Promise((resolve) => waiting.set(path, [...(waiting.get(path) ?? []), resolve])),
    said: (path) => bodies.get(path) ?? [],
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
