import { describe, expect, test } from "vitest";
import type { NodeId } from "../../src/base/ids.js";
import { type NodeLoad, type PoolLoad, scalingOf } from "../../src/pool/scaling.js";
import { scaledFrom } from "../support/kubernetes/autoscaler.js";

const gib = 2 ** 30;
const node = (id: string, more: Partial<NodeLoad> = {}): NodeLoad => ({
  id: id as NodeId,
  isDraining: false,
  isStopping: false,
  isServing: true,
  admittedBytes: 32 * gib,
  maxBrowsers: 100,
  held: { browsers: 0, bytes: 0 },
  leased: 0,
  outlastsDrain: false,
  ...more,
});
const counts = { launching: 0, idle: 0, leased: 0, resetting: 0, stale: 0, waiting: 0 };
const pool = (more: Partial<PoolLoad> = {}): PoolLoad => ({
  counts,
  lacking: 0,
  ending: 0,
  replaced: 0,
  isHeldUp: false,
  isObstructed: false,
  browserBytes: gib,
  ...more,
});
const full = { browsers: 32, bytes: 32 * gib };
/** It drains since it was told to end, or on request. */
const drained = { isDraining: true, isServing: false };
const stopping = { ...drained, isStopping: true };

describe("nodes that are wanted", () => {
  test("hold all that exists and all that is lacking", () => {
    const nodes = [node("a", { held: full }), node("b", { held: full })];
    expect(scalingOf(nodes, [pool()]).wantedNodes).toBe(2);
    expect(scalingOf(nodes, [pool({ lacking: 1 })]).wantedNodes).toBe(3);
    expect(scalingOf(nodes, [pool({ lacking: 33 })]).wantedNodes).toBe(4);
  });
  test("do not follow the nodes that are there: with one that empties, fewer are wanted until it is gone, and no fewer then", () => {
    const half = { browsers: 16, bytes: 16 * gib };
    const before = [node("a", { held: half }), node("b", { held: half })];
    expect(scalingOf(before, [pool()]).wantedNodes).toBe(1);
    expect(scalingOf([node("a", { held: full })], [pool()]).wantedNodes).toBe(1);
  });
  test("hold what draining nodes still have until it is replaced", () => {
    const nodes = [node("a", { held: full }), node("b", { ...stopping, held: full, leased: 3 })];
    expect(scalingOf(nodes, [pool()])).toMatchObject({ wantedNodes: 2, serving: 1, draining: 1 });
  });
  test("hold a browser whose replacement is there once, and so one that is ending", () => {
    const nodes = [node("a", { held: full }), node("b", { ...stopping, held: full, leased: 3 })];
    expect(scalingOf(nodes, [pool({ replaced: 32 })]).wantedNodes).toBe(1);
    expect(scalingOf(nodes, [pool({ replaced: 31 })]).wantedNodes).toBe(2);
    expect(scalingOf(nodes, [pool({ ending: 32, lacking: 32 })]).wantedNodes).toBe(2);
    expect(scalingOf(nodes, [pool({ ending: 64 })]).wantedNodes).toBe(0);
    const byNumber = nodes.map((each) => ({ ...each, maxBrowsers: 32, admittedBytes: 1000 * gib }));
    expect(scalingOf(byNumber, [pool({ replaced: 32 })]).wantedNodes).toBe(1);
  });
  test("are no more for want of room where what ends leaves enough", () => {
    const nodes = [node("a", { held: full })];
    const held = pool({ isHeldUp: true, lacking: 32 });
    expect(scalingOf(nodes, [{ ...held, ending: 32 }]).wantedNodes).toBe(1);
    expect(scalingOf(nodes, [{ ...held, ending: 31 }]).wantedNodes).toBe(2);
  });
  test("are bounded by the number of browsers too", () => {
    const nodes = [node("a", { maxBrowsers: 10, held: { browsers: 10, bytes: 10 * gib } })];
    expect(scalingOf(nodes, [pool({ lacking: 1 })]).wantedNodes).toBe(2);
  });
  test("are one more where room is left in pieces too small for a browser", () => {
    const nodes = [node("a", { held: { browsers: 3, bytes: 24 * gib } })];
    const held = pool({ lacking: 1, isHeldUp: true, browserBytes: 8 * gib });
    expect(scalingOf(nodes, [held])).toMatchObject({ wantedNodes: 2, unplaceable: 1 });
  });
  test("are no more for a pool that something else than room holds up, which a node more would not fill", () => {
    const nodes = [node("a", { held: { browsers: 3, bytes: 24 * gib } })];
    const held = pool({ lacking: 1, isHeldUp: true, browserBytes: 8 * gib });
    const obstructed = { ...held, isObstructed: true };
    expect(scalingOf(nodes, [obstructed])).toMatchObject({ wantedNodes: 1, unplaceable: 1 });
    expect(scalingOf(nodes, [obstructed, held])).toMatchObject({ wantedNodes: 2, unplaceable: 2 });
    const filled = { ...held, lacking: 0 };
    expect(scalingOf(nodes, [obstructed, filled])).toMatchObject({ wantedNodes: 1 });
  });
  test("are none where nothing is to be held, and one where nobody knows what a node holds", () => {
    expect(scalingOf([], [pool()]).wantedNodes).toBe(0);
    expect(scalingOf([], [pool({ lacking: 500 })]).wantedNodes).toBe(1);
  });
});

describe("nodes that drain on request, each of which an autoscaler counts among those that are there", () => {
  test("come on top of what is wanted, until they stop", () => {
    const wanted = (more: Partial<NodeLoad>, lacking = 1): number =>
      scalingOf([node("a", { held: full }), node("b", more)], [pool({ lacking })]).wantedNodes;
    expect(wanted(drained)).toBe(3);
    expect(wanted({ ...drained, held: full, leased: 3 })).toBe(4);
    expect(wanted(stopping)).toBe(2);
    const isHeldUp = pool({ lacking: 1, isHeldUp: true, browserBytes: 8 * gib });
    const inPieces = node("a", { held: { browsers: 3, bytes: 24 * gib } });
    expect(scalingOf([inPieces, node("b", drained)], [isHeldUp]).wantedNodes).toBe(3);
  });
  test("come on top of the first that serves", () => {
    const nodes = [node("a", drained), node("b", drained)];
    expect(scalingOf(nodes, [pool({ lacking: 1 })]).wantedNodes).toBe(3);
    expect(scalingOf(nodes, [pool()]).wantedNodes).toBe(0);
  });

  const target = 0.9;
  function scaledTo({ there, away, needed }: Case): number {
    const nodes = Array.from({ length: there }, (_, at) => node(`n${at}`, at < away ? drained : {}));
    return scaledFrom(there, scalingOf(nodes, [pool({ lacking: 32 * needed })]).wantedNodes, target);
  }
  /** `there` nodes, of which `away` drain, are to hold as much as `needed` of them can. */
  interface Case {
    readonly there: number;
    readonly away: number;
    readonly needed: number;
  }
  const cases: readonly Case[] = [1, 2, 5, 9, 12, 40].flatMap((there) =>
    [1, 2, 5, 9].flatMap((away) =>
      [1, 3, 8, 11, 30].map((needed) => ({ there, away: Math.min(there, away), needed })),
    ),
  );
  test("leave enough that serve, also where they are the last to be taken away", () => {
    const missing = cases.filter(
      ({ there, away, needed }) => there > away && scaledTo({ there, away, needed }) - away < needed,
    );
    expect(missing).toEqual([]);
  });

  /** Which way an autoscaler goes until nothing changes any more. */
  function waysOf(from: Case, isDrainedFirst: boolean): readonly number[] {
    const ways = new Set<number>();
    let { there, away } = from;
    for (let step = 0; step < 60; step += 1) {
      const next = scaledTo({ ...from, there, away });
      if (next === there) return [...ways];
      ways.add(Math.sign(next - there));
      if (next < there && isDrainedFirst) away = Math.max(0, away - (there - next));
      there = next;
    }
    throw new Error(`${JSON.stringify(from)} does not come to rest`);
  }
  test.each([true, false])(
    "do not have nodes added and taken away in turn (they are taken away first: %s)",
    (isDrainedFirst) => {
      expect(cases.filter((each) => waysOf(each, isDrainedFirst).length > 1)).toEqual([]);
    },
  );
});

test("what is lacking for another reason than room is not without room", () => {
  const pools = [pool({ lacking: 4 }), pool({ lacking: 2, isHeldUp: true })];
  expect(scalingOf([node("a")], pools)).toMatchObject({ lacking: 6, unplaceable: 2 });
});

test("the room that is free is that of nodes which take launches", () => {
  const nodes = [node("a", { held: { browsers: 2, bytes: 2 * gib } }), node("b", drained)];
  expect(scalingOf(nodes, [])).toMatchObject({
    admittedBytes: 32 * gib,
    heldBytes: 2 * gib,
    freeBytes: 30 * gib,
  });
});
