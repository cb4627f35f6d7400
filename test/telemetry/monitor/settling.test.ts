import { beforeEach, expect, test } from "vitest";
import { Scrolling, type Scroll } from "../../../src/telemetry/monitor/scrolling.js";
import { Settling } from "../../../src/telemetry/monitor/settling.js";
import { DrivenClock } from "../../support/driven-clock.js";

let clock: DrivenClock;
let told: string[];
let page: Settling;

beforeEach(() => {
  clock = new DrivenClock();
  told = [];
  page = new Settling(clock, {
    networkIdle: () => told.push(`idle at ${clock.now()}`),
    layoutSettled: () => told.push(`layout at ${clock.now()}`),
    navigationSettled: () => told.push(`navigation at ${clock.now()}`),
  });
});

const requested = (id: string, loader = "one", session = "page"): void =>
  page.requested({ id, loader, session });

test("the network is idle 500 ms after the last request is over", async () => {
  requested("a");
  requested("b");
  page.answered("a");
  await clock.advance(600);
  page.answered("b");
  await clock.advance(499);
  expect(told).toEqual([]);
  await clock.advance(1);
  expect(told).toEqual(["idle at 1100"]);
});

test("a request within the 500 ms begins them anew, and each burst is told of", async () => {
  requested("a");
  page.answered("a");
  await clock.advance(400);
  requested("b");
  await clock.advance(400);
  page.answered("b");
  await clock.advance(500);
  requested("c");
  page.answered("c");
  await clock.advance(500);
  expect(told).toEqual(["idle at 1300", "idle at 1800"]);
});

test("a request that was not seen to begin is no end of a burst", async () => {
  page.answered("unknown");
  await clock.advance(1000);
  expect(told).toEqual([]);
});

test("a navigation forgets the requests of the document before, and keeps its own", async () => {
  requested("hanging", "one");
  requested("document", "two");
  page.navigated("two");
  await clock.advance(1000);
  expect(told).toEqual([]);
  page.answered("document");
  await clock.advance(500);
  expect(told).toEqual(["idle at 1500"]);
});

test("requests of a frame or worker that has gone are over", async () => {
  requested("a", "one", "frame");
  page.sessionEnded("frame");
  await clock.advance(500);
  expect(told).toEqual(["idle at 500"]);
});

test("requests that are no longer told of keep no later burst from its end, and their own is none", async () => {
  requested("a");
  requested("b", "one", "frame");
  page.answered("a");
  page.requestsUnseen("frame");
  page.requestsUnseen("page");
  await clock.advance(1000);
  expect(told).toEqual([]);
  page.answered("b");
  requested("c");
  page.answered("c");
  await clock.advance(500);
  expect(told).toEqual(["idle at 1500"]);
});

test("where messages were lost, quiet is what counts", async () => {
  requested("a");
  page.requestsLost();
  await clock.advance(300);
  page.requestsLost();
  await clock.advance(500);
  expect(told).toEqual(["idle at 800"]);
});

test("the layout is settled 1 s after the load, or after the last shift since", async () => {
  page.contentLoaded();
  page.shifted();
  await clock.advance(2000);
  page.loaded();
  await clock.advance(900);
  page.shifted();
  await clock.advance(999);
  expect(told).toEqual([]);
  await clock.advance(1);
  expect(told).toEqual(["layout at 3900", "navigation at 3900"]);
});

test("a navigation settles once, whatever shifts afterwards and whatever is still requested", async () => {
  requested("hanging");
  page.contentLoaded();
  page.loaded();
  await clock.advance(1000);
  page.shifted();
  page.loaded();
  await clock.advance(5000);
  expect(told).toEqual(["layout at 1000", "navigation at 1000"]);
});

test("the next navigation begins anew, and what was about to settle does not", async () => {
  page.contentLoaded();
  page.loaded();
  await clock.advance(999);
  page.navigated("two");
  await clock.advance(5000);
  page.contentLoaded();
  page.loaded();
  await clock.advance(1000);
  expect(told).toEqual(["layout at 6999", "navigation at 6999"]);
});

test("nothing is told once it was stopped", async () => {
  page.contentLoaded();
  page.loaded();
  requested("a");
  page.answered("a");
  page.stop();
  expect(clock.pending).toBe(0);
});

test("movements of one element that follow within 300 ms are one", async () => {
  const settled: Scroll[] = [];
  const scrolling = new Scrolling(clock, (scroll) => settled.push(scroll));
  const move = (selector: string, from: number, to: number): boolean =>
    scrolling.scrolled({ selector, from: { x: 0, y: from }, to: { x: 0, y: to } });
  move("html", 0, 100);
  await clock.advance(299);
  move("html", 100, 250);
  move("div", 0, 10);
  await clock.advance(300);
  move("html", 250, 0);
  await clock.advance(300);
  expect(settled.map(({ selector, from, to }) => [selector, from.y, to.y])).toEqual([
    ["html", 0, 250],
    ["div", 0, 10],
    ["html", 250, 0],
  ]);
});

test("a page that moves more elements at once than are followed keeps no more timers", () => {
  const scrolling = new Scrolling(clock, () => {});
  const place = { x: 0, y: 0 };
  const taken = Array.from({ length: 100 }, (_, index) =>
    scrolling.scrolled({ selector: `#e${index}`, from: place, to: place }),
  );
  expect(taken.filter(Boolean)).toHaveLength(32);
  scrolling.stop();
  expect(clock.pending).toBe(0);
});
