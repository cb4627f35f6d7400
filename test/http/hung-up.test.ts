import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { beforeEach, expect, test } from "vitest";
import type { NewEntry } from "../../src/audit/entry.js";
import { done } from "../../src/base/errors.js";
import { gate } from "../support/gate.js";
import { authenticator, knownKey } from "../support/access/principals.js";
import { key as rootKey, sharedServer } from "../support/http/http-server.js";

const entries: NewEntry[] = [];
const ended = new Set<string>();
const asked: (readonly string[])[] = [];
/** Called before a caller is judged. */
let judging: () => Promise<void> = async () => {};
/** Called while the id of what a deletion names is looked up. */
let finding: () => Promise<void> = async () => {};
/** Called before a change is made. */
let beginning: () => Promise<void> = async () => {};
const intents: string[] = [];
/** Called while it is looked up whether keys have ended. */
let looking: () => Promise<void> = async () => {};
let judged = 0;
function stayOpen(): void {
  judging = async () => {};
  finding = async () => {};
  beginning = async () => {};
  looking = async () => {};
}
beforeEach(() => {
  for (const list of [entries, asked, intents]) list.length = 0;
  judged = 0;
  stayOpen();
});
const server = sharedServer(
  {},
  {
    authenticator: {
      async admit(shown) {
        await judging();
        judged += 1;
        return authenticator.admit(shown);
      },
      defer: () => undefined,
    },
    async endedAmong(ids) {
      asked.push(ids);
      await looking();
      return ids.filter((id) => ended.has(id));
    },
    async findRemoved({ ref }) {
      await finding();
      return ref;
    },
    audit: {
      record: (entry) => void entries.push(entry),
      recordNow: async (entry) => void entries.push(entry),
      begin(intent) {
        intents.push(intent);
        return beginning();
      },
    },
  },
);

const acquires = (...bearers: readonly string[]): string =>
  bearers
    .map(
      (bearer) =>
        "POST /browser_pools/herd/acquire HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n" +
        `authorization: Bearer ${bearer}\r\n\r\n`,
    )
    .join("");

async function send(text: string): Promise<Socket> {
  const socket = connect(server().port, "127.0.0.1");
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

/** Acquires that wait until their callers have gone; how many have begun. */
function waits(): { readonly begun: () => number } {
  let begun = 0;
  server().operations.answer("pools.acquire", async (_, __, caller) => {
    const { gone } = caller as { gone: AbortSignal };
    begun += 1;
    await new Promise<void>((end) => gone.addEventListener("abort", () => end()));
    return server().operations.granted();
  });
  return { begun: () => begun };
}

const patience = { timeout: 60_000 };

test("who hangs up is gone for each of the requests that were sent in a row", async () => {
  const { begun } = waits();
  const socket = await send(acquires(rootKey, rootKey, rootKey));
  await expect.poll(begun, patience).toBe(3);
  socket.destroy();
  await expect.poll(() => server().operations.settled, patience).toEqual(["lost", "lost", "lost"]);
  expect(entries.map(({ status, clientIp }) => [status, clientIp])).toEqual(
    Array.from({ length: 3 }, () => [499, "127.0.0.1"]),
  );
});

test("a request that stands behind another's on its connection ends with its key", async () => {
  const { begun } = waits();
  const socket = await send(acquires(rootKey, knownKey()));
  await expect.poll(begun, patience).toBe(2);
  await expect.poll(() => asked.length, patience).toBeGreaterThan(0);
  for (const id of asked.flat()) ended.add(id);
  if (!socket.closed) await once(socket, "close");
  await expect.poll(() => server().operations.settled, patience).toEqual(["lost", "lost"]);
});

test("nothing is kept of who has hung up before being judged", async () => {
  let letJudge = (): void => {};
  const come = new Promise<void>((resolve) => {
    judging = () =>
      new Promise((judge) => {
        letJudge = judge;
        resolve();
      });
  });
  server().operations.answer("pools.acquire", async () => server().operations.granted());
  const socket = await send(acquires(knownKey()));
  await come;
  socket.destroy();
  await expect.poll(() => entries.length, patience).toBe(1);
  letJudge();
  judging = async () => {};
  await expect.poll(() => server().operations.settled, patience).toEqual(["lost"]);
  // Somebody else's, of which there is a look.
  const { begun } = waits();
  const other = await send(acquires(knownKey()));
  await expect.poll(begun, patience).toBe(1);
  await expect.poll(() => asked.length, patience).toBeGreaterThan(0);
  expect(asked.at(-1)).toHaveLength(1);
  other.destroy();
  await expect.poll(() => entries.length, patience).toBe(2);
});

const removal =
  "DELETE /org/api_keys/keykeykeykeykeykeykeykey HTTP/1.1\r\nhost: 127.0.0.1\r\n" +
  `authorization: Bearer ${rootKey}\r\n\r\n`;

test.each(["before it is made", "while it is made"])(
  "a change whose caller hangs up %s is on record with what came of it",
  async (when) => {
    const { reached, pass, open } = gate();
    if (when === "before it is made") beginning = pass;
    server().operations.answer("apiKeys.remove", async () => {
      if (when !== "before it is made") await pass();
      return done(null);
    });
    const socket = await send(removal);
    await reached;
    socket.destroy();
    await once(socket, "close");
    // The daemon has heard of the end when it answers a request that comes after it.
    await fetch(`${server().url}/healthz`);
    open();
    await expect.poll(() => entries.length, patience).toBe(1);
    expect(intents).toHaveLength(1);
    expect(entries).toMatchObject([{ status: 204, intent: intents[0], clientIp: "127.0.0.1" }]);
  },
);

const lines = (...of: readonly string[]): string => of.map((line) => `${line}\r\n`).join("");
const vaultRemoval = lines(
  "DELETE /vaults/mine HTTP/1.1",
  "host: 127.0.0.1",
  `authorization: Bearer ${rootKey}`,
  "",
);
const makes = (bearer: string): string =>
  lines(
    "POST /org/api_keys HTTP/1.1",
    "host: 127.0.0.1",
    `authorization: Bearer ${bearer}`,
    "content-type: application/json",
    "content-length: 15",
    "",
  ) + '{"name":"mi';

interface HangUp {
  readonly when: string;
  readonly text: string;
  /** What is sent once the head is judged. */
  readonly rest?: string;
  /** Has the daemon stand still at that point. */
  stop(pass: () => Promise<void>): void;
  readonly status?: number;
}
const hangUps: readonly HangUp[] = [
  { when: "is being let in", text: removal, stop: (pass) => (judging = pass) },
  { when: "waits for what it names to be found", text: vaultRemoval, stop: (pass) => (finding = pass) },
  {
    when: "is judged again, since its body came late",
    text: makes(knownKey()),
    rest: 'ne"}',
    stop: (pass) => (looking = pass),
  },
  {
    when: "has not sent all of its body",
    text: makes(rootKey),
    stop: (pass) => (judging = async () => void pass()),
    status: 400,
  },
];

test.each(hangUps.map((hangUp) => [hangUp.when, hangUp] as const))(
  "a change whose caller hangs up while it %s is not made",
  async (_, { text, rest, stop, status = 499 }) => {
    const { reached, pass, open } = gate();
    stop(pass);
    let made = 0;
    for (const operation of ["apiKeys.remove", "apiKeys.create", "vaults.remove"] as const)
      server().operations.answer(operation, async () => {
        made += 1;
        return done(null);
      });
    const socket = await send(text);
    if (rest !== undefined) {
      await expect.poll(() => judged, patience).toBe(1);
      socket.write(rest);
    }
    await reached;
    socket.destroy();
    await expect.poll(() => entries.length, patience).toBe(1);
    stayOpen();
    open();
    // It would have begun before a change that comes after it is answered.
    const after = { method: "DELETE", headers: { authorization: `Bearer ${rootKey}` } };
    expect((await fetch(`${server().url}/org/api_keys/keykeykeykeykeykeykeykez`, after)).status).toBe(204);
    expect(entries).toMatchObject([{ status, intent: undefined }, { status: 204 }]);
    expect([intents.length, made]).toEqual([1, 1]);
  },
);
