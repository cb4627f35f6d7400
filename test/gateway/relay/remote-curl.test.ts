import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { newBrowserId, newLeaseId, newRequestId, onDemandPartition } from "../../../src/base/ids.js";
import { makeAskCurl } from "../../../src/gateway/relay/remote-curl.js";
import type { LeasedBrowser } from "../../../src/pool/browser.js";
import { silentLog } from "../../support/browser/chromium-host.js";

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;
let node: Server;
let answer: Answer;
let suspected: number;
beforeEach(async () => {
  suspected = 0;
  node = createServer((request, response) => void answer(request, response)).listen(0, "127.0.0.1");
  await once(node, "listening");
});
afterEach(async () => {
  node.closeAllConnections();
  node.close();
  await once(node, "close");
});

const json = { "content-type": "application/json" };
const browser = {
  id: newBrowserId(onDemandPartition),
  lease: { id: newLeaseId() },
} as unknown as LeasedBrowser;

async function ask(gone = new AbortController().signal) {
  const askCurl = makeAskCurl({
    secret: new Secret("words"),
    clock: systemClock,
    log: silentLog,
    findAddress: async () => ({ host: "127.0.0.1", port: (node.address() as AddressInfo).port }),
    unreachable: () => void (suspected += 1),
  });
  const got = await askCurl(browser, { url: "http://a.example/" }, { gone, request: newRequestId() });
  if (got.kind === "refused") return got;
  const pieces = got.value[Symbol.asyncIterator]();
  return { ...got, next: async () => String((await pieces.next()).value) };
}

test("an answer is handed on while it comes, and is never read", async () => {
  let end = (): void => {};
  answer = (_, response) => {
    response.writeHead(200, json).write(`{"status":`);
    end = () => void response.end("and no JSON");
  };
  const got = await ask();
  if (got.kind === "refused") throw new Error(got.code);
  expect(await got.next()).toBe(`{"status":`);
  end();
  expect([await got.next(), await got.next()]).toEqual(["and no JSON", "undefined"]);
  expect(suspected).toBe(0);
});

test("one that breaks off breaks off for the caller, and its node is suspected", async () => {
  answer = (_, response) =>
    response.writeHead(200, json).write(`{"status":`, () => void response.socket?.resetAndDestroy());
  const got = await ask();
  if (got.kind === "refused") throw new Error(got.code);
  const read = async (): Promise<void> => {
    for (let piece = ""; piece !== "undefined";) piece = await got.next();
  };
  await expect(read()).rejects.toThrow();
  expect(suspected).toBe(1);
});

test("a caller who hangs up ends the request, and nobody is suspected", async () => {
  const closed = new Promise<void>((resolve) => {
    answer = (_, response) => {
      response.writeHead(200, json).write(`{"status":`);
      response.once("close", resolve);
    };
  });
  const gone = new AbortController();
  const got = await ask(gone.signal);
  if (got.kind === "refused") throw new Error(got.code);
  gone.abort();
  await closed;
  expect(suspected).toBe(0);
});

test("a node's refusal is the caller's; what is no daemon's is none", async () => {
  answer = (_, response) =>
    response.writeHead(429, json).end(`{"code":"too_many_requests","message":"Later"}`);
  expect(await ask()).toMatchObject({ kind: "refused", code: "too_many_requests", message: "Later" });
  answer = (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>");
  expect(await ask()).toMatchObject({ kind: "refused", code: "node_unreachable" });
});

test("an error without an end is not read to its end", async () => {
  answer = (_, response) => {
    response.writeHead(500, json);
    const go = (): void => void (!response.destroyed && response.write("x".repeat(2 ** 16), go));
    go();
  };
  expect(await ask()).toMatchObject({ kind: "refused", code: "node_unreachable" });
});
