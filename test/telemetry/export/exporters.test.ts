import { expect, test } from "vitest";
import { Secret } from "../../../src/base/crypto/secret.js";
import { parseHostPattern } from "../../../src/base/net/hosts.js";
import type { Collector } from "../../../src/telemetry/export/collectors.js";
import { until } from "../../support/browser/chromium-until.js";
import { about, event, secret, sharedExportBed } from "../../support/telemetry/export-bed.js";
import { answering, OtlpReceiver } from "../../support/telemetry/otlp-receiver.js";

const bed = sharedExportBed();

test("events arrive as log records of OTLP in their order, with whose they are, under the destination's headers", async () => {
  const { id, exporters, counts, notes } = bed.open();
  const stream = exporters.open(id, Promise.resolve(about));
  const data = { url: "https://a.example/x", status: 404, list: [1, "two", { three: 3.5 }], none: null };
  stream.add(event({ type: "console_error", category: "console", data: { text: "ü".repeat(10) } }));
  stream.add(event({ type: "network_response", category: "network", data, truncated: true }), { seq: 7 });
  stream.add(event());
  const records = await bed.receiver.has(3);
  const resource = {
    "service.name": "remuda-browser",
    "session.id": "s1",
    "remuda.lease.id": "l1",
    "remuda.project.id": "default",
    "remuda.pool.id": "p1",
    "remuda.pool.name": "herd",
    "cloud.region": "us-east",
    "remuda.node.id": "n1",
  };
  expect(records).toEqual([
    expect.objectContaining({ type: "console_error", severity: "ERROR", body: { text: "ü".repeat(10) } }),
    {
      type: "network_response",
      severity: "INFO",
      at: "1700000000123456000",
      body: data,
      resource,
      attributes: {
        "remuda.event.type": "network_response",
        "remuda.event.category": "network",
        "remuda.event.source": "kernel_api",
        "remuda.event.seq": 7,
        "remuda.event.truncated": true,
        "url.full": "https://a.example/x",
        "http.response.status_code": 404,
      },
    },
    expect.objectContaining({ type: "cdp_command" }),
  ]);
  expect(bed.receiver.requests[0]).toMatchObject({
    path: "/v1/logs",
    headers: {
      authorization: secret,
      "content-encoding": "gzip",
      "content-type": "application/x-protobuf",
      host: `127.0.0.1:${bed.receiver.port}`,
    },
  });
  await until("a note", () => notes.length === 1);
  expect([counts, notes]).toEqual([{ exported: 3 }, [undefined]]);
});

test("a collector that unpacks nothing is sent events and spans as they are, where so configured", async () => {
  const { id, exporters } = bed.open({ compression: "none" });
  const stream = exporters.open(id, Promise.resolve(about));
  const context = { traceId: "1".repeat(32), spanId: "2".repeat(16), isSampled: true };
  stream.add(event());
  stream.addSpan({ name: "acquire", context, startedAt: 1, endedAt: 2 });
  await bed.receiver.has(1);
  await until("the span", () => bed.receiver.spans.length === 1);
  expect(bed.receiver.requests.map(({ headers }) => headers["content-encoding"])).toEqual([
    undefined,
    undefined,
  ]);
});

test("leases share what sends to one destination; it ends when the last has closed and nothing waits", async () => {
  const { id, exporters } = bed.open({ limits: { delayMs: 60_000 } });
  const [one, other] = [
    exporters.open(id, Promise.resolve(about)),
    exporters.open(id, Promise.resolve({ ...about, session: "s2" })),
  ];
  one.add(event());
  other.add(event());
  expect(exporters.size).toBe(1);
  one.close();
  one.close();
  expect(exporters.size).toBe(1);
  other.close();
  const records = await bed.receiver.has(2);
  expect(records.map(({ resource }) => resource["session.id"])).toEqual(["s1", "s2"]);
  expect(bed.receiver.requests).toHaveLength(1);
  await until("an end", () => exporters.size === 0);
});

test("a collector that is busy is asked again when it has said so", async () => {
  const { id, exporters, counts } = bed.open();
  const stream = exporters.open(id, Promise.resolve(about));
  bed.receiver.answer = (response, { number }) =>
    number === 1
      ? answering(429, { "retry-after": "1" })(response, { number })
      : number === 2
        ? answering(503)(response, { number })
        : response.writeHead(200).end();
  stream.add(event());
  await bed.receiver.has(1);
  expect(bed.receiver.requests).toHaveLength(3);
  await until("a count", () => counts["exported"] === 1);
  expect(counts).toEqual({ exported: 1 });
});

test.each([
  ["that refuses", answering(401), "The collector refused what was sent: 401"],
  [
    "that is busy for longer than may be waited",
    answering(503, { "retry-after": "600" }),
    "The collector was busy for as long as it was tried",
  ],
  [
    "that sends one on",
    answering(302, { location: "http://169.254.169.254/" }),
    "The collector answered with a redirect, which is not followed",
  ],
])("what goes to a collector %s is lost and counted, and the reason is noted", async (_, answer, why) => {
  const { id, exporters, counts, notes, lines } = bed.open();
  bed.receiver.answer = answer;
  const stream = exporters.open(id, Promise.resolve(about));
  stream.add(event());
  stream.add(event());
  await until("a note", () => notes.length > 0);
  expect([counts, notes, bed.receiver.requests.length]).toEqual([{ failed: 2 }, [why], 1]);
  expect(lines.map(({ message }) => message)).toEqual(["telemetry was not delivered"]);
  expect(JSON.stringify(lines)).not.toContain(secret);
  // What comes next is tried again.
  bed.receiver.answer = (response) => void response.writeHead(200).end();
  stream.add(event());
  await bed.receiver.has(1);
});

test("records that a collector throws away are counted as lost", async () => {
  const { id, exporters, counts } = bed.open();
  // ExportLogsServiceResponse { partial_success { rejected_log_records: 2 } }
  bed.receiver.answer = (response) => void response.writeHead(200).end(Buffer.from([10, 2, 8, 2]));
  const stream = exporters.open(id, Promise.resolve(about));
  for (let sent = 0; sent < 3; sent += 1) stream.add(event());
  await until("counts", () => counts["rejected"] !== undefined);
  expect(counts).toEqual({ exported: 1, rejected: 2 });
});

test("an answer without an end and one of a byte now and then hold nobody up for longer than the limit", async () => {
  const { id, exporters, counts } = bed.open({ limits: { limitMs: 1000 } });
  const stream = exporters.open(id, Promise.resolve(about));
  bed.receiver.answer = (response, { number }) => {
    response.writeHead(200);
    if (number === 1) return endless(response);
    const slow = setInterval(() => response.write("x"), 100);
    response.once("close", () => clearInterval(slow));
  };
  stream.add(event());
  await until("the first", () => counts["failed"] === 1);
  stream.add(event());
  await until("the second", () => counts["failed"] === 2);
});

/** Writes as fast as it is read. */
function endless(response: import("node:http").ServerResponse): void {
  const page = Buffer.alloc(64 * 1024);
  const more = (): void => {
    while (!response.destroyed && response.write(page));
  };
  response.on("drain", more);
  more();
}

test("beyond its bound nothing waits: what comes then is lost, and whoever adds it is told at once", async () => {
  const { id, exporters, counts } = bed.open({
    limits: { delayMs: 60_000, batchEvents: 10_000, batchBytes: 2 ** 30, queueBytes: 4096 },
  });
  const stream = exporters.open(id, Promise.resolve(about));
  let taken = 0;
  for (let added = 0; added < 1000; added += 1) if (stream.add(event())) taken += 1;
  expect(taken).toBeGreaterThan(5);
  expect(taken).toBeLessThan(20);
  expect(counts).toEqual({ queue_full: 1000 - taken });
  stream.close();
  await bed.receiver.has(taken);
});

test("a request has no more events and no more bytes than it may", async () => {
  const { id, exporters } = bed.open({ limits: { delayMs: 60_000, batchEvents: 3, batchBytes: 4096 } });
  const stream = exporters.open(id, Promise.resolve(about));
  for (let added = 0; added < 7; added += 1) stream.add(event());
  stream.add(event({ data: { text: "x".repeat(5000) } }));
  stream.add(event({ data: { text: "x".repeat(5000) } }));
  stream.close();
  const records = await bed.receiver.has(9);
  expect(records.map(({ body }) => typeof (body as { text?: string }).text)).toEqual([
    ...Array.from({ length: 7 }, () => "undefined"),
    "string",
    "string",
  ]);
  expect(bed.receiver.requests.length).toBeGreaterThanOrEqual(5);
});

test("a destination that was changed is sent to as it is now; one that is gone is sent nothing more", async () => {
  const { id, exporters, collectors, counts } = bed.open();
  const stream = exporters.open(id, Promise.resolve(about));
  stream.add(event());
  await bed.receiver.has(1);
  const headers = { Authorization: new Secret("Bearer another") };
  collectors.set(id, { endpoint: `${bed.receiver.url}/otlp`, headers, revision: 2 });
  await until("the change", async () => {
    const before = bed.receiver.records.length;
    stream.add(event());
    await bed.receiver.has(before + 1);
    return bed.receiver.requests.at(-1)?.path === "/otlp/v1/logs";
  });
  expect(bed.receiver.requests.at(-1)?.headers.authorization).toBe("Bearer another");
  collectors.delete(id);
  await until("a loss", () => {
    stream.add(event());
    return counts["no_destination"] !== undefined;
  });
});

test("events wait for a store that cannot tell where they go", async () => {
  const { id, exporters, collectors } = bed.open();
  const collector = collectors.get(id);
  collectors.set(id, "away");
  const stream = exporters.open(id, Promise.resolve(about));
  stream.add(event());
  stream.close();
  expect(exporters.size).toBe(1);
  collectors.set(id, collector as Collector);
  await bed.receiver.has(1);
  await until("an end", () => exporters.size === 0);
});

test("a name that has come to mean a private address is not connected to", async () => {
  const { port } = bed.receiver;
  bed.dns.set("collector.example", { turns: [["127.0.0.1"], ["127.0.0.2"]] });
  const { id, exporters, notes } = bed.open({
    endpoint: `http://collector.example:${port}`,
    privates: [`127.0.0.1:${port}`],
  });
  expect(parseHostPattern(`127.0.0.1:${port}`, { withRanges: true }).kind).toBe("pattern");
  const stream = exporters.open(id, Promise.resolve(about));
  stream.add(event());
  await bed.receiver.has(1);
  stream.add(event());
  await until("a note", () => notes.includes("The collector is at an address that may not be reached"));
  expect(bed.receiver.requests).toHaveLength(1);
});

test("a dead collector costs what is sent there and nothing else", async () => {
  const dead = await new OtlpReceiver().start();
  await dead.close();
  const { id, exporters, counts, notes } = bed.open({ endpoint: dead.url, limits: { limitMs: 500 } });
  const stream = exporters.open(id, Promise.resolve(about));
  stream.add(event());
  await until("a note", () => notes.length > 0);
  expect([counts, notes]).toEqual([
    { failed: 1 },
    ["The collector could not be reached, or gave no whole answer"],
  ]);
});
