import { expect, test } from "vitest";
import { type DroppedMessages, MessageRates } from "../../../src/telemetry/monitor/rates.js";
import { DrivenClock } from "../../support/driven-clock.js";

test("what is lost and cannot be told is told with what is lost after it, at the end at the latest", async () => {
  const clock = new DrivenClock();
  const asked: object[] = [];
  let isFull = true;
  const told = (lost: DroppedMessages, isLast: boolean): boolean => {
    asked.push({ ...lost, isLast });
    return !isFull;
  };
  const rates = new MessageRates({ clock, told });
  const lose = (...methods: string[]): void => methods.forEach((method) => rates.lose(method));
  lose("a", "b");
  await clock.advance(1000);
  lose("b");
  isFull = false;
  await clock.advance(1000);
  lose("a");
  isFull = true;
  await clock.advance(1000);
  rates.close();
  expect(asked).toEqual([
    { count: 2, byMethod: { a: 1, b: 1 }, isLast: false },
    { count: 3, byMethod: { a: 1, b: 2 }, isLast: false },
    { count: 1, byMethod: { a: 1 }, isLast: false },
    { count: 1, byMethod: { a: 1 }, isLast: true },
  ]);
  expect(clock.pending).toBe(0);
});
