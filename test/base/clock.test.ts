import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../src/base/clock.js";

const day = 24 * 60 * 60 * 1000;

test("what is due in more than 24.8 days, the longest timer of Node.js, comes when it is due", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let [once, repeated, cancelled] = [0, 0, 0];
  systemClock.after(60 * day, () => void (once += 1));
  const stop = systemClock.every(60 * day, () => void (repeated += 1));
  const cancel = systemClock.after(60 * day, () => void (cancelled += 1));
  vi.advanceTimersByTime(1);
  expect([once, repeated]).toEqual([0, 0]);
  vi.advanceTimersByTime(30 * day);
  cancel();
  vi.advanceTimersByTime(30 * day - 2);
  expect([once, repeated]).toEqual([0, 0]);
  vi.advanceTimersByTime(1);
  expect([once, repeated]).toEqual([1, 1]);
  vi.advanceTimersByTime(60 * day);
  expect([once, repeated]).toEqual([1, 2]);
  stop();
  vi.advanceTimersByTime(60 * day);
  expect([once, repeated, cancelled, vi.getTimerCount()]).toEqual([1, 2, 0, 0]);
});
