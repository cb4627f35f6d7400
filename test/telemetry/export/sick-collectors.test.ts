import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { newOtlpDestinationId } from "../../../src/base/ids.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { until } from "../../support/browser/chromium-until.js";
import { about, event, sharedExportBed } from "../../support/telemetry/export-bed.js";
import { accept, answering } from "../../support/telemetry/otlp-receiver.js";

const bed = sharedExportBed();

/** A port of loopback whose connections meet whatever `meet` does. */
async function openPort(meet: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    meet(socket);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("of 200 destinations, those that never answer delay no other", async () => {
  const silent = await openPort(() => {});
  const { exporters, collectors, counts } = bed.open({ limits: { limitMs: 60_000 } });
  const streams = Array.from({ length: 200 }, (_, place) => {
    const id = newOtlpDestinationId();
    const endpoint = place % 10 === 0 ? silent : bed.receiver.url;
    collectors.set(id, { endpoint, headers: { "x-place": new Secret(`${place}`) }, revision: 1 });
    return exporters.open(id, Promise.resolve(about));
  });
  for (const stream of streams) stream.add(event());
  await until("those that answer", () => counts["exported"] === 180);
  expect(counts).toEqual({ exported: 180 });
  for (const stream of streams) stream.close();
  await until("the others alone in use", () => exporters.size === 20);
  await exporters.close();
  await until("what never went is lost", () => counts["failed"] === 20);
});

test("a collector that is busy for longer than OpenTelemetry's client asks it is asked again within the limit", async () => {
  const { id, exporters, counts, notes } = bed.open({ limits: { limitMs: 30_000 } });
  const busy = answering(503, { "retry-after": "1" });
  bed.receiver.answer = (response, request) => (request.number <= 7 ? busy : accept)(response, request);
  const stream = exporters.open(id, Promise.resolve(about));
  stream.add(event());
  await until("a note", () => notes.length > 0);
  expect([counts, notes, bed.receiver.requests.length]).toEqual([{ exported: 1 }, [undefined], 8]);
  expect(new Set(bed.receiver.requests.map(({ bytes }) => bytes.toString("hex"))).size).toBe(1);
});

test("one that refuses at last what it was too busy for is not asked again", async () => {
  const { id, exporters, counts, notes } = bed.open({ limits: { limitMs: 60_000 } });
  const busy = answering(503, { "retry-after": "0" });
  bed.receiver.answer = (response, request) =>
    (request.number <= 5 ? busy : answering(401))(response, request);
  exporters.open(id, Promise.resolve(about)).add(event());
  await until("it is lost", () => counts["failed"] === 1);
  expect([notes, bed.receiver.requests.length]).toEqual([["The collector refused what was sent: 401"], 6]);
});

test.each([
  ["between two requests", "2"],
  ["before it uses OpenTelemetry's client again", "0"],
])("a daemon that stops %s of a collector that is busy asks it no more", async (_, after) => {
  const { id, exporters, counts } = bed.open({ limits: { limitMs: 60_000 } });
  bed.receiver.answer = answering(503, { "retry-after": after });
  exporters.open(id, Promise.resolve(about)).add(event());
  await until("it is asked", () => bed.receiver.requests.length > 0);
  await exporters.close();
  const asked = bed.receiver.requests.length;
  await until("it is lost", () => counts["failed"] === 1, 10_000);
  expect(bed.receiver.requests.length).toBe(asked);
});

test.each(["-5", "0", "soon", "Thu, 01 Jan 1970 00:00:00 GMT", "99999999999999999999"])(
  "a collector that says to come back after %s is asked a few times at most, and what comes then is sent",
  async (after) => {
    const { id, exporters, counts } = bed.open({ limits: { limitMs: 5000 } });
    bed.receiver.answer = answering(503, { "retry-after": after });
    const stream = exporters.open(id, Promise.resolve(about));
    stream.add(event());
    await until("it is lost", () => counts["failed"] === 1);
    // OpenTelemetry's client asks six times, and is used three times within the limit.
    expect(bed.receiver.requests.length).toBeLessThanOrEqual(18);
    bed.receiver.answer = accept;
    stream.add(event());
    await until("the next", () => counts["exported"] === 1);
  },
);

test.each([
  ["never answers", () => {}],
  ["closes at once", (socket: Socket) => void socket.destroy()],
  [
    "closes in the middle of its answer",
    (socket: Socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-le"),
  ],
  [
    "speaks TLS where HTTP is meant",
    (socket: Socket) => void socket.end(Buffer.from([0x15, 3, 1, 0, 2, 2, 40])),
  ],
  [
    "answers with endless headers",
    (socket: Socket) => void socket.end(`HTTP/1.1 200 OK\r\nx: ${"y".repeat(2 ** 20)}`),
  ],
])(
  "what is sent to one that %s is lost and counted within the limit, and told by a fixed sentence",
  async (_, meet) => {
    const endpoint = await openPort(meet);
    const { id, exporters, counts, notes } = bed.open({ endpoint, limits: { limitMs: 3000 } });
    const stream = exporters.open(id, Promise.resolve(about));
    stream.add(event());
    await until("it is lost", () => counts["failed"] === 1);
    expect(notes).toEqual(["The collector could not be reached, or gave no whole answer"]);
  },
);

test("what waits for many dead collectors is bounded together, and leaves room for one that lives", async () => {
  const silent = await openPort(() => {});
  const { id, exporters, collectors, counts } = bed.open({ limits: { totalQueueBytes: 512 * 1024 } });
  const large = event({ data: { text: "x".repeat(10_000) } });
  for (let place = 0; place < 20; place += 1) {
    const dead = newOtlpDestinationId();
    collectors.set(dead, { endpoint: silent, headers: {}, revision: 1 });
    const stream = exporters.open(dead, Promise.resolve(about));
    while (stream.add(large));
  }
  // Beyond the bound each has its own share.
  expect(exporters.heldBytes).toBeLessThanOrEqual((512 + 20 * 64) * 1024);
  expect(counts).toEqual({ queue_full: 20 });
  const living = exporters.open(id, Promise.resolve(about));
  for (let sent = 0; sent < 5; sent += 1) expect(living.add(large)).toBe(true);
  await until("it is sent", () => counts["exported"] === 5);
});
