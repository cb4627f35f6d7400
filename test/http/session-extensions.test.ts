import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import Kernel, { BadRequestError, toFile } from "@onkernel/sdk";
import { afterEach, expect, test } from "vitest";
import { refusal } from "../../src/base/errors.js";
import { Random } from "../simulation/random.js";
import { key, sharedServer } from "../support/http/http-server.js";
import { multipartBody, multipartType, type SentPart } from "../support/http/multipart-body.js";
import { stagingBed } from "../support/archive/staging-bed.js";

const { staging, files } = await stagingBed();
const server = sharedServer({}, { staging });
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await expect.poll(files).toEqual([]);
});

const path = "/browsers/mine/extensions";
const digestOf = (bytes: string | Buffer): string => createHash("sha256").update(bytes).digest("hex");
const file = (name: string, content: string | Buffer): SentPart => ({
  name,
  content,
  filename: "any.zip",
  type: "application/octet-stream",
});
const field = (name: string, content: string): SentPart => ({ name, content });

interface Answer {
  readonly status: number | undefined;
  readonly headers: Record<string, unknown>;
  readonly text: string;
}
/** Sends the chunks one by one, each a write of its own. */
function upload(chunks: readonly Buffer[], type = multipartType): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      `${server().url}${path}`,
      { method: "POST", headers: { "content-type": type, authorization: `Bearer ${key}` } },
      (reply) => {
        let text = "";
        reply
          .on("data", (chunk: Buffer) => (text += chunk.toString()))
          .on("end", () => resolve({ status: reply.statusCode, headers: reply.headers, text }));
      },
    );
    sent.on("error", reject);
    for (const chunk of chunks) sent.write(chunk);
    sent.end();
  });
}
const send = (parts: readonly SentPart[]): Promise<Answer> => upload([multipartBody(parts)]);
async function faultsOf(parts: readonly SentPart[]): Promise<string[]> {
  const { status, text } = await send(parts);
  expect([status, server().operations.received]).toEqual([400, []]);
  const body = JSON.parse(text) as { code: string; details: { code: string; message: string }[] };
  expect([body.code, ...new Set(body.details.map(({ code }) => code))]).toEqual([
    "bad_request",
    "invalid_input",
  ]);
  return body.details.map(({ message }) => message);
}

function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  const left = [...items];
  return items.flatMap(() => random.take(left) ?? []);
}
/** Both lists in their own order, mixed. */
function mixed<Item>(lists: readonly (readonly Item[])[], random: Random): Item[] {
  const left = lists.map((list) => [...list]).filter((list) => list.length > 0);
  const next = random.pick(left)?.shift();
  return next === undefined ? [] : [next, ...mixed(left, random)];
}
type Sent = readonly { readonly name: string; readonly bytes: Buffer }[];
const namings: Record<string, (sent: Sent, random: Random) => SentPart[]> = {
  indexed: (sent, random) =>
    shuffled(
      sent.flatMap(({ name, bytes }, at) => [
        field(`extensions[${at}][name]`, name),
        file(`extensions[${at}][zip_file]`, bytes),
      ]),
      random,
    ),
  repeated: (sent, random) =>
    mixed(
      [
        sent.map(({ name }) => field("extensions[][name]", name)),
        sent.map(({ bytes }) => file("extensions[][zip_file]", bytes)),
      ],
      random,
    ),
  "names first": (sent) => [
    ...sent.map(({ name }) => field("extensions[][name]", name)),
    ...sent.map(({ bytes }) => file("extensions[][zip_file]", bytes)),
  ],
  consecutive: (sent, random) =>
    sent.flatMap(({ name, bytes }) =>
      shuffled([field("extensions.name", name), file("extensions.zip_file", bytes)], random),
    ),
  listed: (sent, random) =>
    mixed(
      [
        [
          {
            name: "extensions",
            type: "application/json",
            content: JSON.stringify(
              sent.map(({ name }) => ({ name, zip_file: "extensions.items.zip_file" })),
            ),
          },
        ],
        sent.map(({ bytes }) => file("extensions.items.zip_file", bytes)),
      ],
      random,
    ),
};
function cut(body: Buffer, random: Random): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < body.length;) {
    const size = random.chance(0.3) ? random.between(1, 5) : random.between(1, 5000);
    chunks.push(body.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

test.each(Object.keys(namings))(
  "parts named as %s clients do are paired, in random order and cut anywhere",
  async (naming) => {
    const seed = Number(process.hrtime.bigint() % 1_000_000n);
    const random = new Random(seed);
    for (let round = 0; round < 12; round += 1) {
      const sent = Array.from({ length: random.between(1, 20) }, (_, at) => ({
        name: `e${at}.${random.id(5)}`,
        bytes: Buffer.from(random.id(random.below(3000)).repeat(3)),
      }));
      const { status, text } = await upload(
        cut(multipartBody(namings[naming]?.(sent, random) ?? []), random),
      );
      expect([status, text], `seed ${seed}`).toEqual([201, ""]);
      const expected = sent.map(({ name, bytes }) => ({ name, digest: digestOf(bytes) }));
      expect(server().operations.received.at(-1), `seed ${seed}`).toEqual(expected);
    }
  },
);

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

const many = (count: number): SentPart[] =>
  Array.from({ length: count }, (_, at) => [
    field(`extensions[${at}][name]`, `e${at}`),
    file(`extensions[${at}][zip_file]`, "zip"),
  ]).flat();

test.each<[string, SentPart[], string[]]>([
  ["nothing", [], ["extensions: must have at least 1 entry"]],
  ["a name alone", [field("extensions[3][name]", "one")], ["extensions[3].zip_file: is required"]],
  ["a file alone", [file("extensions.zip_file", "zip")], ["extensions[0].name: is required"]],
  [
    "names and files that are not as many",
    [
      field("extensions[][name]", "one"),
      field("extensions[][name]", "two"),
      file("extensions[][zip_file]", "zip"),
    ],
    ["extensions[1].zip_file: is required"],
  ],
  [
    "pairs that are not consecutive",
    [field("extensions.name", "one"), field("extensions.name", "two"), file("extensions.zip_file", "zip")],
    ["extensions[0].zip_file: is required"],
  ],
  [
    "two files of one",
    [...many(1), file("extensions[0][zip_file]", "zip")],
    ["extensions[0].zip_file: is given more than once"],
  ],
  [
    "two names of one",
    [...many(1), field("extensions[0][name]", "two")],
    ["extensions[0].name: is given more than once"],
  ],
  ["21", many(21), ["extensions: must have at most 20 entries"]],
  [
    "two namings",
    [...many(1), field("extensions.name", "one")],
    ["body: mixes namings of its parts: indexed, consecutive"],
  ],
  [
    "a name in use",
    [...many(2), field("extensions[2][name]", "e0"), file("extensions[2][zip_file]", "")],
    ["extensions[2].name: is the same as that of extensions[0]"],
  ],
  [
    "everything at once",
    [
      field("extensions[0][name]", "a/b"),
      field("colour", "red"),
      field("extensions[1][zip_file]", "text"),
      file("extensions[2][name]", "x"),
    ],
    [
      "colour: is not a known part",
      "extensions[1][zip_file]: must be a file",
      "extensions[2][name]: must be text, not a file",
      "extensions[0].zip_file: is required",
      "extensions[0].name: must be 1 to 255 letters, digits, dots, underscores or hyphens",
    ],
  ],
  [
    "an index too large",
    [field("extensions[1000][name]", "one")],
    ["extensions[1000][name]: is not a known part", "extensions: must have at least 1 entry"],
  ],
  [
    "an index that is none",
    [field("extensions[-1][name]", "one")],
    ["extensions[-1][name]: is not a known part", "extensions: must have at least 1 entry"],
  ],
  [
    "an index with a zero",
    [field("extensions[00][name]", "one")],
    ["extensions[00][name]: is not a known part", "extensions: must have at least 1 entry"],
  ],
  [
    "a part without a name",
    [field("", "one")],
    ["a part without a name: is not a known part", "extensions: must have at least 1 entry"],
  ],
  [
    "no JSON",
    [field("extensions", "one"), file("extensions.items.zip_file", "zip")],
    ["extensions: must be a JSON list of objects, each with a name", "extensions[0].name: is required"],
  ],
  [
    "JSON without names",
    [field("extensions", '[{"name":1}]')],
    [
      "extensions: must be a JSON list of objects, each with a name",
      "extensions: must have at least 1 entry",
    ],
  ],
  [
    "a JSON null",
    [field("extensions", "null")],
    [
      "extensions: must be a JSON list of objects, each with a name",
      "extensions: must have at least 1 entry",
    ],
  ],
  [
    "an empty name",
    [field("extensions[0][name]", ""), file("extensions[0][zip_file]", "zip")],
    ["extensions[0].name: must be 1 to 255 letters, digits, dots, underscores or hyphens"],
  ],
])("%s is refused with every fault", async (_what, parts, faults) => {
  expect(await faultsOf(parts)).toEqual(faults);
});

test("lists of very many names are refused in a few words, and at once", async () => {
  const list = (from: number) =>
    field("extensions", JSON.stringify(Array.from({ length: 3000 }, (_, at) => ({ name: `e${from + at}` }))));
  const lists = Array.from({ length: 40 }, (_, at) => list(at * 3000));
  const began = performance.now();
  expect(await faultsOf(lists)).toEqual(["extensions: must have at most 20 entries"]);
  expect(performance.now() - began).toBeLessThan(15_000);
});

test("an archive larger than may be is told so, with the rest of what is wrong", async () => {
  const large = Buffer.alloc(51 * 2 ** 20);
  expect(
    await faultsOf([
      field("extensions[0][name]", "one"),
      file("extensions[0][zip_file]", large),
      field("extensions[1][name]", "two"),
    ]),
  ).toEqual([
    "extensions[0][zip_file]: must have at most 52428800 bytes",
    "extensions[1].zip_file: is required",
  ]);
});

test.each([
  ["cut in half", multipartBody(many(2)).subarray(0, 300), multipartType],
  ["of another boundary", multipartBody(many(1)), "multipart/form-data; boundary=other"],
])("a body %s is refused as malformed", async (_what, body, type) => {
  const { status, text } = await upload([body], type);
  expect([status, text]).toEqual([400, expect.stringContaining("its closing boundary is missing")]);
});

test.each(["application/json", "text/plain", "nonsense", "application/x-www-form-urlencoded"])(
  "a body of type %s is not taken",
  async (type) => {
    const { status, text } = await upload([Buffer.from("{}")], type);
    expect([status, JSON.parse(text)]).toEqual([
      400,
      { code: "unsupported_media_type", message: "A body must be sent as multipart/form-data" },
    ]);
  },
);

/** A request of which only the head and the first bytes were sent. */
function begin(bytes: Buffer, length: number, lines = ""): { socket: Socket; got: () => string } {
  const socket = connect(server().port, "127.0.0.1");
  sockets.push(socket);
  let got = "";
  socket.on("data", (chunk: Buffer) => (got += chunk.toString())).on("error", () => {});
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\ncontent-type: ${multipartType}\r\ncontent-length: ${length}\r\n${lines}\r\n`,
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
  server().operations.answer("sessions.addExtensions", refusal("browser_not_found"));
  const { socket, got } = begin(whole.subarray(0, 100_000), whole.length);
  await expect.poll(got).toContain("browser_not_found");
  expect(await files()).toEqual([]);
  socket.write(
    Buffer.concat([whole.subarray(100_000), Buffer.from(`GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n`)]),
  );
  await expect.poll(got).toContain('{"status":"ok"}');
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
