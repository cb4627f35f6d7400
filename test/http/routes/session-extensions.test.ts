import { connect, type Socket } from "node:net";
import Kernel, { BadRequestError, toFile } from "@onkernel/sdk";
import { afterEach, expect, test } from "vitest";
import { refusal } from "../../../src/base/errors.js";
import { key, sharedServer } from "../../support/http/http-server.js";
import {
  multipartBody,
  multipartType,
  type SentPart,
  field,
  file,
} from "../../support/http/multipart-body.js";
import { stagingBed } from "../../support/archive/staging-bed.js";
import {
  digestOf,
  many,
  upload,
  uploadPath,
  type UploadReply,
} from "../../support/http/extension-uploads.js";

const { staging, files } = await stagingBed();
const server = sharedServer({}, { staging });
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await expect.poll(files).toEqual([]);
});

const send = (parts: readonly SentPart[]): Promise<UploadReply> => upload(server(), [multipartBody(parts)]);

test("the answer is 201, empty, and claims no content type", async () => {
  const { status, headers, text } = await send([
    field("extensions[0][name]", "one"),
    file("extensions[0][zip_file]", "zip"),
  ]);
  expect([status, text, headers["content-length"], headers["content-type"]]).toEqual([
    201,
    "",
    "0",
    undefined,
  ]);
});

/** A request of which only the head and the first bytes were sent. */
function begin(bytes: Buffer, length: number, lines = ""): { socket: Socket; got: () => string } {
  const socket = connect(server().port, "127.0.0.1");
  sockets.push(socket);
  let got = "";
  socket.on("data", (chunk: Buffer) => (got += chunk.toString())).on("error", () => {});
  socket.write(
    `POST ${uploadPath} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: ${multipartType}\r\ncontent-length: ${length}\r\n${lines}\r\n`,
  );
  socket.write(bytes);
  return { socket, got: () => got };
}
const whole = multipartBody([
  field("extensions[0][name]", "one"),
  file("extensions[0][zip_file]", Buffer.alloc(200_000)),
]);

test("a client that goes half way leaves nothing", async () => {
  const { socket } = begin(whole.subarray(0, 100_000), whole.length);
  await expect.poll(files).toHaveLength(1);
  socket.destroy();
  await expect.poll(files).toEqual([]);
  expect((await send(many(1))).status).toBe(201);
  expect([
    server().operations.received.length,
    server().lines.filter(({ level }) => level !== "debug"),
  ]).toEqual([1, []]);
});

test("what can be refused without the body is, and nothing of it is kept; the connection goes on once it is there", async () => {
  server().operations.answer("sessions.findUploadTarget", refusal("browser_not_found"));
  const { socket, got } = begin(whole.subarray(0, 100_000), whole.length);
  await expect.poll(got).toContain("browser_not_found");
  expect(await files()).toEqual([]);
  socket.write(
    Buffer.concat([whole.subarray(100_000), Buffer.from(`GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n`)]),
  );
  await expect.poll(got).toContain('{"status":"ok"}');
});

test.each([
  ["refused", refusal("extension_failed")],
  ["broken off", new Error("the disk is full")],
])("of an upload that is %s in the end no file is left", async (_, answer) => {
  server().operations.answer("sessions.addExtensions", answer);
  const { status } = await send(many(2));
  expect([(status ?? 0) >= 400, await files()]).toEqual([true, []]);
});

test("the unmodified official client uploads, and is given what is wrong", async () => {
  const kernel = new Kernel({ apiKey: key, baseURL: server().url });
  const sent = ["one", "two", "three"].map((name) => ({
    name,
    zip_file: Buffer.from(`${name}`.repeat(1000)),
  }));
  const extensions = await Promise.all(
    sent.map(async ({ name, zip_file }) => ({ name, zip_file: await toFile(zip_file, `${name}.zip`) })),
  );
  await kernel.browsers.loadExtensions("mine", { extensions });
  expect(server().operations.received).toEqual([
    sent.map(({ name, zip_file }) => ({ name, digest: digestOf(zip_file) })),
  ]);
  expect(server().operations.calls[0]?.args[0]).toBe("mine");
  const twice = extensions.map(({ zip_file }) => ({ name: "same", zip_file }));
  await expect(kernel.browsers.loadExtensions("mine", { extensions: twice })).rejects.toBeInstanceOf(
    BadRequestError,
  );
});

test("the OpenAPI document shows the form, as the official client sends it", async () => {
  const document = (await (await fetch(`${server().url}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { requestBody: unknown; responses: Record<string, unknown> }>>;
  };
  const operation = document.paths["/browsers/{id_or_name}/extensions"]?.["post"];
  const entry = {
    type: "object",
    required: ["name", "zip_file"],
    properties: {
      name: { type: "string" },
      zip_file: { type: "string", contentMediaType: "application/octet-stream" },
    },
  };
  const schema = {
    type: "object",
    required: ["extensions"],
    properties: { extensions: { type: "array", minItems: 1, maxItems: 20, items: entry } },
  };
  expect(operation?.requestBody).toMatchObject({
    required: true,
    content: { "multipart/form-data": { schema } },
  });
  expect(operation?.responses["201"]).not.toHaveProperty("content");
});
