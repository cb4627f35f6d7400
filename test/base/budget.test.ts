import { expect, test } from "vitest";
import { newBrowserId, onDemandPartition } from "../../src/base/ids.js";
import { type Account, Budget } from "../../src/base/budget.js";

const [one, other] = [newBrowserId(onDemandPartition), newBrowserId(onDemandPartition)];

function open(limits: { browserBytes: number; daemonBytes: number }): {
  budget: Budget;
  cut: string[];
  account(name: string, browser?: typeof one): Account;
} {
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
