import { expect, test } from "vitest";
import { newBrowserId, onDemandPartition } from "../../src/base/ids.js";
import { ReaderSeats } from "../../src/telemetry/reader-seats.js";

test("so many read one browser, so many read at all, and a seat is given back once", () => {
  const seats = new ReaderSeats({ ofBrowser: 2, ofAll: 3 });
  const [one, other] = [newBrowserId(onDemandPartition), newBrowserId(onDemandPartition)];
  const leave = seats.take(one);
  expect(seats.take(one)).toBeDefined();
  expect(seats.take(one)).toBeUndefined();
  expect(seats.take(other)).toBeDefined();
  expect(seats.take(other)).toBeUndefined();
  leave?.();
  leave?.();
  expect(seats.take(other)).toBeDefined();
  expect(seats.take(one)).toBeUndefined();
});
