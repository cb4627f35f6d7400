import { expect, test } from "vitest";
import { FairTurns } from "../../src/base/fair-turns.js";

const mebibyte = 1024 * 1024;

/** A clock that is moved by hand. */
function makeClock(): {
  now: number;
  monotonic(): number;
  after(delayMs: number, task: () => void): () => void;
  advance(ms: number): void;
} {
  const timers = new Set<{ readonly at: number; readonly task: () => void }>();
  return {
    now: 0,
    monotonic() {
      return this.now;
    },
    after(delayMs, task) {
      const timer = { at: this.now + delayMs, task };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(ms) {
      this.now += ms;
      for (const timer of timers) if (timer.at <= this.now && timers.delete(timer)) timer.task();
    },
  };
}

test("whoever uses it all the time has an eighth of it after the first 300 ms, and the whole of it again after a pause", async () => {
  const clock = makeClock();
  const turns = new FairTurns(clock);
  const [hog, other] = [turns.open(), turns.open()];
  let worked = 0;
  const again = (): void =>
    hog.run(() => {
      clock.now += 1;
      worked += 1;
      hog.wait(again);
    });
  again();
  const runFor = async (ms: number): Promise<number> => {
    const [before, endsAt] = [worked, clock.now + ms];
    while (clock.now < endsAt) {
      const at = clock.now;
      await new Promise((resolve) => setImmediate(resolve));
      if (clock.now === at) clock.advance(1);
      expect(other.isOver).toBe(false);
    }
    return worked - before;
  };
  expect(await runFor(300)).toBeGreaterThanOrEqual(298);
  await runFor(100);
  const sustained = await runFor(1000);
  expect(sustained).toBeGreaterThan(90);
  expect(sustained).toBeLessThanOrEqual(130);
});

test("what is done elsewhere counts, and no single piece of work is held against anybody for longer than two seconds", async () => {
  const clock = makeClock();
  const turns = new FairTurns(clock);
  const turn = turns.open();
  turn.spend(60_000);
  expect(turn.isOver).toBe(true);
  expect(turn.readyInMs).toBe(2000);
  let served = false;
  turn.wait(() => (served = true));
  clock.advance(1999);
  await new Promise((resolve) => setImmediate(resolve));
  expect(served).toBe(false);
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(served).toBe(true);
});

test("what takes a browser's turn waits for the next round, each in its order, another browser's turn is its own", async () => {
  const clock = makeClock();
  const turns = new FairTurns(clock);
  const [turn, its] = [turns.open(), turns.open()];
  turn.run(() => (clock.now += 5));
  expect([turn.isOver, its.isOver]).toEqual([true, false]);
  const order: number[] = [];
  const done = new Promise<void>((resolve) => {
    for (const place of [1, 2, 3]) {
      turn.wait(() =>
        turn.run(() => {
          clock.now += 5;
          order.push(place);
          if (place === 3) resolve();
        }),
      );
    }
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(order).toEqual([1]);
  await done;
  expect(order).toEqual([1, 2, 3]);
});

test("whoever has had a turn shares a round's room with all the others who have; who has just come does not wait for them", async () => {
  const clock = makeClock();
  const turns = new FairTurns(clock);
  const hogs = Array.from({ length: 50 }, () => turns.open());
  const served: number[] = [];
  for (const [at, hog] of hogs.entries()) {
    const again = (): void =>
      hog.run(() => {
        clock.now += 0.5;
        served.push(at);
        hog.wait(again);
      });
    again();
  }
  const newcomer = turns.open();
  let longest = 0;
  for (let rounds = 0; rounds < 100; rounds += 1) {
    const before = clock.now;
    await new Promise((resolve) => setImmediate(resolve));
    longest = Math.max(longest, clock.now - before);
    expect(newcomer.isOver).toBe(false);
  }
  // Two turns; the one that is under way when the room is used up ends.
  expect(longest).toBeLessThanOrEqual(1.5);
  const counts = hogs.map((_, at) => served.filter((each) => each === at).length);
  expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
});

test("whoever has little to wait for does not wait for the end of another's long debt", async () => {
  const clock = makeClock();
  const turns = new FairTurns(clock);
  const [debtor, other] = [turns.open(), turns.open()];
  const round = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  debtor.spend(60_000);
  debtor.wait(() => {});
  await round();
  other.spend(101);
  let isServed = false;
  other.wait(() => (isServed = true));
  await round();
  clock.advance(4);
  await round();
  expect(isServed).toBe(true);
});

test("whoever reads much waits until it is no more than so many bytes in a second, however little time it took", () => {
  const clock = makeClock();
  const turn = new FairTurns(clock).open({ bytesPerSecond: mebibyte });
  turn.spend(0, 32 * mebibyte);
  expect(turn.readyInMs).toBe(0);
  turn.spend(0, mebibyte / 2);
  expect(turn.isOver).toBe(true);
  expect(turn.readyInMs).toBe(500);
  clock.advance(500);
  expect(turn.readyInMs).toBe(0);
});
