import { expect, test } from "vitest";
import { type NamespaceListener, SpareNamespaces } from "../../../src/egress/namespace/spare-namespaces.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { DrivenClock } from "../../support/driven-clock.js";

const listener = { close() {} } as NamespaceListener;

test("a wait for a namespace that does not come is refused, and a namespace that comes late goes to the next", async () => {
  const clock = new DrivenClock();
  let come = (_made: NamespaceListener): void => {};
  const spare = new SpareNamespaces({
    make: () => new Promise((resolve) => (come = resolve)),
    end: async () => {},
    waitMs: 5000,
    size: 0,
    clock,
    log: silentLog,
  });
  const first = spare.take();
  const told = expect(first).rejects.toThrow("no network namespace could be had within 5000 ms");
  await clock.advance(5000);
  await told;
  const second = spare.take();
  come(listener);
  expect(await second).toBe(listener);
  await spare.close();
});
