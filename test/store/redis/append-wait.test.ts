import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { within } from "../../../src/base/deadline.js";
import { AppendWait } from "../../../src/store/redis/append-wait.js";
import { newDirectory } from "../../support/killed-runs.js";
import { startRedis } from "../../support/store/redis.js";

/**
 * Stands for a Redis of a later version than the one of the tests, 7.0: it records what comes on which
 * connection, and answers WAITAOF as it is told.
 */
interface RecordingServer {
  readonly url: string;
  readonly commands: readonly string[];
  close(): Promise<void>;
}

let recording: RecordingServer | undefined;
afterEach(async () => {
  await recording?.close();
  recording = undefined;
});

async function record(answer: string, version = "redis_version:8.0.0"): Promise<RecordingServer> {
  const told = `loading:0\r\n${version}\r\n`;
  const url = join(newDirectory("waiting"), "redis.sock");
  const commands: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server: Server = createServer((socket) => {
    const place = (connections += 1);
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => void sockets.delete(socket));
    socket.on("data", (data) => {
      for (const command of commandsIn(data.toString("latin1"))) {
        const [name = ""] = command;
        if (name === "INFO") socket.write(`$${told.length}\r\n${told}\r\n`);
        else if (name === "SET" || name === "WAITAOF") {
          commands.push(`${place} ${command.join(" ")}`);
          socket.write(name === "SET" ? "+OK\r\n" : answer);
        } else socket.write("+OK\r\n");
      }
    });
  }).listen(url);
  await once(server, "listening");
  const close = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    const closed = once(server, "close");
    server.close();
    await closed;
  };
  recording = { url, commands, close };
  return recording;
}

/** Commands are small here, and come whole. */
const commandsIn = (text: string): readonly (readonly string[])[] =>
  text.split(/^\*\d+\r\n/m).flatMap((command) => {
    const words = command.split("\r\n").filter((_, place) => place % 2 === 1);
    return words.length > 0 ? [[(words[0] ?? "").toUpperCase(), ...words.slice(1)]] : [];
  });

const waitOf = (url: string): AppendWait =>
  new AppendWait({ url, isCluster: false, connectTimeoutMs: 20_000, commandTimeoutMs: 20_000 });

test("each wait writes on a connection of its own, and waits there for the server's own disk", async () => {
  const { url, commands } = await record("*2\r\n:1\r\n:0\r\n");
  const wait = waitOf(url);
  expect(await wait.isOffered()).toBe(true);
  await wait.sync();
  await wait.sync();
  expect(commands).toEqual([
    "1 WAITAOF 1 0 1",
    "2 SET remuda:appended 1 PX 60000",
    "2 WAITAOF 1 0 5000",
    "3 SET remuda:appended 1 PX 60000",
    "3 WAITAOF 1 0 5000",
  ]);
});

test("what is not on disk in time is not acknowledged", async () => {
  const { url } = await record("*2\r\n:0\r\n:2\r\n");
  await expect(waitOf(url).sync()).rejects.toMatchObject({ code: "store_unavailable" });
  expect(await waitOf(url).isOffered()).toBe(false);
});

test("a server without an append-only file offers no wait, nor does one that does not know the command", async () => {
  const { url } = await record(
    "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n",
  );
  expect(await waitOf(url).isOffered()).toBe(false);
  const old = await startRedis();
  try {
    expect(await waitOf(old.url).isOffered()).toBe(false);
  } finally {
    await old.stop();
  }
});

test.each([
  "redis_version:7.2.4",
  "redis_version:7.4.9",
  "redis_version:8.1.0\r\nserver_name:valkey\r\nvalkey_version:8.1.0",
])("one whose WAITAOF answers before the sync is not waited for: %j", async (version) => {
  const { url, commands } = await record("*2\r\n:1\r\n:0\r\n", version);
  expect(await waitOf(url).isOffered()).toBe(false);
  expect(commands).toEqual([]);
});

test("a server that is not there is told apart from one that cannot wait", async () => {
  const { url, close } = await record("");
  await close();
  await expect(waitOf(url).isOffered()).rejects.toMatchObject({ code: "store_unavailable" });
  await expect(waitOf(url).sync()).rejects.toMatchObject({ code: "store_unavailable" });
  recording = undefined;
});

test.each(["LOADING Redis is loading the dataset in memory", "MASTERDOWN Link with MASTER is down"])(
  "a server that cannot answer now is told apart from one that cannot wait: %s",
  async (refusal) => {
    const { url } = await record(`-${refusal}\r\n`);
    await expect(waitOf(url).isOffered()).rejects.toMatchObject({ code: "store_unavailable" });
  },
);

test("while no sentinel answers a wait ends all the same, as the store's trouble", async () => {
  const url = "redis+sentinel://127.0.0.1:1,127.0.0.1:2/herd";
  const wait = new AppendWait({ url, isCluster: false, connectTimeoutMs: 50, commandTimeoutMs: 50 });
  const limit = { what: "the wait", limitMs: 10_000 };
  const away = { code: "store_unavailable" };
  await expect(within(systemClock, limit, wait.isOffered())).rejects.toMatchObject(away);
  await expect(within(systemClock, limit, wait.sync())).rejects.toMatchObject(away);
});
