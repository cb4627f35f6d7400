import { expect, test } from "vitest";
import { Random } from "../../simulation/random.js";
import { boundary, multipartBody, multipartType, field, file } from "../../support/http/multipart-body.js";
import { sharedMultipartServer, textOf } from "../../support/http/multipart-server.js";

const server = sharedMultipartServer();

test("fields and files come in the order they are sent in, however the bytes are cut", async () => {
  const body = multipartBody([
    field("a", "1"),
    file("b", "bytes\r\n--of-b"),
    field("c", "ü"),
    file("d", ""),
    { name: "e", content: "{}", filename: "blob", type: "application/json" },
  ]);
  for (const size of [1, 7, body.length]) {
    server.seen = { parts: [] };
    const { socket } = server.open(Buffer.alloc(0), body.length);
    for (let at = 0; at < body.length; at += size) socket.write(body.subarray(at, at + size));
    await expect.poll(() => server.seen.outcome).toBe("whole");
    expect(server.seen.parts).toEqual(["a=1", "b:b.zip:bytes\r\n--of-b", "c=ü", "d:d.zip:", "e={}"]);
  }
});

test("a connection goes on with its next request after a body was read", async () => {
  const body = multipartBody([field("a", "1")]);
  const { socket, got } = server.open(body);
  await expect.poll(got).toContain("whole");
  socket.write("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n");
  await expect.poll(got).toContain("The body must be sent as multipart/form-data");
});

test.each([
  ["no multipart", Buffer.from("{}"), "application/json", "The body must be sent as multipart/form-data"],
  ["no boundary", multipartBody([]), "multipart/form-data", "Content-Type: has no boundary that can be used"],
  [
    "a boundary too long",
    multipartBody([]),
    `multipart/form-data; boundary=${"x".repeat(300)}`,
    "Content-Type: has no boundary that can be used",
  ],
  [
    "another boundary",
    multipartBody([field("a", "1")]),
    "multipart/form-data; boundary=other",
    "body: is not well-formed multipart/form-data: its closing boundary is missing",
  ],
  [
    "an empty body",
    Buffer.alloc(0),
    multipartType,
    "body: is not well-formed multipart/form-data: its closing boundary is missing",
  ],
  [
    "a body cut in a file",
    multipartBody([file("a", "x".repeat(500))]).subarray(0, 300),
    multipartType,
    "body: is not well-formed multipart/form-data: its closing boundary is missing",
  ],
  [
    "a body cut in a header",
    multipartBody([file("a", "x")]).subarray(0, boundary.length + 12),
    multipartType,
    "body: is not well-formed multipart/form-data: its closing boundary is missing",
  ],
  [
    "a long field",
    multipartBody([field("a", "x".repeat(101))]),
    multipartType,
    "a: must have at most 100 bytes",
  ],
  [
    "many parts",
    multipartBody(Array.from({ length: 6 }, (_, at) => field(`f${at}`, "x"))),
    multipartType,
    "body: must have at most 5 parts",
  ],
])("%s is told in plain words", async (...[, body, type, message]) => {
  expect(await server.outcomeOf(body, body.length, type)).toBe(message);
});

test("a file of the most bytes is taken, one of a byte more is not, and what follows a file that was left is still read", async () => {
  expect(await server.outcomeOf(multipartBody([file("a", Buffer.alloc(1_000_000))]))).toBe("whole");
  server.seen = { parts: [] };
  expect(await server.outcomeOf(multipartBody([file("a", Buffer.alloc(1_000_001))]))).toBe(
    "a: must have at most 1000000 bytes",
  );
  server.seen = { parts: [] };
  server.read = async (parts, into) => {
    for await (const part of parts) into.parts.push(part.name);
  };
  expect(
    await server.outcomeOf(
      multipartBody([file("a", Buffer.alloc(900_000)), file("b", Buffer.alloc(1_000_001)), field("c", "1")]),
    ),
  ).toBe("whole");
  expect(server.seen.parts).toEqual(["a", "b", "c"]);
});

test("who wants no more is rid of the rest, which is still read so that the reply arrives", async () => {
  server.read = async (parts) => {
    for await (const part of parts) throw new Error(`not ${part.name}`);
  };
  const body = multipartBody([
    field("a", "1"),
    file("b", Buffer.alloc(900_000)),
    file("c", Buffer.alloc(900_000)),
  ]);
  const { socket, got } = server.open(body.subarray(0, 600_000), body.length);
  await expect.poll(got).toContain("not a");
  socket.write(body.subarray(600_000));
  await expect.poll(() => server.ended).toBe(1);
  expect(socket.destroyed).toBe(false);
});

/** Reads the bytes of files, and tells how many there were so far. */
function countBytes(): () => number {
  let bytes = 0;
  server.read = async (parts) => {
    const { value } = await parts.next();
    if (value?.kind !== "file") throw new Error("no file came");
    for await (const chunk of value.bytes) bytes += (chunk as Buffer).length;
  };
  return () => bytes;
}
const long = multipartBody([file("a", Buffer.alloc(500_000))]);

test("a client that sends nothing for the limit fails the file that is read, and is disconnected after the reply", async () => {
  const bytes = countBytes();
  const { socket, got } = server.open(long.subarray(0, 300_000), long.length);
  await expect.poll(bytes).toBeGreaterThan(299_000);
  await server.clock.advance(19_999);
  const before = bytes();
  socket.write(long.subarray(300_000, 300_100));
  await expect.poll(bytes).toBeGreaterThan(before);
  await server.clock.advance(19_999);
  expect(server.seen.outcome).toBeUndefined();
  await server.clock.advance(1);
  await expect.poll(got).toContain("Nothing of the body arrived for 20 seconds");
  expect(socket.closed).toBe(false);
  await server.clock.advance(2000);
  await expect.poll(() => socket.closed).toBe(true);
});

test("a slow reader is not the client's stall, but counts for the whole", async () => {
  let isReading = false;
  let goOn = (): void => {};
  const held = new Promise<void>((resolve) => (goOn = resolve));
  server.read = async (parts, into) => {
    for await (const part of parts) {
      isReading = true;
      await held;
      into.parts.push(await textOf(part));
    }
  };
  server.open(multipartBody([file("a", Buffer.alloc(900_000)), field("b", "1")]));
  await expect.poll(() => isReading).toBe(true);
  await server.clock.advance(299_000);
  expect(server.seen.outcome).toBeUndefined();
  await server.clock.advance(1000);
  goOn();
  await expect.poll(() => server.seen.outcome).toBe("The body did not arrive within 300 seconds");
});

test("a client that goes fails the file that is read", async () => {
  const bytes = countBytes();
  const { socket } = server.open(long.subarray(0, 100_000), long.length);
  await expect.poll(bytes).toBeGreaterThan(99_000);
  socket.destroy();
  await expect.poll(() => server.seen.outcome).toBe("The connection closed before the body had arrived");
});

test("what nobody wants is read only within the limits", async () => {
  server.read = async (parts) => {
    for await (const part of parts) throw new Error(`not ${part.name}`);
  };
  const { socket, got } = server.open(long.subarray(0, 100_000), long.length);
  await expect.poll(got).toContain("not a");
  await server.clock.advance(20_000);
  expect(socket.closed).toBe(false);
  await server.clock.advance(2000);
  await expect.poll(() => socket.closed).toBe(true);
});

/** Bytes changed, left out, doubled, or boundaries and line ends put in where none should be. */
function spoiled(body: Buffer, random: Random): Buffer {
  const at = random.below(body.length);
  const to = Math.min(body.length, at + random.between(1, 40));
  const odd = [
    `\r\n--${boundary}`,
    `--${boundary}--`,
    "\r\n\r\n",
    "\r\n",
    "content-disposition: form-data",
    "\u0000",
    "--",
    '"',
    "\u00ff".repeat(200),
    "x: y\r\n".repeat(30),
  ];
  const ways: readonly (() => Buffer[])[] = [
    () => [body.subarray(0, at), body.subarray(to)],
    () => [body.subarray(0, to), body.subarray(at)],
    () => [body.subarray(0, at), Buffer.from(random.pick(odd) ?? ""), body.subarray(at)],
    () => [
      body.subarray(0, at),
      Buffer.from(Array.from({ length: to - at }, () => random.below(256))),
      body.subarray(to),
    ],
  ];
  return Buffer.concat(random.pick(ways)?.() ?? [body]);
}

test("whatever a body is, it is read whole or refused, and nothing hangs", { timeout: 120_000 }, async () => {
  const seed = Number(process.hrtime.bigint() % 1_000_000n);
  const random = new Random(seed);
  const sound = multipartBody([
    field("a", "1"),
    file("b", "bytes".repeat(50)),
    field("c", "2"),
    file("d", Buffer.alloc(300)),
  ]);
  for (let round = 0; round < 300; round += 1) {
    const body = Array.from({ length: random.between(1, 3) }).reduce<Buffer>(
      (now) => spoiled(now, random),
      sound,
    );
    server.seen = { parts: [] };
    const half = random.below(body.length);
    const { socket } = server.open(body.subarray(0, half), body.length);
    socket.write(body.subarray(half));
    await expect
      .poll(() => server.seen.outcome, { message: `seed ${seed}, round ${round}`, interval: 2 })
      .toBeDefined();
    socket.destroy();
  }
});
