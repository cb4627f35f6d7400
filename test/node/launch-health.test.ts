import { expect, test } from "vitest";
import { LaunchHealth } from "../../src/node/launch-health.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { DrivenClock } from "../support/driven-clock.js";

function healthOn(clock: DrivenClock) {
  const told: (number | "wake")[] = [];
  const health = new LaunchHealth({
    clock,
    log: silentLog,
    backoff: { initialMs: 1000, maxMs: 3000 },
    changed: () => {},
    rest: async (ms) => void told.push(ms),
    wake: async () => void told.push("wake"),
  });
  return { health, told };
}

test("launches that were begun together fail once; each later failure asks for a longer rest, up to a maximum", async () => {
  const clock = new DrivenClock();
  const { health, told } = healthOn(clock);
  const begunAt = clock.monotonic();
  await clock.advance(10);
  for (let count = 0; count < 5; count += 1) health.failed(begunAt, "no display");
  expect(told).toEqual([1000]);
  for (let count = 0; count < 3; count += 1) {
    await clock.advance(10);
    health.failed(clock.monotonic(), "no display");
  }
  expect(told).toEqual([1000, 2000, 3000, 3000]);
  expect(health.failing).toEqual({ failures: 4, error: "no display" });
});

test("a launch that succeeds makes the node well at once, and says so where it was not", async () => {
  const clock = new DrivenClock();
  const { health, told } = healthOn(clock);
  health.launched();
  expect(told).toEqual([]);
  health.failed(clock.monotonic(), "no display");
  health.launched();
  expect(told).toEqual([1000, "wake"]);
  expect(health.failing).toBeUndefined();
});
