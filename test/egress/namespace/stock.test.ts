import { expect, test } from "vitest";
import { type NamespaceListener, NamespaceStock } from "../../../src/egress/namespace/stock.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { DrivenClock } from "../../support/driven-clock.js";

const listener = { close() {} } as NamespaceListener;

test("a wait for a namespace that does not come is refused, and a namespace that comes late goes to the next", async () => {
  const clock = new DrivenClock();
  let come = (_made: NamespaceListener): void => {};
  const stock = new NamespaceStock({
    make: () => new Promise((resolve) => (come = resolve)),
    end: async () => {},
    waitMs: 5000,
    size: 0,
    clock,
    log: silentLog,
  });
  const first = stock.take();
  const told = expect(first).rejects.toThrow("no network namespace could be had within 5000 ms");
  await clock.advance(5000);
  await told;
  const second = stock.take();
  come(listener);
  expect(await second).toBe(listener);
  await stock.close();
});
