import { describe, expect, test } from "vitest";
import {
  newBrowserId,
  newLeaseId,
  newRequestId,
  type NodeId,
  onDemandPartition,
} from "../../src/base/ids.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { idempotencyKeyOf } from "../../src/spec/caller.js";
import { pageOf } from "../../src/spec/paging.js";
import { meterAcquire } from "../../src/lease/metered-acquire.js";
import { shortfall } from "../../src/pool/pool.js";
import { byPreference } from "../../src/pool/placement.js";
import { leaseOfToken, tokenOf } from "../../src/base/crypto/lease-token.js";
import { refusal } from "../../src/base/errors.js";
import { callerOf } from "../support/daemon/control-bed.js";
import { DrivenClock } from "../support/driven-clock.js";
import { nodeFacts } from "../support/store/node-facts.js";

describe("placement", () => {
  const node = (id: string, bytes: number, memoryBytes = 100) => ({
    held: { bytes, browsers: 0 },
    refusedBytes: Infinity,
    facts: {
      ...nodeFacts(id as NodeId, { memoryBytes, maxBrowsers: 9, engines: [] }),
      isLate: false,
      isStopping: false,
    },
  });
  test.each([
    ["the pool's fewest browsers", [node("a", 0), node("b", 90)], { a: 1 }, ["b", "a"]],
    ["then most room", [node("a", 50), node("b", 40)], {}, ["b", "a"]],
    ["room is what is left, not what there is", [node("a", 150, 200), node("b", 20)], {}, ["b", "a"]],
    ["then the name", [node("b", 0), node("a", 0)], {}, ["a", "b"]],
  ] as const)("prefers %s", (...[, nodes, ofPool, order]) => {
    const counts = new Map(Object.entries(ofPool).map(([id, count]) => [id as NodeId, count]));
    expect(nodes.toSorted(byPreference(counts)).map(({ facts }) => facts.id)).toEqual(order);
  });
  test("prefers the zone with the pool's fewest browsers before its nodes", () => {
    const inZone = (id: string, zone: string) => {
      const { facts, ...rest } = node(id, 0);
      return { ...rest, facts: { ...facts, zone } };
    };
    const counts = new Map([["a" as NodeId, 1]]);
    const ofZone = (zone: string | undefined): number => (zone === "north" ? 3 : 1);
    const sorted = [inZone("b", "north"), inZone("a", "south")].toSorted(byPreference(counts, ofZone));
    expect(sorted.map(({ facts }) => facts.id)).toEqual(["a", "b"]);
  });
});

describe("tokens", () => {
  const secret = new Secret("a secret");
  const [browser, lease] = [newBrowserId(onDemandPartition), newLeaseId()];
  const token = tokenOf(secret, browser, lease);
  test("name the lease they were made for, every time the same", () => {
    expect(leaseOfToken(secret, browser, token)).toBe(lease);
    expect(tokenOf(new Secret("a secret"), browser, lease)).toBe(token);
  });
  test.each([
    ["another browser", secret, newBrowserId(onDemandPartition), token],
    ["another secret", new Secret("another"), browser, token],
    ["another lease", secret, browser, token.replace(lease, newLeaseId())],
    ["nothing", secret, browser, ""],
    ["no signature", secret, browser, lease],
    ["an empty signature", secret, browser, `${lease}.`],
    ["a longer one", secret, browser, `${token}x`],
    ["a part too many", secret, browser, `${token}.x`],
    ["another letter", secret, browser, token.slice(0, -1) + (token.endsWith("A") ? "B" : "A")],
  ] as const)("are none with %s", (...[, theirs, id, text]) =>
    expect(leaseOfToken(theirs, id, text)).toBeUndefined(),
  );
});

describe("idempotency keys", () => {
  const of = (key: string, body: unknown, scope = "s") =>
    idempotencyKeyOf(callerOf({ idempotencyKey: key }), scope, body);
  test("without a key nothing is remembered", () =>
    expect(idempotencyKeyOf(callerOf(), "s", {})).toBeUndefined());
  test("the same body has the same digest in any order, at any depth", () => {
    expect(of("k", { a: 1, b: { c: [1, 2], d: 2 } })).toEqual(of("k", { b: { d: 2, c: [1, 2] }, a: 1 }));
  });
  test.each([
    [{ a: 1 }, { a: 2 }],
    [{ a: [1, 2] }, { a: [2, 1] }],
    [{}, { a: null }],
    [{ a: "1" }, { a: 1 }],
  ])("%j and %j are different bodies", (one, other) =>
    expect(of("k", one)?.body).not.toBe(of("k", other)?.body),
  );
  test("keys of other scopes are other keys, and neither key nor scope can be read", () => {
    expect(of("k", {}, "one")?.key).not.toBe(of("k", {}, "two")?.key);
    expect(JSON.stringify(of("my-secret-key", {}))).not.toContain("my-secret-key");
  });
});

test.each([
  [0, 2, { items: [1, 2], hasMore: true, nextOffset: 2 }],
  [2, 2, { items: [3, 4], hasMore: true, nextOffset: 4 }],
  [4, 2, { items: [5], hasMore: false, nextOffset: 5 }],
  [3, 2, { items: [4, 5], hasMore: false, nextOffset: 5 }],
  [9, 2, { items: [], hasMore: false, nextOffset: 9 }],
  [0, 100, { items: [1, 2, 3, 4, 5], hasMore: false, nextOffset: 5 }],
])("the page of five at %i with a limit of %i", (offset, limit, page) =>
  expect(pageOf([1, 2, 3, 4, 5], { offset, limit })).toEqual(page),
);

test("a pool lacks what no state of its browsers makes up for", () => {
  const counts = { launching: 1, idle: 1, leased: 2, resetting: 1, stale: 4, waiting: 9 };
  expect([shortfall(10, counts), shortfall(5, counts), shortfall(1, counts)]).toEqual([5, 0, 0]);
});

describe("acquires are counted", () => {
  const seen: unknown[] = [];
  const clock = new DrivenClock();
  const meter = {
    acquired: (ref: string, outcome: string, waitedMs: number) => void seen.push([ref, outcome, waitedMs]),
  };
  const gone = AbortSignal.abort();
  test.each([
    ["a wait without a browser", { kind: "timed-out" }, {}, [["herd", "timed_out", 5]]],
    ["a caller that went", { kind: "timed-out" }, { gone }, [["herd", "gone", 5]]],
    ["a refusal", refusal("too_many_waiters"), {}, [["herd", "refused", 5]]],
    ["no pool that there is not", refusal("pool_not_found"), {}, []],
    ["no body that was refused before its pool was looked for", refusal("bad_request"), {}, []],
  ] as const)("%s", async (...[, outcome, over, expected]) => {
    seen.length = 0;
    const acquire = meterAcquire(
      async () => {
        await clock.advance(5);
        return outcome;
      },
      { clock, meter },
    );
    await acquire("herd", {}, { ...callerOf({ request: newRequestId() }), ...over });
    expect(seen).toEqual(expected);
  });
});
