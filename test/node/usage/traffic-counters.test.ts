import { expect, test } from "vitest";
import { partitionOf, type LeaseId, newBrowserId, newLeaseId, newPoolId } from "../../../src/base/ids.js";
import { type PoolTrafficMeter, TrafficCounters } from "../../../src/node/usage/traffic-counters.js";
import { LeaseUsageCount } from "../../../src/node/usage/lease-usage.js";
import type { TrafficUsage } from "../../../src/pool/browser.js";

const [one, other] = [partitionOf(newPoolId()), partitionOf(newPoolId())];

function book(): PoolTrafficMeter & { lines: string[] } {
  const lines: string[] = [];
  return {
    lines,
    asked: (...line) => void lines.push(`asked ${line.join(" ")}`),
    denied: (...line) => void lines.push(`denied ${line.join(" ")}`),
    passed: (...line) => void lines.push(`passed ${line.join(" ")}`),
  };
}

test("what browsers of one pool ask is told together, once, with its reasons", async () => {
  const counters = new TrafficCounters();
  for (const browser of [newBrowserId(one), newBrowserId(one)]) {
    counters.request(browser, "direct");
    counters.request(browser, "private");
    counters.carried(browser, "sent", 10);
  }
  counters.request(newBrowserId(other), "upstream");
  const meter = book();
  await counters.report(async (partition) => (partition === one ? "one" : "other"), meter);
  expect(meter.lines.toSorted()).toEqual([
    "asked one denied 2",
    "asked one direct 2",
    "asked other upstream 1",
    "denied one private 2",
    "passed one sent 20",
  ]);
  await counters.report(async () => "again", meter);
  expect(meter.lines).toHaveLength(5);
});

test("what has no label now is told the next time, with what came since", async () => {
  const counters = new TrafficCounters();
  const browser = newBrowserId(one);
  counters.request(browser, "direct");
  const meter = book();
  await counters.report(() => Promise.reject(new Error("Redis is away")), meter);
  expect(meter.lines).toEqual([]);
  counters.request(browser, "direct");
  await counters.report(async () => "one", meter);
  expect(meter.lines).toEqual(["asked one direct 2"]);
});

/** A count that a test moves on. */
function counting(): { now: TrafficUsage; add(requests: number): void } {
  const counts = {
    now: { requests: 2, denied: 2, bytesSent: 0, bytesReceived: 0 },
    add: (requests: number) =>
      void (counts.now = { ...counts.now, requests: counts.now.requests + requests }),
  };
  return counts;
}
const requestsOf = (leaseUsage: LeaseUsageCount, lease: LeaseId): number | undefined =>
  leaseUsage.unreported(lease)?.usage.requests;

test("a lease of a pool's browser counts from when it is heard of, a session on demand from its launch", () => {
  for (const [fromNow, expected] of [
    [false, 1],
    [true, 6],
  ] as const) {
    const counts = counting();
    const leaseUsage = new LeaseUsageCount(() => counts.now, fromNow);
    counts.add(5);
    const lease = newLeaseId();
    leaseUsage.begin(lease);
    counts.add(1);
    expect(requestsOf(leaseUsage, lease)).toBe(expected);
  }
});

test("only what is new is told, only of the present lease, and the next one begins at nothing", () => {
  const counts = counting();
  const leaseUsage = new LeaseUsageCount(() => counts.now, false);
  expect(leaseUsage.total).toBeUndefined();
  const [first, second] = [newLeaseId(), newLeaseId()];
  leaseUsage.begin(first);
  expect(requestsOf(leaseUsage, first)).toBeUndefined();
  counts.add(3);
  expect([
    requestsOf(leaseUsage, second),
    requestsOf(leaseUsage, first),
    requestsOf(leaseUsage, first),
  ]).toEqual([undefined, 3, undefined]);
  counts.add(1);
  leaseUsage.begin(second);
  counts.add(2);
  expect(requestsOf(leaseUsage, second)).toBe(2);
  expect(leaseUsage.total).toMatchObject({ lease: second, usage: { requests: 2, denied: 0 } });
});
