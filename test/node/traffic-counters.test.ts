import { expect, test } from "vitest";
import { homeOf, type LeaseId, newBrowserId, newLeaseId, newPoolId } from "../../src/base/ids.js";
import { type PoolTrafficMeter, TrafficCounters } from "../../src/node/traffic-counters.js";
import { LeaseUsageCount } from "../../src/node/lease-usage.js";
import type { TrafficUsage } from "../../src/pool/browser.js";

const [one, other] = [homeOf(newPoolId()), homeOf(newPoolId())];

function book(): PoolTrafficMeter & { lines: string[] } {
  const lines: string[] = [];
  return {
    lines,
    asked: (...line) => void lines.push(`asked ${line.join(" ")}`), denied: (...line) => void lines.push(`denied ${line.join(" ")}`),
    passed: (...line) => void lines.push(`passed ${line.join(" ")}`),
  };
}

test("what browsers of one pool ask is told together, once, with its reasons", async () => {
  const tally = new TrafficCounters();
  for (const browser of [newBrowserId(one), newBrowserId(one)]) {
    tally.request(browser, "direct");
    tally.request(browser, "private");
    tally.carried(browser, "sent", 10);
  }
  tally.request(newBrowserId(other), "upstream");
  const meter = book();
  await tally.tell(async (home) => (home === one ? "one" : "other"), meter);
  expect(meter.lines.toSorted()).toEqual(["asked one denied 2", "asked one direct 2", "asked other upstream 1", "denied one private 2", "passed one sent 20"]);
  await tally.tell(async () => "again", meter);
  expect(meter.lines).toHaveLength(5);
});

test("what has no label now is told the next time, with what came since", async () => {
  const tally = new TrafficCounters();
  const browser = newBrowserId(one);
  tally.request(browser, "direct");
  const meter = book();
  await tally.tell(() => Promise.reject(new Error("Redis is away")), meter);
  expect(meter.lines).toEqual([]);
  tally.request(browser, "direct");
  await tally.tell(async () => "one", meter);
  expect(meter.lines).toEqual(["asked one direct 2"]);
});

/** A count that a test moves on. */
function counting(): { now: TrafficUsage; add(requests: number): void } {
  const counts = { now: { requests: 2, denied: 2, bytesSent: 0, bytesReceived: 0 }, add: (requests: number) => void (counts.now = { ...counts.now, requests: counts.now.requests + requests }) };
  return counts;
}
const requestsOf = (using: LeaseUsageCount, lease: LeaseId): number | undefined => using.untold(lease)?.usage.requests;

test("a lease of a pool's browser counts from when it is heard of, a session on demand from its launch", () => {
  for (const [fromNow, expected] of [[false, 1], [true, 6]] as const) {
    const counts = counting();
    const using = new LeaseUsageCount(() => counts.now, fromNow);
    counts.add(5);
    const lease = newLeaseId();
    using.begin(lease);
    counts.add(1);
    expect(requestsOf(using, lease)).toBe(expected);
  }
});

test("only what is new is told, only of the present lease, and the next one begins at nothing", () => {
  const counts = counting();
  const using = new LeaseUsageCount(() => counts.now, false);
  expect(using.total).toBeUndefined();
  const [first, second] = [newLeaseId(), newLeaseId()];
  using.begin(first);
  expect(requestsOf(using, first)).toBeUndefined();
  counts.add(3);
  expect([requestsOf(using, second), requestsOf(using, first), requestsOf(using, first)]).toEqual([undefined, 3, undefined]);
  counts.add(1);
  using.begin(second);
  counts.add(2);
  expect(requestsOf(using, second)).toBe(2);
  expect(using.total).toMatchObject({ lease: second, usage: { requests: 2, denied: 0 } });
});
