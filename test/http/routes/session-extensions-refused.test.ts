import { afterEach, expect, test } from "vitest";
import { sharedServer } from "../../support/http/http-server.js";
import {
  multipartBody,
  multipartType,
  type SentPart,
  field,
  file,
} from "../../support/http/multipart-body.js";
import { processorMsOf } from "../../support/processor-time.js";
import { stagingBed } from "../../support/archive/staging-bed.js";
import { many, upload, type UploadReply } from "../../support/http/extension-uploads.js";

const { staging, files } = await stagingBed();
const server = sharedServer({}, { staging });
afterEach(() => expect.poll(files).toEqual([]));

const send = (parts: readonly SentPart[]): Promise<UploadReply> => upload(server(), [multipartBody(parts)]);

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
  const spentMs = await processorMsOf(async () =>
    expect(await faultsOf(lists)).toEqual(["extensions: must have at most 20 entries"]),
  );
  expect(spentMs).toBeLessThan(15_000);
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
  const { status, text } = await upload(server(), [body], type);
  expect([status, text]).toEqual([400, expect.stringContaining("its closing boundary is missing")]);
});

test.each(["application/json", "text/plain", "nonsense", "application/x-www-form-urlencoded"])(
  "a body of type %s is not taken",
  async (type) => {
    const { status, text } = await upload(server(), [Buffer.from("{}")], type);
    expect([status, JSON.parse(text)]).toEqual([
      400,
      { code: "unsupported_media_type", message: "A body must be sent as multipart/form-data" },
    ]);
  },
);
