import { expect, test } from "vitest";
import { newBrowserId, onDemandHome } from "../../src/base/ids.js";
import { type Account, Budget } from "../../src/node/budget.js";
import { Turn } from "../../src/node/turn.js";

const [one, other] = [newBrowserId(onDemandHome), newBrowserId(onDemandHome)];

function open(limits: { browserBytes: number; daemonBytes: number }): { budget: Budget; cut: string[]; account(name: string, browser?: typeof one): Account } {
  const budget = new Budget(limits);
  const cut: string[] = [];
  return { budget, cut, account: (name, browser = one) => budget.open(browser, () => void cut.push(name)) };
}

test("the client that holds most is cut where its browser holds too much; another browser's is not", () => {
  const { budget, cut, account } = open({ browserBytes: 100, daemonBytes: 1000 });
  const [small, large, others] = [account("small"), account("large"), account("other", other)];
  others.set(90);
  large.set(70);
  small.set(20);
  expect(cut).toEqual([]);
  small.set(31);
  expect(cut).toEqual(["large"]);
  expect(budget.heldBytes).toBe(121);
});

test("where all hold too much, the client with most of the browser with most is cut", () => {
  const { cut, account } = open({ browserBytes: 100, daemonBytes: 150 });
  const [first, second, lonely] = [account("first"), account("second"), account("lonely", other)];
  lonely.set(60);
  first.set(40);
  second.set(45);
  expect(cut).toEqual([]);
  lonely.set(70);
  expect(cut).toEqual(["second"]);
});

test("where the one that asks is to go, what others have is left to them", () => {
  const budget = new Budget({ browserBytes: 100, daemonBytes: 150 }, "asking");
  const cut: string[] = [];
  const account = (name: string, browser = one): Account => budget.open(browser, () => void cut.push(name));
  const [first, second, lonely] = [account("first"), account("second"), account("lonely", other)];
  first.set(80);
  second.set(30);
  expect(cut).toEqual(["second"]);
  lonely.set(75);
  expect(cut).toEqual(["second", "first"]);
});

test("what is let go is free again, closed or not", () => {
  const { budget, cut, account } = open({ browserBytes: 100, daemonBytes: 100 });
  for (let turn = 0; turn < 50; turn += 1) {
    const each = account(String(turn));
    each.set(90);
    if (turn % 2 === 0) each.set(0);
    else each.close();
  }
  expect([budget.heldBytes, cut]).toEqual([0, []]);
});

test("what takes a browser's turn waits for the next round, each in its order, another browser's turn is its own", async () => {
  let now = 0;
  const clock = { monotonic: () => now };
  const [turn, its] = [new Turn(clock), new Turn(clock)];
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
