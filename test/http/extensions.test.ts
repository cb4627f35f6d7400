import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import Kernel, { BadRequestError, ConflictError, NotFoundError, PermissionDeniedError } from "@onkernel/sdk";
import { toFile } from "@onkernel/sdk/uploads";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Daemon, startDaemon } from "../support/daemon/daemon.js";
import { boundary, multipartBody, multipartType, type SentPart } from "../support/http/multipart-body.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { extensionZip, zipBytes } from "../support/archive/zip-bytes.js";

/** Stands for the Chrome Web Store: an archive packed in version 2, or none. */
const store = createServer(
  (request, response) =>
    void (request.url?.includes(storeId) ? response.end(packed) : response.writeHead(204).end()),
);
let redis: TestRedis;
let daemon: Daemon;
let kernel: Kernel;
beforeAll(async () => {
  redis = await startRedis();
  await once(store.listen(0, "127.0.0.1"), "listening");
  const extensions = {
    store_url: `http://127.0.0.1:${(store.address() as AddressInfo).port}/crx`,
    upload_stall_seconds: 1,
    upload_limit_seconds: 20,
  };
  daemon = await startDaemon({
    role: "control",
    redisUrl: redis.url,
    file: { extensions, limits: { max_extensions: 12 } },
  });
  kernel = daemon.kernel();
});
afterEach(async () => {
  // Whatever a test did, nothing of it is on its way any more.
  await expect.poll(staged).toEqual([]);
  for (const { id } of (await daemon.call("GET /extensions?limit=100")).body)
    await kernel.extensions.delete(id);
});
afterAll(async () => {
  await daemon.stop();
  await redis.stop();
  store.closeAllConnections();
  store.close();
});

const staged = (): string[] => readdirSync(join(daemon.place.dataDir, "staging"));
const archives = (): string[] =>
  readdirSync(join(daemon.place.dataDir, "archives"), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map(({ name }) => name);
const zip = extensionZip([{ name: "a.js", content: "1" }]);
const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const storeKey = Buffer.from("a public key");
const storeId = sha256(storeKey)
  .slice(0, 32)
  .replaceAll(/./g, (digit) => String.fromCharCode(97 + Number.parseInt(digit, 16)));
const packed = Buffer.concat([
  Buffer.from("Cr24"),
  Buffer.from([2, 0, 0, 0, storeKey.length, 0, 0, 0, 1, 0, 0, 0]),
  storeKey,
  Buffer.from("s"),
  zip,
]);
const upload = async (name?: string, bytes = zip) =>
  await kernel.extensions.upload({
    file: await toFile(bytes, "mine.zip"),
    ...(name !== undefined && { name }),
  });
const failed = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no error",
    (error: unknown) => error,
  );

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- looked into, field by field
  readonly body: any;
}
async function post(parts: readonly SentPart[], type = multipartType): Promise<Answer> {
  const reply = await fetch(`${daemon.url}/extensions`, {
    method: "POST",
    body: new Uint8Array(multipartBody(parts)),
    headers: { authorization: `Bearer ${daemon.place.apiKey}`, "content-type": type },
  });
  return { status: reply.status, body: await reply.json() };
}
const filePart = (content: Buffer | string = zip, name = "file"): SentPart => ({
  name,
  content,
  filename: "mine.zip",
  type: "application/octet-stream",
});
const messagesOf = ({ body }: Answer): string[] =>
  body.details.map(({ message }: { message: string }) => message);

test("the official client uploads, lists, reads, downloads and deletes", async () => {
  const made = await upload("ads");
  expect(made).toEqual({
    id: expect.stringMatching(/^[0-9a-z]{24}$/),
    name: "ads",
    created_at: expect.any(String),
    size_bytes: zip.length,
    checksum: sha256(zip),
  });
  expect(await kernel.extensions.get("ads")).toEqual(made);
  expect(await kernel.extensions.get(made.id)).toEqual(made);
  const nameless = await upload();
  expect(nameless).not.toHaveProperty("name");
  const listed: unknown[] = [];
  for await (const one of kernel.extensions.list({ limit: 1 })) listed.push(one);
  expect(listed).toEqual([nameless, made]);
  const reply = await kernel.extensions.download("ads");
  expect([reply.headers.get("content-type"), reply.headers.get("content-length")]).toEqual([
    "application/octet-stream",
    String(zip.length),
  ]);
  expect(Buffer.from(await reply.arrayBuffer())).toEqual(zip);
  await kernel.extensions.delete("ads");
  const { extensions } = kernel;
  for (const refused of await Promise.all(
    [extensions.get(made.id), extensions.delete(made.id), extensions.download("ads")].map(failed),
  )) {
    expect(refused).toMatchObject({ error: { code: "extension_not_found" } });
  }
  expect(await failed(kernel.extensions.delete("ads"))).toBeInstanceOf(NotFoundError);
});

test("a list is of those whose name it asks for, without regard to case and accents, or of part of it, or of the id", async () => {
  const [one, other] = [await upload("Ads.Block"), await upload("dark-mode")];
  const names = async (query: string) =>
    (await daemon.call(`GET /extensions?${query}`)).body.map(({ name }: { name: string }) => name);
  expect(await names("")).toEqual(["dark-mode", "Ads.Block"]);
  expect(await names("name=ads.block")).toEqual(["Ads.Block"]);
  expect(await names("name=ads")).toEqual([]);
  expect(await names("query=MODE")).toEqual(["dark-mode"]);
  expect(await names(`query=${one.id}`)).toEqual(["Ads.Block"]);
  expect(await names("offset=1&limit=1")).toEqual(["Ads.Block"]);
  const page = await fetch(`${daemon.url}/extensions?limit=1`, {
    headers: { authorization: `Bearer ${daemon.place.apiKey}` },
  });
  expect([page.headers.get("x-has-more"), page.headers.get("x-next-offset")]).toEqual(["true", "1"]);
  expect(other.name).toBe("dark-mode");
});

test("a name belongs to one, and is free again when that is deleted; a refused upload keeps nothing", async () => {
  await upload("ads");
  const other = extensionZip([{ name: "b.js", content: "2" }]);
  const error = await failed(upload("ads", other));
  expect(error).toBeInstanceOf(ConflictError);
  expect(error).toMatchObject({ error: { code: "name_taken" } });
  expect(archives().some((name) => name.includes(sha256(other)))).toBe(false);
  await kernel.extensions.delete("ads");
  expect((await upload("ads", other)).checksum).toBe(sha256(other));
});

test("of several uploads with one name at once a single one is made", async () => {
  const made = await Promise.all(
    Array.from({ length: 4 }, () => post([filePart(), { name: "name", content: "ads" }])),
  );
  expect(made.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
});

test("there are no more than there may be", async () => {
  for (let count = 0; count < 12; count += 1) await upload();
  const error = await failed(upload());
  expect(error).toBeInstanceOf(PermissionDeniedError);
  expect(error).toMatchObject({ error: { code: "limit_exceeded" } });
});

test("the parts may come in either order, and have to be those that belong there", async () => {
  const name = (content: string, more: object = {}): SentPart => ({ name: "name", content, ...more });
  expect((await post([name("first"), filePart()])).body).toMatchObject({ name: "first" });
  expect((await post([filePart(), name("last")])).body).toMatchObject({ name: "last" });
  const wrong: readonly [readonly SentPart[], string][] = [
    [[], "file: is required, as a file"],
    [[name("x")], "file: is required, as a file"],
    [[{ name: "file", content: "text" }], "file: must be sent as a file"],
    [[filePart(), filePart()], "file: must be sent once"],
    [[name("x"), filePart(), name("y")], "name: must be sent once"],
    [[filePart(), name("a b")], "name: must be 1 to 255"],
    [[name(""), filePart()], "name: must be 1 to 255"],
    [[name("from_chrome_store"), filePart()], "name: is reserved"],
    [[filePart(), { name: "other", content: "1" }], "other: is not known here"],
    [[filePart(zip, "zip")], "zip: is not known here"],
    [[filePart(), filePart("x", "name")], "name: must be a text"],
  ];
  for (const [parts, message] of wrong) {
    const got = await post(parts);
    expect([got.status, got.body.code, messagesOf(got).join()]).toEqual([
      400,
      "bad_request",
      expect.stringContaining(message),
    ]);
  }
  const asJson = await daemon.call("POST /extensions", { file: "x" });
  expect(asJson).toMatchObject({ status: 400, body: { code: "unsupported_media_type" } });
});

test("what no browser would load is refused with all its faults, and nothing of it is kept", async () => {
  const before = archives();
  const cases: readonly [Buffer, string[]][] = [
    [
      Buffer.from("no zip"),
      [expect.stringMatching(/^file: is not a sound zip archive/) as unknown as string],
    ],
    [zipBytes([{ name: "../evil", content: "x" }]), ['file: "../evil" leads out of the archive']],
    [
      extensionZip([{ name: "evil", content: "/etc/passwd", mode: 0o120777 }]),
      ['file: "evil" is a link or a special file'],
    ],
    [
      extensionZip([{ name: "zeros", content: Buffer.alloc(20 * 2 ** 20) }]),
      ["file: unpacks to more than 100 times its size"],
    ],
    [
      extensionZip([], { manifest_version: 2, version: "x", permissions: ["proxy"] }),
      [
        "file: manifest.json: manifest_version: must be 3, the only one this Chromium loads; it is 2",
        "file: manifest.json: version: must be 1 to 4 whole numbers parted by dots, such as 1.0.2",
        "file: manifest.json: permissions: proxy is blocked here, since it opens ways past what holds the browser",
      ],
    ],
  ];
  for (const [bytes, messages] of cases) {
    const error = await failed(upload("bad", bytes));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(
      (error as { error: { details: { message: string }[] } }).error.details.map(({ message }) => message),
    ).toEqual(messages);
  }
  expect(await failed(kernel.extensions.get("bad"))).toBeInstanceOf(NotFoundError);
  expect(archives()).toEqual(before);
});

test("51 MiB are refused, and the connection can be used on", async () => {
  const got = await post([{ name: "name", content: "big" }, filePart(Buffer.alloc(51 * 2 ** 20, 1))]);
  expect([got.status, messagesOf(got)]).toEqual([
    400,
    [expect.stringMatching(/^file: (?:is larger than|must have at most) 52428800 bytes$/)],
  ]);
  expect(staged()).toEqual([]);
});

/** A request that promises more than it sends. */
function begin(text: Buffer): { socket: Socket; got: () => string } {
  const socket = connect(Number(new URL(daemon.url).port), "127.0.0.1");
  let got = "";
  socket.on("data", (chunk) => (got += chunk.toString())).on("error", () => {});
  socket.write(
    `POST /extensions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${daemon.place.apiKey}\r\ncontent-type: ${multipartType}\r\ncontent-length: 1000000\r\n\r\n`,
  );
  socket.write(text);
  return { socket, got: () => got };
}
const half = Buffer.concat([
  multipartBody([{ name: "name", content: "half" }]).subarray(0, -(boundary.length + 6)),
  multipartBody([filePart()]).subarray(0, 250),
]);

test("a client that stalls half way is told so, and nothing of what it sent is kept", async () => {
  const { socket, got } = begin(half);
  await expect.poll(staged).toHaveLength(1);
  await expect.poll(got, { timeout: 5000 }).toContain("Nothing of the body arrived for 1 seconds");
  expect(got()).toMatch(/^HTTP\/1\.1 400 /);
  expect(staged()).toEqual([]);
  socket.destroy();
});

test("of an upload whose client goes away nothing is kept", async () => {
  const { socket } = begin(half);
  await expect.poll(staged).toHaveLength(1);
  socket.destroy();
  await expect.poll(staged).toEqual([]);
  expect((await daemon.call("GET /extensions/half/metadata")).status).toBe(404);
  expect(daemon.log).not.toContain('"msg":"request failed"');
});

test("one that a pool uses is not deleted, and the pools are told", async () => {
  const { id } = await upload("ads");
  const pool = await kernel.browserPools.create({
    size: 1,
    name: "herd",
    fill_rate_per_minute: 0,
    extensions: [{ name: "ads" }],
  });
  const error = await failed(kernel.extensions.delete("ads"));
  expect(error).toBeInstanceOf(BadRequestError);
  expect(error).toMatchObject({
    error: {
      code: "resource_in_use",
      details: [{ code: "resource_in_use", message: `pool herd (${pool.id})` }],
    },
  });
  expect(await kernel.extensions.get("ads")).toMatchObject({ id });
  await kernel.browserPools.delete("herd");
  await kernel.extensions.delete("ads");
});

test("an archive that two extensions share is there once, and stays for the other", async () => {
  const [one, other] = [await upload("one"), await upload("other")];
  expect(archives().filter((name) => name.includes(sha256(zip)))).toHaveLength(1);
  await kernel.extensions.delete(one.id);
  expect((await (await kernel.extensions.download(other.id)).arrayBuffer()).byteLength).toBe(zip.length);
});

test("the official client downloads an extension of the web store, and nothing is registered by that", async () => {
  const url = `https://chromewebstore.google.com/detail/some-name/${storeId}`;
  const reply = await kernel.extensions.downloadFromChromeStore({ url, os: "linux" });
  expect([reply.headers.get("content-type"), reply.headers.get("content-length")]).toEqual([
    "application/octet-stream",
    String(zip.length),
  ]);
  expect(Buffer.from(await reply.arrayBuffer())).toEqual(zip);
  expect((await daemon.call("GET /extensions")).body).toEqual([]);
  expect(
    await failed(kernel.extensions.downloadFromChromeStore({ url: "https://example.com/" })),
  ).toBeInstanceOf(BadRequestError);
  expect(await failed(kernel.extensions.downloadFromChromeStore({ url: "a".repeat(32) }))).toMatchObject({
    status: 400,
    error: { message: expect.stringContaining("no such extension") },
  });
});
