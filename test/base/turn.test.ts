import { expect, test } from "vitest";
import { Turns } from "../../src/base/turn.js";

test("what takes a browser's turn waits for the next round, each in its order, another browser's turn is its own", async () => {
  let now = 0;
  const clock = { monotonic: () => now };
  const turns = new Turns(clock);
  const [turn, its] = [turns.open(), turns.open()];
  turn.run(() => (now += 5));
  expect([turn.isOver, its.isOver]).toEqual([true, false]);
  const order: number[] = [];
  const done = new Promise<void>((resolve) => {
    for (const place of [1, 2, 3]) {
      turn.wait(() => turn.run(() => {
        now += 5;
        order.push(place);
        if (place === 3) resolve();
      }));
    }
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(order).toEqual([1]);
  await done;
  expect(order).toEqual([1, 2, 3]);
});

test("whoever has had a turn shares a round's room with all the others who have; who has just come does not wait for them", async () => {
  let now = 0;
  const turns = new Turns({ monotonic: () => now });
  const hogs = Array.from({ length: 50 }, () => turns.open());
  const served: number[] = [];
  for (const [at, hog] of hogs.entries()) {
    const again = (): void => hog.run(() => {
      now += 0.5;
      served.push(at);
      hog.wait(again);
    });
    again();
  }
  const newcomer = turns.open();
  let longest = 0;
  for (let rounds = 0; rounds < 100; rounds += 1) {
    const before = now;
    await new Promise((resolve) => setImmediate(resolve));
    longest = Math.max(longest, now - before);
    expect(newcomer.isOver).toBe(false);
  }
  // Two turns; the one that is under way when the room is used up ends.
  expect(longest).toBeLessThanOrEqual(1.5);
  const counts = hogs.map((_, at) => served.filter((each) => each === at).length);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
});
