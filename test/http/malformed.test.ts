import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { NewEntry } from "../../src/audit/entry.js";
import { done } from "../../src/base/errors.js";
import { key, sharedServer } from "../support/http/http-server.js";

const entries: NewEntry[] = [];
const upgraded: string[] = [];
const sockets: Socket[] = [];
beforeEach(() => void (entries.length = 0));
afterEach(() => sockets.splice(0).forEach((socket) => socket.destroy()));
const server = sharedServer(
  {},
  {
    audit: {
      record: (entry) => void entries.push(entry),
      recordNow: async (entry) => void entries.push(entry),
      async begin() {},
    },
    interceptor: {
      request: () => false,
      upgrade({ url }, socket) {
        upgraded.push(url ?? "");
        socket.destroy();
        return true;
      },
    },
  },
);

const asked = (line: string, ...headers: readonly string[]): string =>
  [`${line} HTTP/1.1`, "host: 127.0.0.1", `authorization: Bearer ${key}`, ...headers, "", ""].join("\r\n");
const acquire = asked("POST /browser_pools/herd/acquire", "content-length: 0");

/** A connection on which `text` was written as it is, and what has come from there by its end. */
function say(text: string): { readonly socket: Socket; readonly heard: Promise<string> } {
  const socket = connect(server().port, "127.0.0.1", () => socket.write(text));
  sockets.push(socket);
  let got = "";
  socket.setEncoding("utf8").on("data", (more: string) => (got += more));
  socket.on("error", () => {});
  return { socket, heard: once(socket, "close").then(() => got) };
}

/** An acquire that waits until its caller has gone; resolves when it has begun. */
const acquireWaits = (): Promise<void> =>
  new Promise((begun) => {
    server().operations.answer("pools.acquire", async (_, __, caller) => {
      const { gone } = caller as { gone: AbortSignal };
      begun();
      await new Promise<void>((end) => gone.addEventListener("abort", () => end()));
      return server().operations.granted();
    });
  });

const statuses = (): readonly number[] => entries.map(({ status }) => status);
const patience = { timeout: 60_000 };

test("a request whose body cannot be read is told 400, and is on record with that", async () => {
  const head = asked("POST /browsers", "content-type: application/json", "transfer-encoding: chunked");
  const { heard } = say(`${head}no length\r\n`);
  expect(await heard).toMatch(/^HTTP\/1\.1 400 [\s\S]*"bad_request"/);
  await expect.poll(statuses, patience).toEqual([400]);
});

test.each([
  ["what is no HTTP", "no HTTP\r\n\r\n", [499]],
  ["a request for an unknown host", "GET /browsers HTTP/1.1\r\nhost: elsewhere.example\r\n\r\n", [421, 499]],
  ["a request for a proxy", "CONNECT a.example:443 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", [404, 499]],
  ["an upgrade", asked("GET /browsers/x/cdp", "connection: Upgrade", "upgrade: websocket"), [499, 499]],
])("%s behind a request that waits is not answered in that one's place", async (_, text, recorded) => {
  const begun = acquireWaits();
  const { socket, heard } = say(acquire);
  await begun;
  socket.write(text);
  expect(await heard).toBe("");
  await expect.poll(() => server().operations.settled, patience).toEqual(["lost"]);
  await expect.poll(() => statuses().toSorted(), patience).toEqual(recorded);
  expect(upgraded).toEqual([]);
});

test("nothing is said in the middle of a reply that has begun", async () => {
  const bytes = new Readable({ read() {} });
  bytes.push("begun");
  server().operations.answer("profiles.download", done({ bytes }));
  const { socket, heard } = say(asked("GET /profiles/x/download"));
  await once(socket, "data");
  socket.write("no HTTP\r\n\r\n");
  expect(await heard).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n5\r\nbegun\r\n$/);
  await expect.poll(statuses, patience).toEqual([200]);
});
