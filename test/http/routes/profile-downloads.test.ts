import { createReadStream } from "node:fs";
import { mkdtemp, readdir, readlink, rm, writeFile } from "node:fs/promises";
import { get as httpGet, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RemudaError } from "../../../src/base/errors.js";
import { key, send, type Sent, sharedServer, startServer } from "../../support/http/http-server.js";

const server = sharedServer();
const ask = (path: string, sent: Sent = {}) => send(`${server().url}${path}`, sent);
const called = () => server().operations.calls.map(({ operation, args }) => [operation, ...args]);

const downloads = (bytes: Readable | undefined): void =>
  server().operations.answer("profiles.download", { kind: "done", value: bytes && { bytes } });

test("a download is bytes as they are; only format=tar asks for another form", async () => {
  const bytes = Buffer.from([0, 255, 10, 13, 0x28, 0xb5, 0x2f, 0xfd]);
  for (const [query, form] of [
    ["", "zstd"],
    ["?format=tar.zst", "zstd"],
    ["?format=tar", "tar"],
  ]) {
    server().operations.calls.length = 0;
    downloads(Readable.from([bytes.subarray(0, 3), bytes.subarray(3)]));
    const reply = await fetch(`${server().url}/profiles/me/download${query}`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect([reply.status, reply.headers.get("content-type")]).toEqual([200, "application/octet-stream"]);
    expect(Buffer.from(await reply.arrayBuffer())).toEqual(bytes);
    expect(called()).toEqual([["profiles.download", "me", form]]);
  }
  for (const query of ["format=zip", "format=", "format=tar&format=tar"])
    expect((await ask(`/profiles/me/download?${query}`)).status).toBe(400);
});

test("as long as nothing was saved the answer is 202, empty and of no type", async () => {
  downloads(undefined);
  const got = await ask("/profiles/me/download");
  expect([got.status, got.text, got.headers.get("content-type"), got.headers.get("content-length")]).toEqual([
    202,
    "",
    null,
    "0",
  ]);
});

test("a download is not begun for a HEAD", async () => {
  expect(
    (
      await fetch(`${server().url}/profiles/me/download`, {
        method: "HEAD",
        headers: { authorization: `Bearer ${key}` },
      })
    ).status,
  ).toBe(404);
  expect(called()).toEqual([]);
});

test("a state of another key is refused as such, whether opening it or reading it tells so", async () => {
  const unreadable = new RemudaError("secret_unreadable");
  server().operations.answer("profiles.download", unreadable);
  const opened = await ask("/profiles/me/download");
  downloads(
    new Readable({
      read() {
        this.destroy(unreadable);
      },
    }),
  );
  for (const got of [opened, await ask("/profiles/me/download")]) {
    expect(got).toMatchObject({ status: 422, body: { code: "secret_unreadable" } });
    expect(got.headers.get("content-type")).toBe("application/json; charset=utf-8");
  }
});

test("a download that fails on its way is cut, never ended as if it were whole", async () => {
  async function* broken() {
    yield Buffer.alloc(100_000);
    throw new Error("damaged");
  }
  downloads(Readable.from(broken()));
  const reply = await fetch(`${server().url}/profiles/me/download`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect(reply.status).toBe(200);
  await expect(reply.arrayBuffer()).rejects.toThrow();
  expect((await ask("/profiles")).status).toBe(200);
});

const endless = (): Readable =>
  new Readable({
    read() {
      setImmediate(() => this.push(Buffer.alloc(64 * 1024)));
    },
  });
const begin = (path: string, url = server().url): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    httpGet(`${url}${path}`, { headers: { authorization: `Bearer ${key}` }, agent: false }, resolve).on(
      "error",
      reject,
    );
  });

test("a client that goes away in the middle has its stream closed", async () => {
  const bytes = endless();
  downloads(bytes);
  const reply = await begin("/profiles/me/download");
  await new Promise((resolve) => reply.once("data", resolve));
  reply.destroy();
  await expect.poll(() => bytes.destroyed).toBe(true);
});

test("a client that went away before its state was opened has it closed at once", async () => {
  const bytes = endless();
  let answer: (value: unknown) => void = () => {};
  const isAsked = new Promise<void>((asked) => {
    server().operations.answer(
      "profiles.download",
      () =>
        new Promise((resolve) => {
          answer = resolve;
          asked();
        }),
    );
  });
  const gone = new AbortController();
  const reply = fetch(`${server().url}/profiles/me/download`, {
    headers: { authorization: `Bearer ${key}` },
    signal: gone.signal,
  }).catch(() => "gone");
  await isAsked;
  gone.abort();
  expect(await reply).toBe("gone");
  // Another request shows that the server has seen the end of that one.
  await ask("/profiles");
  answer({ kind: "done", value: { bytes } });
  await expect.poll(() => bytes.destroyed).toBe(true);
});

test("a daemon that stops waits for a download no longer than for any reply, and closes its stream", async () => {
  const stopping = await startServer({ closeLimitMs: 100 });
  const bytes = endless();
  stopping.operations.answer("profiles.download", { kind: "done", value: { bytes } });
  const reply = await begin("/profiles/me/download", stopping.url);
  reply.on("error", () => {}).resume();
  await stopping.close();
  await expect.poll(() => bytes.destroyed).toBe(true);
  expect(reply.complete).toBe(false);
});

test("a client that does not read holds back what is read for it", async () => {
  let pushed = 0;
  const bytes = new Readable({
    read() {
      pushed += 64 * 1024;
      this.push(Buffer.alloc(64 * 1024));
    },
  });
  downloads(bytes);
  const reply = await begin("/profiles/me/download");
  reply.pause();
  let before = -1;
  await expect
    .poll(
      () => {
        const isStill = before === pushed;
        before = pushed;
        return isStill;
      },
      { interval: 200 },
    )
    .toBe(true);
  expect(pushed).toBeLessThan(32 * 1024 * 1024);
  reply.destroy();
  await expect.poll(() => bytes.destroyed).toBe(true);
});

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "remuda-profile-routes-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

test("whether it is read to its end or left, no file stays open", async () => {
  const file = join(folder, "archive");
  await writeFile(file, Buffer.alloc(8 * 1024 * 1024));
  const opened = async (): Promise<number> => {
    const links = (await readdir("/proc/self/fd")).map((fd) =>
      readlink(`/proc/self/fd/${fd}`).catch(() => ""),
    );
    return (await Promise.all(links)).filter((target) => target === file).length;
  };
  server().operations.answer("profiles.download", () => ({
    kind: "done",
    value: { bytes: createReadStream(file) },
  }));
  for (let round = 0; round < 5; round += 1) {
    const reply = await begin("/profiles/me/download");
    await new Promise((resolve) => reply.once("data", resolve));
    reply.destroy();
  }
  const whole = await fetch(`${server().url}/profiles/me/download`, {
    headers: { authorization: `Bearer ${key}` },
  });
  expect((await whole.arrayBuffer()).byteLength).toBe(8 * 1024 * 1024);
  await expect.poll(opened).toBe(0);
});
