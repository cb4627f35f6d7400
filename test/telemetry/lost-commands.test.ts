import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { RedisEventStore } from "../../src/store/telemetry/event-store.js";
import { BrowserTelemetry, type Capture } from "../../src/telemetry/browser-telemetry.js";
import { Connections } from "../../src/telemetry/connections.js";
import { makeTellHolder } from "../../src/telemetry/tell-holder.js";
import { until } from "../support/browser/chromium-until.js";
import { startRedis, type TestRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";
import { LossCounts, makeRecorder, recorderLimits } from "../support/telemetry/recorder.js";

let server: TestRedis;
let bed: StoreBed;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  bed = await openStoreBed(server, { project: "lost" });
});
afterEach(() => bed.close());

const on = JSON.stringify({ enabled: true });
const off = JSON.stringify({ enabled: false });
const all = { filter: { types: [], categories: [] }, order: "asc", limit: 100 } as const;

/** A client of a lease that captures commands, and what Redis has of its events. */
function openClient(bounds: Partial<typeof recorderLimits> = {}) {
  const limits = { maxBytes: 2 ** 24, maxAgeMs: 3_600_000, keepMs: 3_600_000 };
  const events = new RedisEventStore(bed.store, { unnamed: bed.project, limits });
  const stream = { browser: newBrowserId(onDemandPartition), lease: newLeaseId() };
  const meter = new LossCounts();
  const recorder = makeRecorder(events, { meter, limits: { ...recorderLimits, ...bounds } });
  const telemetry = new BrowserTelemetry({ browser: stream.browser, launched: undefined, recorder });
  const connections = new Connections(systemClock);
  let capture: Capture | undefined;
  telemetry.watch((now) => {
    capture = now;
    connections.follow(now);
  });
  const at = systemClock.monotonic();
  const client = { id: "c1", lease: stream.lease, protocol: "cdp", arrivedAt: at, openedAt: at } as const;
  const told = { ...stream, telemetry: { browser: { captcha: { enabled: true } } }, trace: undefined };
  return {
    meter,
    tellOfCaptcha: () =>
      makeTellHolder(recorder)(told, {
        type: "captcha_solve_result",
        category: "captcha",
        source: { kind: "kernel_api" },
        data: {},
      }),
    configure: (revision: number, text: string) =>
      telemetry.told(stream.lease, { revision, telemetry: text }),
    open: () => connections.opened(client),
    close: () => connections.closed(client, "left"),
    send: (id: number) =>
      connections.command(client, { method: "Page.close", data: { method: "Page.close", command_id: id } }),
    stored: (last: number) => until(`event ${last}`, async () => (await events.last(stream)) === last),
    /** The store's own word of it, which comes after another connection can read what it has stored. */
    knowsOfLost: (count: number) => until(`${count} lost`, () => capture?.sink.lostInStore === count),
    read: async () =>
      (await events.read(stream, all)).events.map(({ seq, text }) => ({ seq, ...JSON.parse(text) })),
    /** Nothing of it waits any more. */
    recorded: () => recorder.close(),
    end: () => telemetry.over(stream.lease),
  };
}

/** One whose beginning and first three commands are stored. */
async function openedClient(): Promise<ReturnType<typeof openClient>> {
  const client = openClient();
  client.configure(1, on);
  client.open();
  for (const id of [1, 2, 3]) client.send(id);
  await client.stored(4);
  return client;
}

test("what Redis has lost and says only when it is told of the client's end is counted there, too", async () => {
  const client = await openedClient();
  await bed.redis.flushall();
  client.send(4);
  client.close();
  await client.stored(6);
  expect(await client.read()).toMatchObject([
    { seq: 5, data: { command_id: 4 } },
    { seq: 6, type: "cdp_disconnect", data: { telemetry_dropped: 4 } },
  ]);
  await client.knowsOfLost(4);
  await client.end();
});

test("while Redis stands still nothing is lost, and the end of a client who went meanwhile says so", async () => {
  const client = openClient();
  client.configure(1, on);
  client.open();
  await client.stored(1);
  server.signal("SIGSTOP");
  try {
    for (const id of [1, 2, 3]) client.send(id);
    client.close();
  } finally {
    server.signal("SIGCONT");
  }
  await client.stored(5);
  expect((await client.read()).at(-1)).toMatchObject({ data: { telemetry_dropped: 0 } });
  await client.end();
});

test.each([{ queueBytes: 20_000 }, { daemonBytes: 20_000 }])(
  "the end of a client whose commands have filled what may wait is stored and counts those that were lost: %o",
  async (bounds) => {
    const client = openClient(bounds);
    client.configure(1, on);
    client.open();
    await client.stored(1);
    server.signal("SIGSTOP");
    try {
      for (let id = 1; id <= 200; id += 1) client.send(id);
      client.close();
    } finally {
      server.signal("SIGCONT");
    }
    await client.recorded();
    const stored = await client.read();
    const commands = stored.filter(({ type }) => type === "cdp_command").length;
    expect(commands).toBeGreaterThan(10);
    expect(stored.at(-1)).toMatchObject({
      type: "cdp_disconnect",
      data: { telemetry_dropped: 200 - commands },
    });
    expect(client.meter.lostBy).toEqual({ too_many: 200 - commands });
  },
);

test("what Redis has lost while a client was there is counted at its end, also where capture was off meanwhile", async () => {
  const client = await openedClient();
  await bed.redis.flushall();
  client.send(4);
  await client.stored(5);
  await client.knowsOfLost(4);
  client.configure(2, off);
  client.configure(3, on);
  client.send(5);
  client.close();
  await client.end();
  await client.stored(7);
  expect(await client.read()).toMatchObject([
    { seq: 5, data: { command_id: 4 } },
    { seq: 6, data: { command_id: 5 } },
    // The client's beginning and three commands: which they were, Redis does not say.
    { seq: 7, type: "cdp_disconnect", data: { telemetry_dropped: 4, telemetry_excluded: 0 } },
  ]);
});

test("what Redis has lost while capture was off is counted once it is on again, and no number is given twice", async () => {
  const client = await openedClient();
  client.configure(2, off);
  await bed.redis.flushall();
  client.configure(3, on);
  client.send(4);
  client.close();
  await client.end();
  await client.stored(6);
  expect(await client.read()).toMatchObject([
    { seq: 5, data: { command_id: 4 } },
    { seq: 6, type: "cdp_disconnect", data: { telemetry_dropped: 4 } },
  ]);
  expect(client.meter.lostBy).toEqual({ store_lost: 4 });
});

test("a single event that the same daemon tells of a lease has no number of one that Redis has lost", async () => {
  const client = await openedClient();
  await bed.redis.flushall();
  client.tellOfCaptcha();
  await client.stored(5);
  await client.knowsOfLost(4);
  client.close();
  await client.stored(6);
  expect(await client.read()).toMatchObject([
    { seq: 5, type: "captcha_solve_result" },
    { seq: 6, type: "cdp_disconnect", data: { telemetry_dropped: 4 } },
  ]);
  await client.end();
});
