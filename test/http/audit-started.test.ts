import { Readable } from "node:stream";
import { beforeEach, expect, test } from "vitest";
import { longestMs, type NewEntry } from "../../src/audit/entry.js";
import { type Clock, systemClock } from "../../src/base/clock.js";
import { done, refusal } from "../../src/base/errors.js";
import { key, send, sharedServer, startServer } from "../support/http/http-server.js";
import { listRoutes } from "../support/http/listed-routes.js";
import { stallReader } from "../support/http/stalled-reader.js";

const entries: NewEntry[] = [];
beforeEach(() => void (entries.length = 0));
const audit = {
  record: (entry: NewEntry) => void entries.push(entry),
  recordNow: async (entry: NewEntry) => void entries.push(entry),
  async begin() {},
};
const server = sharedServer({}, { audit });
const patience = { timeout: 60_000 };

const endless = (): Readable =>
  Readable.from(
    (function* () {
      for (;;) yield Buffer.alloc(64 * 1024);
    })(),
  );
async function* events() {
  for (;;) yield [{ seq: 1, text: JSON.stringify({ data: "x".repeat(64 * 1024) }) }];
}
const hugeBytes = 48 * 2 ** 20;

const session = "/browsers/brow1234brow1234brow1234";
const range = "start=2026-01-01T00:00:00Z&end=2026-01-02T00:00:00Z";
const operations = () => server().operations;
const streamed = () => done({ bytes: endless(), sizeBytes: 2 ** 40, extension: { sizeBytes: 2 ** 40 } });

interface Answer {
  readonly ask: string;
  readonly body?: string;
  prepare(): void;
}
/** Answers that are never over while nobody reads them, by the route of each. */
const answers: Readonly<Record<string, Answer>> = {
  "GET /browsers/{id_or_name}/telemetry/stream": {
    ask: `${session}/telemetry/stream`,
    prepare: () => operations().answer("events.stream", async () => done(events())),
  },
  "POST /browsers/{id_or_name}/curl": {
    ask: `${session}/curl`,
    body: JSON.stringify({ url: "http://site.example/" }),
    prepare: () => operations().answer("sessions.curl", async () => done(endless())),
  },
  "GET /audit-logs/export/chunk": {
    ask: `/audit-logs/export/chunk?${range}`,
    prepare: () =>
      operations().answer("auditLog.chunk", async () => done({ bytes: Buffer.alloc(hugeBytes), count: 1 })),
  },
  "GET /profiles/{id_or_name}/download": {
    ask: "/profiles/mine/download",
    prepare: () => operations().answer("profiles.download", async () => streamed()),
  },
  "GET /extensions/{id_or_name}": {
    ask: "/extensions/mine",
    prepare: () => operations().answer("extensions.download", async () => streamed()),
  },
  "GET /extensions/from_chrome_store": {
    ask: "/extensions/from_chrome_store?url=x",
    prepare: () => operations().answer("extensions.fromStore", async () => streamed()),
  },
};

test.each(Object.entries(answers))("%s is recorded while it is answered", async (route, answer) => {
  const [method = "", path] = route.split(" ");
  const { ask, body = "", prepare } = answer;
  prepare();
  const { socket, unsent } = await stallReader(server().url, `${method} ${ask}`, [
    `Authorization: Bearer ${key}`,
    ...(body === "" ? [] : ["Content-Type: application/json", `Content-Length: ${body.length}`]),
  ]);
  try {
    socket.write(body);
    await expect.poll(() => entries, patience).toMatchObject([{ status: 200, method, route: path }]);
    await expect.poll(unsent, patience).toBeGreaterThan(0);
  } finally {
    socket.destroy();
  }
  await expect.poll(unsent, patience).toBeUndefined();
  expect(entries).toHaveLength(1);
});

test("every route that streams or takes an upload is recorded when its response starts", async () => {
  const routes = await listRoutes();
  const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;
  const started = routes.filter(({ audit: when }) => when === "started");
  const uploads = routes.filter(({ takesMultipart }) => takesMultipart).map(nameOf);
  const streams = routes
    .filter(({ contentTypes }) => contentTypes.some((type) => type.endsWith("stream")))
    .map(nameOf);
  expect(uploads).toHaveLength(2);
  expect(streams).toHaveLength(5);
  expect(started.map(nameOf).toSorted()).toEqual([...uploads, ...Object.keys(answers)].toSorted());
  expect(Object.keys(answers)).toEqual(expect.arrayContaining(streams));
});

test("an answer that is read for over an hour is recorded meanwhile, once; one that has not begun is not", async () => {
  let skewMs = 0;
  const periodic: (() => void)[] = [];
  const clock: Clock = {
    ...systemClock,
    monotonic: () => systemClock.monotonic() + skewMs,
    every: (periodMs, task) => {
      periodic.push(task);
      return systemClock.every(periodMs, task);
    },
  };
  const own = await startServer({}, { audit, clock });
  const look = (): void => periodic.forEach((task) => task());
  const large = { events: [{ seq: 1, text: "1".repeat(hugeBytes) }], next: 1, hasMore: false };
  own.operations.answer("events.history", async () => done(large));
  let answer: (later: unknown) => void = () => {};
  const asked = new Promise<void>((resolve) =>
    own.operations.answer("pools.get", () => {
      resolve();
      return new Promise((later) => (answer = later));
    }),
  );
  const [headers, history] = [[`Authorization: Bearer ${key}`], `${session}/telemetry/events`];
  const { socket, unsent } = await stallReader(own.url, `GET ${history}`, headers);
  const waits = send(`${own.url}/browser_pools/x`);
  await asked;
  await expect.poll(unsent, patience).toBeGreaterThan(0);
  look();
  expect(entries).toEqual([]);
  skewMs = longestMs / 2;
  look();
  look();
  expect(entries).toMatchObject([{ path: history, status: 200 }]);
  expect(entries[0]?.durationMs).toBeGreaterThanOrEqual(skewMs);
  answer(refusal("pool_not_found"));
  expect((await waits).status).toBe(404);
  socket.destroy();
  await own.close();
  expect(entries.map(({ path }) => path)).toEqual([history, "/browser_pools/x"]);
});
