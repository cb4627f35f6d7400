import { connect, type Socket } from "node:net";
import { BadRequestError, NotFoundError } from "@onkernel/sdk";
import { expect, test } from "vitest";
import { boundary, multipartBody, multipartType, type SentPart } from "../../support/http/multipart-body.js";
import { extensionZip, zipBytes } from "../../support/archive/zip-bytes.js";
import { sharedExtensionBed, zip } from "../../support/http/extension-bed.js";
import { failed } from "../../support/http/http-server.js";

const bed = sharedExtensionBed();
const { archives, staged, upload } = bed;

interface Answer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- looked into, field by field
  readonly body: any;
}
async function post(parts: readonly SentPart[], type = multipartType): Promise<Answer> {
  const reply = await fetch(`${bed.daemon.url}/extensions`, {
    method: "POST",
    body: new Uint8Array(multipartBody(parts)),
    headers: { authorization: `Bearer ${bed.daemon.place.apiKey}`, "content-type": type },
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

test("of several uploads with one name at once a single one is made", async () => {
  const made = await Promise.all(
    Array.from({ length: 4 }, () => post([filePart(), { name: "name", content: "ads" }])),
  );
  expect(made.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
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
  const asJson = await bed.daemon.call("POST /extensions", { file: "x" });
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
  expect(await failed(bed.kernel.extensions.get("bad"))).toBeInstanceOf(NotFoundError);
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
  const socket = connect(Number(new URL(bed.daemon.url).port), "127.0.0.1");
  let got = "";
  socket.on("data", (chunk) => (got += chunk.toString())).on("error", () => {});
  socket.write(
    `POST /extensions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${bed.daemon.place.apiKey}\r\ncontent-type: ${multipartType}\r\ncontent-length: 1000000\r\n\r\n`,
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
  await expect.poll(got).toContain("Nothing of the body arrived for 1 seconds");
  expect(got()).toMatch(/^HTTP\/1\.1 400 /);
  expect(staged()).toEqual([]);
  socket.destroy();
});

test("of an upload whose client goes away nothing is kept", async () => {
  const { socket } = begin(half);
  await expect.poll(staged).toHaveLength(1);
  socket.destroy();
  await expect.poll(staged).toEqual([]);
  expect((await bed.daemon.call("GET /extensions/half/metadata")).status).toBe(404);
  expect(bed.daemon.log).not.toContain('"msg":"request failed"');
});
