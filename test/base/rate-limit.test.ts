import { expect, test } from "vitest";
import { RateLimit } from "../../src/base/rate-limit.js";
import { DrivenClock } from "../support/driven-clock.js";

function limited(perSecond: number) {
  const clock = new DrivenClock();
  const told: [string, number][] = [];
  return {
    clock,
    told,
    limit: new RateLimit({ clock, perSecond, onSuppressed: (key, count) => void told.push([key, count]) }),
  };
}

test("so many of each key pass in a second, and the others are counted in one call", async () => {
  const { clock, told, limit } = limited(2);
  const passed = Array.from({ length: 5 }, () => limit.admits("a"));
  expect(passed).toEqual([true, true, false, false, false]);
  expect(limit.admits("b")).toBe(true);
  await clock.advance(1000);
  expect(told).toEqual([["a", 3]]);
  expect(limit.admits("a")).toBe(true);
  await clock.advance(5000);
  expect(told).toHaveLength(1);
});

test("what was suppressed is reported at the end as well, and not twice", async () => {
  const { clock, told, limit } = limited(1);
  limit.admits("a");
  limit.admits("a");
  limit.flush();
  await clock.advance(2000);
  expect(told).toEqual([["a", 1]]);
});
