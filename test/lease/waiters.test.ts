import { expect, test } from "vitest";
import { newRequestId } from "../../src/base/ids.js";
import { Waiters } from "../../src/lease/waiters.js";
import { DrivenClock } from "../support/driven-clock.js";

const never = new AbortController().signal;

test("a wait that ends leaves no timer behind, however it ends", async () => {
  const clock = new DrivenClock();
  const waiters = new Waiters(clock);
  const leaves = new AbortController();
  const [told, late, left] = [newRequestId(), newRequestId(), newRequestId()];
  const [first, second, third] = [waiters.open(told), waiters.open(late), waiters.open(left)];
  const ends = [first.wait(50_000, never), second.wait(10, never), third.wait(50_000, leaves.signal)];
  expect(clock.pending).toBe(3);
  waiters.deliver(told, { kind: "deleted", waiter: told, connection: told });
  leaves.abort();
  await clock.advance(10);
  expect((await Promise.all(ends)).map(({ kind }) => kind)).toEqual(["message", "timeout", "gone"]);
  expect(clock.pending).toBe(0);
});

test("what waits before is counted: the limit runs from when the place was taken", async () => {
  const clock = new DrivenClock();
  const place = new Waiters(clock).open(newRequestId());
  await clock.advance(30);
  const end = place.wait(50, never);
  await clock.advance(20);
  expect(await end).toEqual({ kind: "timeout" });
});
