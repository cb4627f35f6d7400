import { expect, test } from "vitest";
import { refusal } from "../../src/base/errors.js";
import { send, type Sent, sharedServer } from "../support/http/http-server.js";

const server = sharedServer();
const ask = (path: string, sent: Sent = {}) => send(`${server().url}${path}`, sent);

test("every refusal of every operation is passed on", async () => {
  const asked: readonly [string, string, Sent][] = [
    ["pools.create", "/browser_pools", { method: "POST", body: { size: 1 } }],
    ["pools.get", "/browser_pools/x", {}],
    ["pools.update", "/browser_pools/x", { method: "PATCH" }],
    ["pools.remove", "/browser_pools/x", { method: "DELETE" }],
    ["pools.acquire", "/browser_pools/x/acquire", { method: "POST" }],
    ["pools.release", "/browser_pools/x/release", { method: "POST", body: { session_id: "y" } }],
    ["pools.flush", "/browser_pools/x/flush", { method: "POST" }],
    ["pools.browsers", "/browser_pools/x/browsers", {}],
    ["sessions.create", "/browsers", { method: "POST" }],
    ["sessions.get", "/browsers/x", {}],
    ["sessions.update", "/browsers/x", { method: "PATCH" }],
    ["sessions.remove", "/browsers/x", { method: "DELETE" }],
  ];
  for (const [operation, path, sent] of asked) {
    server().operations.answer(operation, refusal("conflict", { message: operation }));
    expect(await ask(path, sent), operation).toMatchObject({
      status: 409,
      body: { code: "conflict", message: operation },
    });
  }
  expect(server().operations.settled).toEqual([]);
});
