import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const page = (body: string): string => `<!doctype html><meta charset="utf-8"><title>A page</title>${body}`;

const script = (code: string): string => page(`<p>Some text that is painted.</p><script>${code}</script>`);

const fields = `<style>body { margin: 0 } form, a { display: block; position: absolute; left: 10px }</style>
  <a id="link" style="top:10px" href="#there">Go  there</a>
  <form style="top:60px"><input name="id" id="field"><input name="tagName" type="password" id="secret"></form>
  <div id="box" style="position:absolute;top:120px;left:10px;width:200px;height:100px;overflow:auto">
    <div style="height:2000px">long</div></div>`;

const pages: Readonly<Record<string, string>> = {
  "/": page(`<h1>Hello</h1><img src="/image" id="picture">`),
  "/console": script(`console.log("hello", 1, { a: 2 }); console.error("bad"); throw new Error("thrown");`),
  "/fields": page(fields),
  "/inner": script(`onmessage = () => fetch("/json?inner"); console.log("from the frame")`),
  "/worker": script(`globalThis.worker = new Worker("/worker.js")`),
};

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://site");
  const found = pages[pathname];
  if (found !== undefined) return send(response, "text/html", found);
  if (pathname === "/image") return send(response, "image/png", png);
  if (pathname === "/worker.js")
    return send(
      response,
      "text/javascript",
      `onmessage = () => fetch("/json?worker"); console.log("from the worker")`,
    );
  if (pathname === "/json") return send(response, "application/json", `{"answer":42}`);
  if (pathname === "/long")
    return send(response, "text/plain", "x".repeat(Number(searchParams.get("bytes"))));
  if (pathname === "/moved") return void response.writeHead(302, { location: "/json" }).end();
  if (pathname === "/denied") return void response.writeHead(403, { "x-remuda-egress": "denied" }).end("no");
  if (pathname === "/endless")
    return void response.writeHead(200, { "content-type": "text/html" }).write(page("begun"));
  if (pathname === "/broken") return void request.socket.destroy();
  response.writeHead(404).end();
}

function send(response: ServerResponse, type: string, body: string | Buffer): void {
  response
    .writeHead(200, { "content-type": type, "set-cookie": "who=somebody", "x-session-key": "k" })
    .end(body);
}

/** A site of the test's own; `url` is on one host of the machine, `otherUrl` on another one. */
export async function openMonitoredSite(): Promise<{
  readonly url: string;
  readonly otherUrl: string;
  close(): Promise<void>;
}> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    otherUrl: `http://localhost:${port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
