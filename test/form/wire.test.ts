import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { eachFormBed, openFormBed } from "../support/form/form-bed.js";
import { token } from "../support/form/scripted-forms.js";

const bed = eachFormBed();
const sockets: Socket[] = [];
afterEach(() => sockets.splice(0).forEach((socket) => socket.destroy()));

const request = (path: string, body: string, ...headers: readonly string[]): string =>
  [`POST ${path} HTTP/1.1`, "host: 127.0.0.1", "content-type: application/json", ...headers, "", body].join(
    "\r\n",
  );
const sized = (path: string, body: string, ...headers: readonly string[]): string =>
  request(path, body, `content-length: ${Buffer.byteLength(body)}`, ...headers);
const open = JSON.stringify({ token });
const submission = JSON.stringify({ token, version: 3, values: {} });
const chunked = (body: string): string => `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

interface Said {
  readonly socket: Socket;
  /** What has come from there by its end. */
  readonly heard: Promise<string>;
}

/** A connection on which `text` was written as it is. */
function say(port: number, text: string): Said {
  const socket = connect(port, "127.0.0.1", () => socket.write(text));
  sockets.push(socket);
  let got = "";
  socket.setEncoding("utf8").on("data", (more: string) => (got += more));
  socket.on("error", () => {});
  return { socket, heard: once(socket, "close").then(() => got) };
}
const answersIn = (text: string): readonly string[] => text.match(/HTTP\/1\.1 \d+/g) ?? [];

test.each([
  ["a length and chunks", request("/open", chunked(open), "content-length: 4", "transfer-encoding: chunked")],
  ["two lengths", request("/open", open, "content-length: 4", `content-length: ${open.length}`)],
  ["chunks that are not the last coding", request("/open", open, "transfer-encoding: chunked, identity")],
  ["a coding with a space before its colon", request("/open", chunked(open), "transfer-encoding : chunked")],
  ["a folded header", request("/open", chunked(open), "x-a: b\r\n transfer-encoding: chunked")],
  ["a length with a sign", request("/open", open, `content-length: +${open.length}`)],
  [
    "chunks whose length is none",
    request("/open", "0x5\r\nhello\r\n0\r\n\r\n", "transfer-encoding: chunked"),
  ],
  ["what is no HTTP", "hello\r\n\r\n"],
  ["64 KiB of headers", request("/open", "", `x-a: ${"a".repeat(65_536)}`)],
])("of a request with %s nothing is believed, and nothing behind it is answered", async (_, text) => {
  const { port, forms } = bed();
  const { heard } = say(port, text + sized("/open", open, "connection: close"));
  const answer = await heard;
  expect(answersIn(answer)).toEqual(["HTTP/1.1 400"]);
  expect(answer.toLowerCase()).toContain("content-security-policy:");
  expect(answer).not.toContain("fastify");
  expect(forms.opened).toEqual([]);
});

test("requests that come at once on one connection are answered in their order", async () => {
  const { port, forms } = bed();
  const unknown = sized("/open", JSON.stringify({ token: "unknown" }));
  const { heard } = say(port, unknown + sized("/open", open, "connection: close"));
  expect(answersIn(await heard)).toEqual(["HTTP/1.1 404", "HTTP/1.1 200"]);
  expect(forms.opened).toEqual(["unknown", token]);
});

test.each([
  ["what is no HTTP", "hello\r\n\r\n"],
  ["a length and chunks", request("/open", chunked(open), "content-length: 4", "transfer-encoding: chunked")],
])("%s behind a submission under way is not answered in its place", async (_, text) => {
  const { port, forms } = bed();
  let release = (): void => {};
  forms.hold = new Promise<void>((resolve) => (release = resolve));
  const { socket, heard } = say(port, sized("/submit", submission));
  await expect.poll(() => forms.held).toBe(1);
  socket.write(text);
  expect(answersIn(await heard)).toEqual([]);
  release();
  await expect.poll(() => forms.taken.length).toBe(1);
});

test("who sends a request drop by drop is cut after the limit, and others are served meanwhile", async () => {
  const slow = await openFormBed({ requestTimeoutMs: 300 });
  const dropping: Said[] = [];
  const sayDropping = (text: string): Said => {
    const said = say(slow.port, text);
    dropping.push(said);
    return said;
  };
  const sayHeader = (): Said => sayDropping("POST /open HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: ");
  const openedAt = performance.now();
  const first = [sayHeader(), sayDropping(request("/open", "{", "content-length: 1000")), say(slow.port, "")];
  const cutAt = Promise.all(first.map(({ heard }) => heard)).then(() => performance.now());
  const drops = setInterval(() => {
    for (const { socket } of dropping) if (socket.writable) socket.write(" ");
  }, 20);
  let tries = 0;
  /** A request of somebody else is under the same limit, which a busy machine may reach. */
  const askMeanwhile = async (): Promise<object> => {
    tries += 1;
    const { socket } = sayHeader();
    await once(socket, "connect");
    const status = await slow.ask("/open", { token }).then(
      (answer) => answer.status,
      () => 0,
    );
    return { status, isCut: socket.destroyed };
  };
  await expect.poll(askMeanwhile).toEqual({ status: 200, isCut: false });
  // Node.js looks every 30 s unless it is told otherwise.
  expect((await cutAt) - openedAt).toBeLessThan(25_000);
  await Promise.all(dropping.map(({ heard }) => heard));
  clearInterval(drops);
  expect(new Set(slow.forms.opened)).toEqual(new Set([token]));
  expect(slow.forms.opened.length).toBeLessThanOrEqual(tries);
  await slow.close();
});

test.each([
  [
    "an upgrade",
    "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n",
  ],
  ["a proxied connection", "CONNECT a.example:443 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"],
])("%s comes to no more than an answer", async (_, text) => {
  const { heard } = say(bed().port, text);
  expect(answersIn(await heard).length).toBeLessThanOrEqual(1);
});
