import { expect, test } from "vitest";
import { FailedLogins } from "../../src/access/failed-logins.js";
import { DrivenClock } from "../support/driven-clock.js";

const open = (perMinute: number | null) => {
  const clock = new DrivenClock();
  const logins = new FailedLogins(perMinute, clock);
  const fail = (address: string, times = 1) =>
    Array.from({ length: times }, () => logins.note(address)).map((refused) => refused?.retryAfterMs ?? 0);
  return { clock, fail };
};

test("so many may fail from one address, and one more whenever a part of the minute has passed", () => {
  const { clock, fail } = open(3);
  expect(fail("198.51.100.1", 5)).toEqual([0, 0, 0, 20_000, 20_000]);
  expect(fail("198.51.100.2")).toEqual([0]);
  clock.stand(19_000);
  expect(fail("198.51.100.1")).toEqual([1000]);
  clock.stand(1000);
  expect(fail("198.51.100.1", 2)).toEqual([0, 20_000]);
  clock.stand(600_000);
  expect(fail("198.51.100.1", 4)).toEqual([0, 0, 0, 20_000]);
});

test("an IPv6 network is one address", () => {
  const { fail } = open(2);
  expect([...fail("2001:db8::1"), ...fail("2001:db8::2"), ...fail("2001:db8::3")]).toEqual([0, 0, 30_000]);
  expect(fail("2001:db8:0:1::1")).toEqual([0]);
});

test("of very many addresses the ones that failed longest ago are forgotten", () => {
  const { fail } = open(1);
  expect(fail("198.51.100.1", 2)).toEqual([0, 60_000]);
  for (let at = 0; at < 10_000; at += 1) fail(`10.0.${at >> 8}.${at & 255}`);
  expect(fail("198.51.100.1")).toEqual([0]);
});

test("without a limit nobody is told to wait", () => {
  expect(open(null).fail("198.51.100.1", 50)).toEqual(Array.from({ length: 50 }, () => 0));
});
