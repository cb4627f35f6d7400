import { beforeEach, expect, test } from "vitest";
import { newLeaseId } from "../../src/base/ids.js";
import type { Capture } from "../../src/telemetry/browser-telemetry.js";
import { Connections } from "../../src/telemetry/connections.js";
import type { EventCategory, SeenEvent } from "../../src/telemetry/event.js";
import type { Span } from "../../src/telemetry/traces/span.js";
import type { TraceContext } from "../../src/base/trace-context.js";
import { DrivenClock } from "../support/driven-clock.js";

const lease = newLeaseId();
let clock: DrivenClock;
let seen: SeenEvent[];
let spans: Span[];
let categories: Set<EventCategory>;
let excluded: Set<string>;
/** How many more events are taken. */
let room: number;
let capture: Capture;
let connections: Connections;
beforeEach(() => {
  clock = new DrivenClock();
  seen = [];
  spans = [];
  categories = new Set(["control", "connection"]);
  excluded = new Set();
  room = Infinity;
  const sink = {
    wants: (category: EventCategory) => categories.has(category),
    emit(event: SeenEvent) {
      room -= 1;
      if (room >= 0) seen.push(event);
      return room >= 0;
    },
  };
  const settings = { categories, excludedMethods: excluded, isStored: true };
  const tracing = { trace: undefined, span: (span: Span) => void spans.push(span) };
  capture = { lease, settings, sink: { ...sink, ...tracing, lost: 0, lostInStore: 0 } };
  connections = new Connections(clock);
  connections.follow(capture);
});

const clientOf = (id: string, protocol: "cdp" | "bidi" = "cdp") => ({
  id,
  lease,
  protocol,
  arrivedAt: clock.monotonic(),
  openedAt: clock.monotonic(),
});
const close = (id: number) =>
  ({ method: "Page.close", data: { method: "Page.close", command_id: id } }) as const;
const source = { kind: "kernel_api" };

test("a client is told when it comes, by its commands in order, and when it goes", async () => {
  const client = clientOf("c1");
  connections.opened(client);
  for (const id of [1, 2]) {
    connections.message(client);
    connections.command(client, close(id));
  }
  await clock.advance(1500);
  connections.closed(client, "left");
  expect(seen).toEqual([
    { type: "cdp_connect", category: "connection", source, data: { connection_id: "c1" } },
    ...[1, 2].map((id) => ({
      type: "cdp_command",
      category: "control",
      source,
      data: { method: "Page.close", command_id: id, connection_id: "c1" },
    })),
    {
      type: "cdp_disconnect",
      category: "connection",
      source,
      data: {
        connection_id: "c1",
        duration_ms: 1500,
        message_count: 2,
        reason: "client_close",
        telemetry_dropped: 0,
        telemetry_excluded: 0,
      },
      recount: expect.any(Function),
      countsLost: true,
    },
  ]);
});

test.each([
  ["left", "client_close"],
  ["restart", "upstream_changed"],
  ["browser", "upstream_error"],
  ["cut", "context_cancelled"],
] as const)("a connection that ended as %s is told as %s", (end, reason) => {
  connections.closed(clientOf("c1"), end);
  expect(seen[0]?.data).toMatchObject({ reason });
});

test("commands that are excluded, that do not decode, or that nobody takes are counted by connection", () => {
  const [client, other] = [clientOf("c1"), clientOf("c2")];
  excluded.add("Page.reload");
  connections.command(client, { method: "Page.reload", data: { method: "Page.reload" } });
  connections.command(client, { method: "Page.reload" });
  connections.command(client, { method: "Page.navigate" });
  room = 1;
  connections.command(client, close(1));
  connections.command(client, close(2));
  room = Infinity;
  connections.closed(client, "cut");
  connections.closed(other, "cut");
  expect(seen.map(({ data }) => data)).toMatchObject([
    { command_id: 1 },
    { connection_id: "c1", telemetry_dropped: 2, telemetry_excluded: 2 },
    { connection_id: "c2", telemetry_dropped: 0, telemetry_excluded: 0 },
  ]);
});

test("the beginning of a client that nobody takes is counted at its end", () => {
  const client = clientOf("c1");
  room = 0;
  connections.opened(client);
  room = Infinity;
  connections.closed(client, "left");
  expect(seen.map(({ data }) => data)).toMatchObject([{ connection_id: "c1", telemetry_dropped: 1 }]);
});

test("the end of a client that nobody takes is counted with what it counts by the lease's next, once", () => {
  const [first, second, third] = [clientOf("c1"), clientOf("c2"), clientOf("c3")];
  room = 0;
  connections.command(first, close(1));
  connections.closed(first, "left");
  connections.closed(second, "left");
  room = Infinity;
  connections.closed(third, "left");
  connections.closed(clientOf("c4"), "left");
  expect(seen.map(({ data }) => data)).toMatchObject([
    { connection_id: "c3", telemetry_dropped: 3 },
    { connection_id: "c4", telemetry_dropped: 0 },
  ]);
});

test("what the ends of another lease would have counted is not counted", () => {
  room = 0;
  connections.closed(clientOf("c1"), "left");
  room = Infinity;
  const next = { ...capture, lease: newLeaseId() };
  connections.follow(next);
  connections.closed({ ...clientOf("c2"), lease: next.lease }, "left");
  expect(seen.map(({ data }) => data)).toMatchObject([{ connection_id: "c2", telemetry_dropped: 0 }]);
});

test("what the store has lost of the lease while a client was there counts as lost for it, too", () => {
  const [client, other] = [clientOf("c1"), clientOf("c2")];
  const lose = (count: number): void => {
    const sink = { ...capture.sink, lostInStore: capture.sink.lostInStore + count };
    capture = { ...capture, sink };
    connections.follow(capture);
  };
  lose(5);
  connections.opened(client);
  lose(3);
  connections.opened(other);
  lose(2);
  connections.command(client, { method: "Page.navigate" });
  for (const each of [client, other]) connections.closed(each, "left");
  expect(seen.flatMap(({ type, data }) => (type === "cdp_disconnect" ? [data] : []))).toMatchObject([
    { connection_id: "c1", telemetry_dropped: 6 },
    { connection_id: "c2", telemetry_dropped: 2 },
  ]);
});

test("only what is captured at the moment is told, and nothing that is not counts as lost", () => {
  const client = clientOf("c1");
  categories.clear();
  connections.opened(client);
  connections.command(client, close(1));
  connections.command(client, { method: "Page.navigate" });
  expect(seen).toEqual([]);
  categories.add("control");
  connections.command(client, close(2));
  categories.add("connection");
  connections.closed(client, "left");
  expect(seen.map(({ data }) => data)).toMatchObject([{ command_id: 2 }, { telemetry_dropped: 0 }]);
});

test("clients and requests of another lease are not told of", () => {
  const client = { ...clientOf("c1"), lease: newLeaseId() };
  connections.opened(client);
  connections.command(client, close(1));
  connections.closed(client, "left");
  const { lease: other } = client;
  connections.requested({ lease: other, request: "r", operation: "o", status: 200, durationMs: 1 });
  expect(seen).toEqual([]);
});

test("nobody listens where neither commands nor connections are captured, or nothing at all", () => {
  expect(connections.follow(capture)).toBe(connections);
  expect(
    connections.follow({ ...capture, settings: { ...capture.settings, categories: new Set(["page"]) } }),
  ).toBe(undefined);
  expect(connections.follow(undefined)).toBeUndefined();
  connections.opened(clientOf("c1"));
  expect(seen).toEqual([]);
});

test("a BiDi client is told apart from one of CDP", () => {
  connections.opened(clientOf("c1", "bidi"));
  expect(seen[0]?.source).toEqual({ ...source, metadata: { protocol: "webdriver_bidi" } });
});

test("a request through the browser's way out is a call of the API", () => {
  connections.requested({ lease, request: "r1", operation: "curlBrowser", status: 403, durationMs: 12.6 });
  expect(seen).toEqual([
    {
      type: "api_call",
      category: "control",
      source,
      data: { request_id: "r1", operation_id: "curlBrowser", status: 403, duration_ms: 13 },
    },
  ]);
});

const contextOf = (digit: string, isSampled = true): TraceContext => ({
  traceId: digit.repeat(32),
  spanId: digit.repeat(16),
  isSampled,
});
/** A client that is accepted 20 ms after it came, and sends commands 30 ms later. */
async function drive(id: string, trace?: TraceContext): Promise<readonly Span[]> {
  spans = [];
  const client = { ...clientOf(id), trace };
  await clock.advance(20);
  connections.opened(client);
  await clock.advance(30);
  for (const command of [1, 2]) connections.command(client, close(command));
  return spans;
}
const timesOf = ({ startedAt, endedAt }: Span) => endedAt - startedAt;

test("a client of a traced lease is told as a child of its acquire, with its first command", async () => {
  const acquire = contextOf("a");
  capture.sink.trace = acquire;
  const [connect, first, ...more] = await drive("c1");
  expect(more).toEqual([]);
  expect(connect).toMatchObject({
    name: "connect",
    parent: acquire,
    isServer: true,
    link: undefined,
    attributes: { "remuda.connection.id": "c1", "remuda.connection.protocol": "cdp" },
  });
  expect(first).toMatchObject({
    name: "first command",
    parent: connect?.context,
    attributes: { "remuda.connection.id": "c1", "rpc.method": "Page.close" },
  });
  expect([connect, first].map((span) => span && timesOf(span))).toEqual([20, 30]);
  expect(first?.startedAt).toBe(connect?.endedAt);
});

test("a client with a trace of its own is part of that, and linked to the acquire; who wants no spans has none", async () => {
  const [acquire, own] = [contextOf("a"), contextOf("b")];
  capture.sink.trace = acquire;
  const [connect, first] = await drive("c1", own);
  expect(connect).toMatchObject({ parent: own, link: acquire, context: { traceId: own.traceId } });
  expect(first).toMatchObject({ parent: connect?.context, context: { traceId: own.traceId } });
  expect(await drive("c2", contextOf("c", false))).toEqual([]);
  expect(capture.sink.trace).toEqual(acquire);
});

test("a lease without a trace has no spans, until a client comes that has one: it joins that", async () => {
  expect(await drive("c1")).toEqual([]);
  const own = contextOf("b");
  const [connect] = await drive("c2", own);
  expect(connect).toMatchObject({ parent: own, link: undefined });
  expect(capture.sink.trace).toEqual(connect?.context);
  expect((await drive("c3"))[0]).toMatchObject({ name: "connect", parent: connect?.context });
});

test("a category that is off tells no span either, and a command that is excluded is not the first", async () => {
  const acquire = contextOf("a");
  capture.sink.trace = acquire;
  categories.delete("connection");
  const [first, ...more] = await drive("c1");
  expect([first?.name, first?.parent, more]).toEqual(["first command", acquire, []]);
  categories.add("connection").delete("control");
  expect((await drive("c2")).map(({ name }) => name)).toEqual(["connect"]);
  categories.add("control");
  excluded.add("Page.close");
  expect((await drive("c3")).map(({ name }) => name)).toEqual(["connect"]);
});
