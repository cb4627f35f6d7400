import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { abortWith } from "../../src/base/deadline.js";

test("aborts with the first of the signals, for its reason", () => {
  const [over, first, second] = [new AbortController(), new AbortController(), new AbortController()];
  abortWith(over, [first.signal, second.signal]);
  second.abort("the second");
  first.abort("the first");
  expect(over.signal.reason).toBe("the second");
});

test("aborts at once with a signal that has aborted before", () => {
  const over = new AbortController();
  abortWith(over, [AbortSignal.abort("before")]);
  expect(over.signal.reason).toBe("before");
});

test("nothing stays with a signal that lives on, and it aborts nothing any more", () => {
  const [over, living] = [new AbortController(), new AbortController()];
  const unfollow = abortWith(over, [living.signal]);
  expect(getEventListeners(living.signal, "abort")).toHaveLength(1);
  unfollow();
  expect(getEventListeners(living.signal, "abort")).toEqual([]);
  living.abort();
  expect(over.signal.aborted).toBe(false);
});
