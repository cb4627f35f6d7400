import { beforeEach, expect, test } from "vitest";
import { childOf, findTrace, type TraceContext, traceText } from "../../src/base/trace-context.js";
import { traceAcquire, traceCreate } from "../../src/lease/traced-lending.js";
import type { Granted, LendTiming } from "../../src/pool/operations.js";
import type { Caller, CapturingLease } from "../../src/spec/caller.js";
import type { Span } from "../../src/telemetry/traces/span.js";
import { DrivenClock } from "../support/driven-clock.js";

const from = (digit: string, flags = "01") =>
  findTrace({ traceparent: `00-${digit.repeat(32)}-${digit.repeat(16)}-${flags}` });
let clock: DrivenClock;
let told: { readonly lease: CapturingLease; readonly spans: readonly Span[] }[];
let settled: string[];
beforeEach(() => {
  clock = new DrivenClock();
  [told, settled] = [[], []];
});
const tracing = () => ({
  clock,
  tellSpans: (lease: CapturingLease, spans: readonly Span[]) => void told.push({ lease, spans }),
});
const callerOf = (trace: TraceContext | undefined) => ({ request: "r1", trace }) as unknown as Caller;
const grantedFor = (lease: TraceContext | undefined, timing?: LendTiming): Granted =>
  ({
    kind: "granted",
    session: { browser: { id: "b1", lease: { id: "l1", ...(lease && { trace: traceText(lease) }) } } },
    ...(timing && { timing }),
    settle: (outcome: string) => void settled.push(outcome),
  }) as unknown as Granted;
/** 10 ms until it is granted, after a wait of 6 ms of them; 5 ms until its answer has left. */
const lendTo = (lease: TraceContext | undefined, hasWaited: boolean) => async (): Promise<Granted> => {
  const begunAt = clock.monotonic();
  await clock.advance(10);
  const waited = { from: begunAt + 4, until: begunAt + 10 };
  return grantedFor(lease, { grantedAt: begunAt + 10, ...(hasWaited && { waited }) });
};
const rowsOf = (spans: readonly Span[] = []) =>
  spans.map(({ name, startedAt, endedAt }) => [name, startedAt, endedAt]);

test("an acquire is told with its wait and its hand-out, once its answer has left", async () => {
  const caller = from("a");
  const own = caller && childOf(caller);
  const got = await traceAcquire(lendTo(own, true), tracing())("herd", {}, callerOf(caller));
  expect(told).toEqual([]);
  await clock.advance(5);
  if (got.kind === "granted") got.settle("delivered");
  expect(settled).toEqual(["delivered"]);
  const [{ lease, spans } = { lease: undefined, spans: [] }] = told;
  expect(lease).toMatchObject({ browser: "b1", lease: "l1" });
  expect(rowsOf(spans)).toEqual([
    ["acquire", 0, 15],
    ["wait", 4, 10],
    ["hand-out", 10, 15],
  ]);
  expect(spans[0]).toMatchObject({ context: own, parent: caller, isServer: true });
  for (const child of spans.slice(1)) expect(child.parent).toEqual(own);
  for (const { failure } of spans) expect(failure).toBeUndefined();
});

test("a session on demand is told with its launch; one whose caller has gone is told as lost", async () => {
  const caller = from("a");
  const own = caller && childOf(caller);
  const got = await traceCreate(lendTo(own, true), tracing())({}, callerOf(caller));
  if (got.kind === "granted") got.settle("lost");
  const spans = told[0]?.spans ?? [];
  expect(spans.map(({ name, failure }) => [name, failure])).toEqual([
    ["create", "the caller had gone"],
    ["launch", undefined],
    ["hand-out", "the caller had gone"],
  ]);
});

test("a repeat that is given an earlier attempt's lease tells that one's span, by a link from another trace", async () => {
  const [first, repeat] = [from("a"), from("b")];
  const own = first && childOf(first);
  const got = await traceAcquire(lendTo(own, false), tracing())("herd", {}, callerOf(repeat));
  if (got.kind === "granted") got.settle("delivered");
  const spans = told[0]?.spans ?? [];
  expect(rowsOf(spans)).toEqual([
    ["acquire", 0, 10],
    ["hand-out", 10, 10],
  ]);
  expect(spans[0]).toMatchObject({ context: own, link: repeat });
  expect(spans[0]?.parent).toBeUndefined();
});

test.each([undefined, from("a", "00")])(
  "who is in no trace, or not sampled, is told nothing of",
  async (trace) => {
    const granted = grantedFor(undefined);
    const got = await traceAcquire(async () => granted, tracing())("herd", {}, callerOf(trace));
    expect(got).toBe(granted);
    const refused = await traceAcquire(async () => ({ kind: "timed-out" }), tracing())(
      "herd",
      {},
      callerOf(from("a")),
    );
    expect([refused, told]).toEqual([{ kind: "timed-out" }, []]);
  },
);
