import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, expect, test } from "vitest";
import { readAnswer } from "../../../src/base/net/read-answer.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** What a server answers so, and the signal of the `fetch`. */
async function answered(listener: RequestListener): Promise<readonly [Response, AbortController]> {
  server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const abort = new AbortController();
  return [await fetch(`http://127.0.0.1:${port}`, { redirect: "error", signal: abort.signal }), abort];
}

test("an answer is read whole, and one that is longer than it may be is not", async () => {
  const long = await answered((_, response) => void response.end("12345"));
  expect(await readAnswer(long[0], { mostBytes: 5, signal: long[1].signal })).toBe("12345");
  server.close();
  const longer = await answered((_, response) => void response.end("123456"));
  const reading = readAnswer(longer[0], { mostBytes: 5, signal: longer[1].signal });
  await expect(reading).rejects.toThrow(/answered more than 5 bytes/);
});

test("an answer without a body is empty", async () => {
  const [reply, { signal }] = await answered((_, response) => void response.writeHead(204).end());
  expect(await readAnswer(reply, { mostBytes: 5, signal })).toBe("");
});

test("the signal ends the wait for a body that does not come, also when memory was collected", async () => {
  let hasClosed = Promise.resolve<unknown>(undefined);
  const [reply, abort] = await answered((_, response) => {
    hasClosed = once(response, "close");
    response.write("1");
  });
  const reading = readAnswer(reply, { mostBytes: 5, signal: abort.signal });
  for (let turn = 0; turn < 5; turn += 1) {
    await setImmediate();
    collect();
  }
  abort.abort(new Error("late"));
  await expect(reading).rejects.toThrow("late");
  await hasClosed;
});

test("nothing is read once the signal has aborted", async () => {
  const [reply, abort] = await answered((_, response) => void response.write("1"));
  const reading = readAnswer(reply, { mostBytes: 5, signal: AbortSignal.abort(new Error("late")) });
  await expect(reading).rejects.toThrow("late");
  abort.abort();
});
