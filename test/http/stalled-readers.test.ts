import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { done } from "../../src/base/errors.js";
import { authenticator, knownKey } from "../support/access/principals.js";
import { sharedServer } from "../support/http/http-server.js";
import { stallReader } from "../support/http/stalled-reader.js";

const ended = new Set<string>();
const asked: string[] = [];
const server = sharedServer(
  {},
  {
    authenticator,
    async endedAmong(ids) {
      asked.push(...ids);
      return ids.filter((id) => ended.has(id));
    },
  },
);
const patience = { timeout: 60_000 };
const session = "/browsers/brow1234brow1234brow1234";
const range = "start=2026-01-01T00:00:00Z&end=2026-01-02T00:00:00Z";

/** More than Linux keeps of one connection for both its ends. */
const endless = (): Readable =>
  Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(64 * 1024);
    })(),
  );
const event = { seq: 1, text: JSON.stringify({ ts: 1, data: "x".repeat(64 * 1024) }) };
async function* events() {
  for (;;) yield [event];
}

const operations = () => server().operations;
const answers = {
  "a stream of events": {
    line: `GET ${session}/telemetry/stream`,
    prepare: () => operations().answer("events.stream", async () => done(events())),
  },
  "the answer of a browser's request": {
    line: `POST ${session}/curl`,
    body: JSON.stringify({ url: "http://site.example/" }),
    prepare: () => operations().answer("sessions.curl", async () => done(endless())),
  },
  "a long chunk of the audit log": {
    line: `GET /audit-logs/export/chunk?${range}`,
    prepare: () =>
      operations().answer("auditLog.chunk", async () =>
        done({ bytes: Buffer.alloc(48 * 2 ** 20), count: 1 }),
      ),
  },
  "a chunk that the system has taken whole": {
    line: `GET /audit-logs/export/chunk?${range}`,
    prepare: () =>
      operations().answer("auditLog.chunk", async () => done({ bytes: Buffer.alloc(1024 * 1024), count: 1 })),
  },
};

for (const [what, { prepare, line, ...more }] of Object.entries(answers)) {
  test(`${what} does not go on to a reader who has stopped, once its key has ended`, async () => {
    prepare();
    const body = "body" in more ? more.body : "";
    const headers = [
      `Authorization: Bearer ${knownKey()}`,
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
    ];
    const { socket, unsent } = await stallReader(server().url, line, headers);
    try {
      socket.write(body);
      await expect.poll(unsent, patience).toBeGreaterThan(0);
      asked.length = 0;
      await expect.poll(() => asked.length, patience).toBeGreaterThan(0);
      for (const id of asked) ended.add(id);
      await expect.poll(unsent, patience).toBeUndefined();
    } finally {
      socket.destroy();
      ended.clear();
    }
  });
}
