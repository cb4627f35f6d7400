import { expect, test } from "vitest";
import { FairTurns } from "../../src/base/fair-turns.js";
import type { LeaseId } from "../../src/base/ids.js";
import { ClientCounts } from "../../src/gateway/client-counts.js";
import { defaultGatewayLimits } from "../../src/gateway/limits.js";

const mebibyte = 1024 * 1024;
const [lease, other] = ["lse_1", "lse_2"] as LeaseId[] as [LeaseId, LeaseId];

/** Counts on a clock that is moved by hand. */
function openCounts(most: number): { counts: ClientCounts; clock: { now: number } } {
  const { clientBytesPerSecond: bytesPerSecond } = defaultGatewayLimits;
  const clock = { now: 0, monotonic: () => clock.now, after: () => () => {} };
  return { counts: new ClientCounts({ most, bytesPerSecond }, new FairTurns(clock)), clock };
}

test("what clients have used is held against those that come after them, until it would be there again anyway", () => {
  const { counts, clock } = openCounts(2);
  counts.enter(lease)?.spend(0, 64 * mebibyte);
  counts.remove(lease);
  const next = counts.enter(lease);
  expect(next?.readyInMs).toBe(4000);
  counts.remove(lease);
  expect(counts.enter(other)?.readyInMs).toBe(0);
  counts.remove(other);
  clock.now += 4000;
  const later = counts.enter(lease);
  expect(later).toBe(next);
  expect(later?.readyInMs).toBe(0);
  counts.remove(lease);
  clock.now += 4000;
  // Rested, and so forgotten when the next one goes.
  counts.enter(other);
  counts.remove(other);
  expect(counts.enter(lease)).not.toBe(next);
});

test("a lease has as many clients as may be, and again when they have gone", () => {
  const { counts } = openCounts(1);
  expect(counts.enter(lease)).toBeDefined();
  expect(counts.enter(lease)).toBeUndefined();
  expect(counts.enter(other)).toBeDefined();
  counts.remove(lease);
  expect(counts.enter(lease)).toBeDefined();
});
