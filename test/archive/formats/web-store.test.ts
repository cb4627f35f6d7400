import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import type { Staging } from "../../../src/archive/archives.js";
import { readCrx } from "../../../src/archive/formats/crx.js";
import { openStaging } from "../../../src/archive/staging.js";
import { findStoreId, makeFromStore } from "../../../src/archive/formats/web-store.js";
import { extensionZip } from "../../support/archive/zip-bytes.js";

const id = "cjpalhdlnbpafiamejdnhcphjbkeiagm";
const zip = extensionZip([{ name: "a.js", content: "1" }]);
const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
const idBytes = (text: string): Buffer =>
  Buffer.from(
    text.replaceAll(/./g, (letter) => (letter.charCodeAt(0) - 97).toString(16)),
    "hex",
  );
/** A field of bytes in a protocol buffer; its tag and length as they are written. */
const field = (tag: readonly number[], bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from([...tag, bytes.length]), bytes]);
const signedData = [0x82, 0xf1, 0x04];
const header3 = (text = id): Buffer =>
  Buffer.concat([field([0x12], Buffer.from("a proof")), field(signedData, field([0x0a], idBytes(text)))]);
const crx3 = (header = header3(), content = zip): Buffer =>
  Buffer.concat([Buffer.from("Cr24"), u32(3), u32(header.length), header, content]);
const key = Buffer.from("a public key");
const crx2 = Buffer.concat([
  Buffer.from("Cr24"),
  u32(2),
  u32(key.length),
  u32(3),
  key,
  Buffer.from("sig"),
  zip,
]);

let answer: (request: IncomingMessage, response: ServerResponse) => void = () => {};
const asked: URL[] = [];
const server = createServer((request, response) => {
  asked.push(new URL(request.url ?? "", "http://store"));
  answer(request, response);
});
const work = mkdtempSync(join(tmpdir(), "remuda-store-"));
let staging: Staging;
beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  staging = await openStaging(work);
});
afterEach(async () => {
  await expect.poll(() => readdirSync(work)).toEqual([]);
  asked.length = 0;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(work, { recursive: true });
});

const origin = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const fromStore = (
  over: {
    url?: string;
    signal?: AbortSignal;
    limitMs?: number;
    maxBytes?: number;
    os?: "win" | "mac" | "linux";
  } = {},
) =>
  makeFromStore({
    url: `${origin()}/service/update2/crx`,
    limitMs: over.limitMs ?? 5000,
    maxBytes: over.maxBytes ?? 2 ** 20,
    staging,
    clock: systemClock,
  })({ url: over.url ?? id, os: over.os ?? "linux", signal: over.signal ?? new AbortController().signal });
const send =
  (bytes: Buffer) =>
  (_request: IncomingMessage, response: ServerResponse): void =>
    void response.end(bytes);
async function read(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

test("an extension is found in addresses of the store, old and new, and by its id alone", () => {
  const found = [
    id,
    ` ${id} `,
    `https://chromewebstore.google.com/detail/ublock-origin/${id}`,
    `https://chromewebstore.google.com/detail/${id}?hl=de#reviews`,
    `https://chrome.google.com/webstore/detail/ublock/${id}/related`,
    `http://chrome.google.com/webstore/detail/${id}`,
    `chromewebstore.google.com/detail/x/${id}`,
  ];
  expect(found.map(findStoreId)).toEqual(found.map(() => id));
  const not = [
    "",
    "x",
    id.toUpperCase(),
    `${id}a`,
    `https://example.com/detail/x/${id}`,
    `https://chromewebstore.google.com.evil.example/detail/${id}`,
    `file://chromewebstore.google.com/detail/${id}`,
    `https://chromewebstore.google.com/category/${id}`,
    `https://chromewebstore.google.com/detail/x?id=${id}`,
    "https://chromewebstore.google.com/detail/none",
    "http://[",
    id.replace("c", "z"),
  ];
  expect(not.map(findStoreId)).toEqual(not.map(() => undefined));
});

test("it is asked for as Chromium asks, through redirects, and its zip is what comes back", async () => {
  answer = (request, response) =>
    request.url?.startsWith("/blob")
      ? void response.end(crx3())
      : void response.writeHead(302, { location: `${origin()}/blob/x.crx` }).end();
  const got = await fromStore({ url: `https://chromewebstore.google.com/detail/x/${id}`, os: "mac" });
  if (got.kind === "refused") throw new Error(got.message);
  expect(got.value.sizeBytes).toBe(zip.length);
  expect(await read(got.value.bytes)).toEqual(zip);
  expect(asked.map(({ pathname }) => pathname)).toEqual(["/service/update2/crx", "/blob/x.crx"]);
  expect(Object.fromEntries(asked[0]?.searchParams ?? [])).toMatchObject({
    response: "redirect",
    os: "mac",
    arch: "arm64",
    acceptformat: "crx2,crx3",
    prodversion: expect.stringMatching(/^\d+(?:\.\d+){3}$/),
    x: `id=${id}&installsource=ondemand&uc`,
  });
  expect(asked[0]?.search).toContain(`x=id%3D${id}%26installsource%3Dondemand%26uc`);
});

test("packed extensions of both versions are read, and whose they are", () => {
  const of2 = createHash("sha256")
    .update(key)
    .digest("hex")
    .slice(0, 32)
    .replaceAll(/./g, (digit) => String.fromCharCode(97 + Number.parseInt(digit, 16)));
  expect(readCrx(crx3())).toEqual({ kind: "crx", zipStart: 12 + header3().length, extension: id });
  expect(readCrx(crx2)).toEqual({ kind: "crx", zipStart: 16 + key.length + 3, extension: of2 });
});

test("of what is damaged or other than asked for nothing is passed on", async () => {
  const cases: readonly [Buffer, string][] = [
    [zip, "is not a packed extension"],
    [Buffer.alloc(0), "is not a packed extension"],
    [Buffer.from("Cr24"), "is not a packed extension"],
    [Buffer.concat([Buffer.from("Cr24"), u32(4), u32(0), zip]), "is packed in version 4"],
    [Buffer.concat([Buffer.from("Cr24"), u32(3), u32(2 ** 31), zip]), "or its header is damaged"],
    [crx3(Buffer.from("no protocol buffer")), "or its header is damaged"],
    [crx3(field(signedData, field([0x0a], Buffer.from("short")))), "or its header is damaged"],
    [crx3(Buffer.alloc(0)), "or its header is damaged"],
    [crx3(header3(), Buffer.from("no zip at all")), "has no zip archive after its header"],
    [crx3(header3(), Buffer.alloc(0)), "has no zip archive after its header"],
    [crx3(header3("a".repeat(32))), "is another extension"],
    [crx2, "is another extension"],
  ];
  for (const [bytes, fault] of cases) {
    answer = send(bytes);
    expect(await fromStore()).toMatchObject({
      kind: "refused",
      code: "destination_failed",
      message: expect.stringContaining(fault),
    });
  }
});

test("whatever its first bytes are, they are read or refused", () => {
  for (let at = 0; at < 400; at += 1) {
    const bytes = Buffer.from(crx3());
    bytes[at % 80] = (at * 37) % 256;
    expect(["crx", "faulty"]).toContain(readCrx(at % 3 === 0 ? bytes.subarray(0, at % 90) : bytes).kind);
  }
});

test("what is no address of an extension is not asked for", async () => {
  expect(await fromStore({ url: "https://example.com/" })).toMatchObject({
    code: "bad_request",
    details: [{ message: expect.stringMatching(/^url: /) }],
  });
  expect(asked).toEqual([]);
});

test("the store's refusals are told apart from its failures", async () => {
  for (const [status, code] of [
    [204, "bad_request"],
    [404, "bad_request"],
    [403, "destination_failed"],
    [500, "destination_failed"],
  ] as const) {
    answer = (_request, response) => void response.writeHead(status).end();
    expect(await fromStore()).toMatchObject({ kind: "refused", code });
  }
  answer = (_request, response) => void response.writeHead(302, { location: "/again" }).end();
  expect(await fromStore()).toMatchObject({ code: "destination_failed" });
  answer = (request) => void request.socket.destroy();
  expect(await fromStore()).toMatchObject({ code: "destination_failed" });
  answer = (_request, response) => {
    response.writeHead(200, { "content-length": 1000 }).write("Cr24");
    setImmediate(() => response.destroy());
  };
  expect(await fromStore()).toMatchObject({
    code: "destination_failed",
    message: expect.stringContaining("broke off"),
  });
});

test("one that is too large, too slow, or no longer wanted is given up", async () => {
  answer = send(crx3(header3(), Buffer.concat([zip, Buffer.alloc(5000)])));
  expect(await fromStore({ maxBytes: 4096 })).toMatchObject({
    code: "bad_request",
    message: "The extension is larger than 4096 bytes",
  });
  answer = (_request, response) => void response.writeHead(200).write("Cr24");
  expect(await fromStore({ limitMs: 100 })).toMatchObject({
    code: "destination_failed",
    message: "The web store did not answer in time",
  });
  const gone = new AbortController();
  answer = (_request, response) => {
    response.writeHead(200).write("Cr24");
    setImmediate(() => gone.abort());
  };
  expect(await fromStore({ signal: gone.signal })).toMatchObject({ code: "unavailable" });
});

test("a zip that nobody reads to its end leaves nothing either", async () => {
  answer = send(crx3());
  const got = await fromStore();
  if (got.kind === "done") got.value.bytes.destroy();
  expect(got.kind).toBe("done");
});
