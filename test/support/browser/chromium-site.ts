import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Site {
  /** `http://127.0.0.1:<port>`; `http://localhost:<port>` is another origin of the same server. */
  readonly origin: string;
  readonly otherOrigin: string;
  readonly requests: string[];
  /** Answers of `/slow-file`, which begin and go no further, and of `/silent`, which do not begin. */
  readonly open: ReadonlySet<ServerResponse>;
  close(): Promise<void>;
}

const framed = `<!doctype html><script>
  const found = localStorage.length;
  if (!location.search) localStorage.setItem("held", "1");
  const opened = location.search ? Promise.resolve() : caches.open("held").then((cache) => cache.put("/held", new Response("held")));
  opened.then(() => parent.postMessage({ found }, "*"));
</script>`;

const mayBeKept = { "cache-control": "max-age=3600" };

/** Answers that are not just a page. */
const answers: Record<string, (response: ServerResponse) => void> = {
  "/sw.js": (response) => response.setHeader("content-type", "text/javascript").end("onfetch = () => {};"),
  "/cached": (response) => response.writeHead(200, mayBeKept).end("cached"),
  "/moved": (response) => response.writeHead(301, { ...mayBeKept, location: "/elsewhere" }).end(),
  "/file": (response) =>
    response.setHeader("content-disposition", "attachment; filename=kept.txt").end("kept"),
  "/framed": (response) => response.setHeader("content-type", "text/html").end(framed),
};

const endless: Record<string, (response: ServerResponse) => void> = {
  "/slow-file": (response) =>
    void response
      .writeHead(200, { "content-disposition": "attachment; filename=slow.txt" })
      .write("x".repeat(2 ** 16)),
  "/silent": () => {},
};

/** Chromium sends longer addresses than Node.js takes by itself. */
const longestHeadBytes = 2 ** 16;

const pathOf = ({ url = "/" }: IncomingMessage): string => url.split("?")[0] ?? "/";

function answer(request: IncomingMessage, response: ServerResponse): void {
  const given = answers[pathOf(request)];
  if (given) given(response);
  else response.setHeader("content-type", "text/html").end("<!doctype html><title>site</title><body>hello");
}

/** A local web server with a page, a frame, a service worker, answers that may be kept and downloads. */
export async function openSite(): Promise<Site> {
  const requests: string[] = [];
  const open = new Set<ServerResponse>();
  const server = createServer({ maxHeaderSize: longestHeadBytes }, (request, response) => {
    requests.push(request.url ?? "/");
    const begin = endless[pathOf(request)];
    if (!begin) return answer(request, response);
    open.add(response);
    response.once("close", () => open.delete(response));
    begin(response);
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  };
  const origins = { origin: `http://127.0.0.1:${port}`, otherOrigin: `http://localhost:${port}` };
  return { ...origins, requests, open, close };
}
