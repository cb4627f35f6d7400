import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { type DeferredAdmission, rootPrincipal } from "../../../src/access/principal.js";
import { refusal } from "../../../src/base/errors.js";
import { authenticator, knownKey } from "../../support/access/principals.js";
import { failed, key as rootKey, rootPerson, sharedServer } from "../../support/http/http-server.js";

const ended = new Set<string>();
const asked: (readonly string[])[] = [];
/** Set while nobody can say which keys have ended. */
let silence: Promise<void> | undefined;
/** The token of somebody whose session is nearly over whenever they come. */
const brief = "brief";
const session = { ...rootPrincipal(rootPerson), credentialId: null };
/** A key that a script of the operation is to judge, and which has ended. */
const late = knownKey();
const lateId = "key_late";
const deferred: DeferredAdmission = {
  principal: { ...session, credentialId: lateId },
  due: () => undefined,
  letIn: () => {},
  outcome: () => undefined,
  judge: () => Promise.resolve(refusal("unauthorized")),
};
const server = sharedServer(
  {},
  {
    authenticator: {
      admit: (shown) =>
        shown.authorization === `Bearer ${brief}`
          ? { kind: "admitted", principal: { ...session, expiresAt: Date.now() + 300 } }
          : authenticator.admit(shown),
      defer: (shown) => (shown.authorization === `Bearer ${late}` ? deferred : undefined),
    },
    async endedAmong(ids) {
      asked.push(ids);
      await silence;
      return ids.filter((id) => ended.has(id));
    },
  },
);

/** An acquire that waits until its caller has gone, or a test lets it end. */
function wait(bearer: string) {
  let letEnd = (): void => {};
  const begun = new Promise<void>((begin) => {
    server().operations.answer("pools.acquire", async (_, __, caller) => {
      const { gone } = caller as { gone: AbortSignal };
      begin();
      await new Promise<void>((end) => {
        letEnd = end;
        gone.addEventListener("abort", () => end());
      });
      return server().operations.granted();
    });
  });
  const answer = fetch(`${server().url}/browser_pools/herd/acquire`, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}` },
  });
  return { begun, answer, end: () => letEnd() };
}

test("a wait ends with the key that has begun it, and its caller is taken for gone", async () => {
  const bearer = knownKey();
  const waiting = wait(bearer);
  await waiting.begun;
  await expect.poll(() => asked.length).toBeGreaterThan(0);
  for (const id of asked.flat()) ended.add(id);
  expect(await failed(waiting.answer)).toBeInstanceOf(TypeError);
  await expect.poll(() => server().operations.settled).toEqual(["lost"]);
});

test("whose key is not judged yet is not cut by a look that finds it ended, but told 401", async () => {
  ended.add(lateId);
  const waiting = wait(late);
  await waiting.begun;
  asked.length = 0;
  // The second look begins when the first has cut what it cuts.
  await expect.poll(() => asked.flat().filter((id) => id === lateId).length).toBe(2);
  waiting.end();
  expect((await waiting.answer).status).toBe(401);
});

test("a wait ends with the session that has begun it", async () => {
  expect(await failed(wait(brief).answer)).toBeInstanceOf(TypeError);
});

test("a session ends also while nobody can say which keys have ended", async () => {
  let speak = (): void => {};
  asked.length = 0;
  silence = new Promise((resolve) => (speak = resolve));
  const other = wait(knownKey());
  await other.begun;
  await expect.poll(() => asked.length).toBe(1);
  expect(await failed(wait(brief).answer)).toBeInstanceOf(TypeError);
  silence = undefined;
  speak();
  other.end();
});

/**
 * A request of which the last byte is still to come; `finish` sends it and gives the status of the answer.
 */
async function beginCreation(bearer: string) {
  const { hostname, port } = new URL(server().url);
  const socket = connect(Number(port), hostname);
  const head = [
    "POST /org/api_keys HTTP/1.1",
    `Host: ${hostname}:${port}`,
    `Authorization: Bearer ${bearer}`,
  ];
  const body = JSON.stringify({ name: "next" });
  head.push("Content-Type: application/json", `Content-Length: ${body.length}`, "Expect: 100-continue");
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  expect(String(await once(socket, "data"))).toContain("100 Continue");
  socket.write(body.slice(0, -1));
  return async (): Promise<string> => {
    socket.write(body.slice(-1));
    const [status] = /\d{3}/.exec(String(await once(socket, "data")).slice(8)) ?? [];
    socket.destroy();
    return status ?? "";
  };
}

test("a request is judged again where its body was still to come when it was let in", async () => {
  const bearer = knownKey();
  const living = await beginCreation(bearer);
  asked.length = 0;
  expect(await living()).toBe("201");
  const [id = ""] = asked[0] ?? [];
  const dead = await beginCreation(bearer);
  // A look that stands still keeps the next one away, which would cut the request.
  let speak = (): void => {};
  silence = new Promise((resolve) => (speak = resolve));
  asked.length = 0;
  await expect.poll(() => asked.length).toBe(1);
  silence = undefined;
  server().operations.reset();
  ended.add(id);
  const status = await dead();
  speak();
  ended.delete(id);
  expect(status).toBe("401");
  expect(server().operations.calls).toEqual([]);
});

test("the root key never ends, and nobody is asked about it", async () => {
  asked.length = 0;
  const root = wait(rootKey);
  await root.begun;
  const other = wait(knownKey());
  // The other one is looked at, so the first one could have been.
  await expect.poll(() => asked.length).toBeGreaterThan(0);
  expect(asked.every((ids) => ids.length === 1)).toBe(true);
  root.end();
  other.end();
});

test("a key that is over with its own rotation is told the new one before anything is cut", async () => {
  const bearer = knownKey();
  const waiting = wait(bearer);
  await waiting.begun;
  server().operations.answer("apiKeys.rotate", async () => {
    asked.length = 0;
    await expect.poll(() => asked.length).toBeGreaterThan(0);
    for (const id of asked.flat()) ended.add(id);
    // The other request of the key is cut, and this one is not.
    await failed(waiting.answer);
    return await server().operations.apiKeys.create({ name: "next" }, {} as never);
  });
  const rotated = await fetch(`${server().url}/org/api_keys/${"a".repeat(24)}/rotate`, {
    method: "POST",
    headers: { authorization: `Bearer ${bearer}`, "content-type": "application/json" },
    body: JSON.stringify({ expire_in_days: 0 }),
  });
  expect(rotated.status).toBe(201);
});
