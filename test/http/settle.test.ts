import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { key, send, sharedServer } from "../support/http/http-server.js";
import { session } from "../support/http/recorded-operations.js";

const server = sharedServer();
const acquireText = (extra = ""): string =>
  `POST /browser_pools/herd/acquire HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-length: 0\r\n${extra}\r\n`;

function open(): Socket {
  const socket = connect(server().port, "127.0.0.1");
  socket.on("error", () => {});
  return socket;
}

/** An acquire that is granted when told so. */
function held(): { grant: () => void; asked: () => boolean } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  let isAsked = false;
  server().operations.answer("pools.acquire", async () => {
    isAsked = true;
    await promise;
    return server().operations.granted();
  });
  return { grant: () => resolve(), asked: () => isAsked };
}

test.each(["/browser_pools/herd/acquire", "/browsers"])(
  "a grant of POST %s is delivered once its reply was flushed",
  async (path) => {
    expect((await send(`${server().url}${path}`, { method: "POST", body: {} })).status).toBe(200);
    await expect.poll(() => server().operations.settled).toEqual(["delivered"]);
  },
);

test("a grant on a connection that is closed after its reply is delivered", async () => {
  const socket = open();
  socket.resume().write(acquireText("connection: close\r\n"));
  await new Promise((resolve) => socket.once("close", resolve));
  await expect.poll(() => server().operations.settled).toEqual(["delivered"]);
});

test("a grant whose caller has gone while it waited is lost", async () => {
  const { grant, asked } = held();
  const socket = open();
  socket.write(acquireText());
  await expect.poll(asked).toBe(true);
  socket.destroy();
  await send(`${server().url}/healthz`);
  grant();
  await expect.poll(() => server().operations.settled).toEqual(["lost"]);
});

test.each(["destroy", "resetAndDestroy"] as const)(
  "a grant whose caller goes (%s) before the reply, unheard of until after it, is lost",
  async (how) => {
    const { grant, asked } = held();
    const socket = open();
    socket.write(acquireText());
    await expect.poll(asked).toBe(true);
    // Client and server share the event loop: the reply is written in this turn, the close is read in the
    // next.
    socket[how]();
    grant();
    await expect.poll(() => server().operations.settled).toEqual(["lost"]);
  },
);

test("a grant whose caller resets the connection at that moment is settled once", async () => {
  for (let round = 0; round < 20; round += 1) {
    server().operations.reset();
    const { grant, asked } = held();
    const socket = open();
    socket.write(acquireText());
    await expect.poll(asked).toBe(true);
    if (round % 2 === 0) grant();
    socket.resetAndDestroy();
    grant();
    await expect.poll(() => server().operations.settled.length).toBe(1);
  }
});

test("a grant is lost where an error had to be answered instead of it", async () => {
  const { lease: _lease, ...browser } = session.browser;
  const settled: string[] = [];
  server().operations.answer("pools.acquire", {
    kind: "granted",
    session: { ...session, browser },
    settle: (outcome: string) => settled.push(outcome),
  });
  expect((await send(`${server().url}/browser_pools/herd/acquire`, { method: "POST" })).status).toBe(500);
  await expect.poll(() => settled).toEqual(["lost"]);
});

test("each of several acquires on one connection settles for itself", async () => {
  const socket = open();
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString();
  });
  socket.write(acquireText().repeat(3));
  await expect.poll(() => text.match(/HTTP\/1\.1 200/g)?.length).toBe(3);
  await expect.poll(() => server().operations.settled).toEqual(["delivered", "delivered", "delivered"]);
  socket.destroy();
});
