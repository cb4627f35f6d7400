import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

export interface Served {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/**
 * A web server that browsers may reach: it serves the pages which attempts begin from, and hears their last
 * word.
 */
export interface AllowedSite {
  readonly host: string;
  readonly port: number;
  readonly origin: string;
  /** What is served at the path; gives its URL. Anything else is an empty page. */
  serve(path: string, served: Served): string;
  /** Resolves when the path is asked for, also when that was before. */
  heard(path: string): Promise<void>;
  readonly requests: { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  close(): Promise<void>;
}

const page: Served = { body: "<!doctype html><title>allowed</title><body>allowed" };

export async function openAllowedSite(host: string): Promise<AllowedSite> {
  const served = new Map<string, Served>();
  const heard = new Map<string, { promise: Promise<void>; resolve: () => void }>();
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const waiting = (path: string): { promise: Promise<void>; resolve: () => void } => {
    let resolve = (): void => {};
    const entry = heard.get(path) ?? {
      promise: new Promise<void>((settle) => (resolve = settle)),
      resolve: () => resolve(),
    };
    heard.set(path, entry);
    return entry;
  };
  const server = createServer(({ url = "/", headers }, response) => {
    const [path = "/"] = url.split("?");
    requests.push({ path, headers });
    waiting(path).resolve();
    const { status = 200, headers: given = {}, body = "" } = served.get(path) ?? page;
    response
      .writeHead(status, {
        "content-type": "text/html",
        "access-control-allow-origin": "*",
        "cache-control": "no-store",
        ...given,
      })
      .end(body);
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return {
    host,
    port,
    origin,
    requests,
    serve(path, what) {
      served.set(path, what);
      return origin + path;
    },
    heard: (path) => waiting(path).promise,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
}
