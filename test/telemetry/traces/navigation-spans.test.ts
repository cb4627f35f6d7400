import { beforeEach, expect, test } from "vitest";
import type { TraceContext } from "../../../src/base/trace-context.js";
import type { EventCategory, NavigationFacts } from "../../../src/telemetry/event.js";
import { NavigationSpans } from "../../../src/telemetry/traces/navigation-spans.js";
import type { Span } from "../../../src/telemetry/traces/span.js";
import { DrivenClock } from "../../support/driven-clock.js";

const trace: TraceContext = { traceId: "a".repeat(32), spanId: "b".repeat(16), isSampled: true };
let clock: DrivenClock;
let spans: Span[];
let passed: string[];
let categories: Set<EventCategory>;
let sink: ConstructorParameters<typeof NavigationSpans>[0];
let watched: NavigationSpans;
beforeEach(() => {
  clock = new DrivenClock();
  [spans, passed, categories] = [[], [], new Set(["page", "network"])];
  sink = {
    lost: 0,
    lostInStore: 0,
    trace,
    span: (span) => void spans.push(span),
    wants: (category) => categories.has(category),
    emit: ({ type }) => passed.push(type) > 0,
  };
  watched = new NavigationSpans(sink, clock);
});

interface Data {
  readonly [field: string]: unknown;
  readonly navigation?: NavigationFacts;
}
const page = (type: string, target: string, { navigation, ...data }: Data = {}) =>
  watched.emit({
    navigation,
    type,
    category: "page",
    source: { kind: "cdp" },
    data: { target_id: target, target_type: "page", ...data },
  });
const told = () =>
  spans.map(({ attributes, startedAt, endedAt }) => [
    attributes?.["url.full"],
    attributes?.["remuda.navigation.end"],
    endedAt - startedAt,
  ]);

test("a navigation lasts from its document until that is loaded, superseded, crashed or left", async () => {
  page("page_navigation", "t1", { url: "http://a/" });
  page("page_navigation", "t2", { url: "http://b/" });
  await clock.advance(10);
  page("page_load", "t1");
  page("page_load", "t1");
  page("page_navigation", "t2", { url: "http://c/" });
  await clock.advance(5);
  page("page_crashed", "t2");
  page("page_navigation", "t3", { url: "http://d/" });
  await clock.advance(1);
  watched.close();
  watched.close();
  expect(told()).toEqual([
    ["http://a/", "loaded", 10],
    ["http://b/", "superseded", 10],
    ["http://c/", "crashed", 5],
    ["http://d/", "left", 1],
  ]);
  for (const { parent, context } of spans) {
    expect(parent).toEqual(trace);
    expect(context).toMatchObject({ traceId: trace.traceId });
  }
  expect(spans.map(({ failure }) => failure !== undefined)).toEqual([false, false, true, false]);
  expect(passed).toHaveLength(7);
});

test("pages that go before they have loaded end their navigations, and keep no span from those that come", () => {
  for (let number = 1; number <= 256; number += 1) {
    page("page_navigation", `gone ${number}`, { url: `http://gone/${number}` });
    watched.left(`gone ${number}`);
  }
  watched.left("never seen");
  page("page_navigation", "t1", { url: "http://a/" });
  page("page_load", "t1");
  expect(told()).toHaveLength(257);
  expect(told()[0]).toEqual(["http://gone/1", "left", 0]);
  expect(told().at(-1)).toEqual(["http://a/", "loaded", 0]);
});

test("a navigation begins when its document was asked for, where that was seen, and fails where an error is shown", async () => {
  const startedAt = clock.monotonic();
  await clock.advance(40);
  page("page_navigation", "t1", { url: "http://a/", navigation: { startedAt, hasFailed: true } });
  await clock.advance(2);
  page("page_load", "t1");
  expect(told()).toEqual([["http://a/", "loaded", 42]]);
  expect(spans[0]?.failure).toBe("the document could not be loaded");
});

test("frames in a page, pages of a lease without a trace and a category that is off have no spans", () => {
  page("page_navigation", "t1", { url: "http://a/", parent_frame_id: "f1" });
  page("page_navigation", "t2", { url: "http://b/", target_type: "iframe" });
  page("page_load", "t1");
  sink.trace = undefined;
  page("page_navigation", "t3", { url: "http://c/" });
  page("page_load", "t3");
  sink.trace = trace;
  categories.delete("page");
  page("page_navigation", "t4", { url: "http://d/" });
  watched.close();
  expect(spans).toEqual([]);
});

test("where the wall clock jumps, spans keep their length, follow it forward, and never go back", () => {
  let [now, monotonic] = [1_000_000, 0];
  watched = new NavigationSpans(sink, { now: () => now, monotonic: () => monotonic });
  const navigate = (jumpMs: number): void => {
    page("page_navigation", "t1", { url: "http://a/" });
    [now, monotonic] = [now + jumpMs + 10, monotonic + 10];
    page("page_load", "t1");
  };
  const hour = 3_600_000;
  for (const jump of [0, hour, -200, -200, -hour, 0]) navigate(jump);
  const ahead = 1_000_000 + hour;
  expect(spans.map(({ startedAt, endedAt }) => [startedAt, endedAt])).toEqual([
    [1_000_000, 1_000_010],
    ...[10, 20, 30, 40, 50].map((at) => [ahead + at, ahead + at + 10]),
  ]);
});
