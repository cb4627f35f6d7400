import { expect, test } from "vitest";
import { type ControlId, newControlId, newPoolId, type Partition, partitionOf } from "../../src/base/ids.js";
import { tickerOf, TickShare } from "../../src/schedule/tick-share.js";
import { repeatTicks } from "../../src/schedule/ticks.js";
import { silentLog } from "../support/browser/chromium-host.js";
import { DrivenClock } from "../support/driven-clock.js";

const controls = Array.from({ length: 4 }, () => newControlId());
const partitions = Array.from({ length: 2000 }, () => partitionOf(newPoolId()));

test("partitions are spread evenly over the controls, in whatever order they are told", () => {
  const counts = new Map<ControlId | undefined, number>();
  for (const partition of partitions) {
    const ticker = tickerOf(partition, controls);
    expect(tickerOf(partition, controls.toReversed())).toBe(ticker);
    counts.set(ticker, (counts.get(ticker) ?? 0) + 1);
  }
  expect([...counts.keys()].toSorted()).toEqual(controls.toSorted());
  for (const count of counts.values()) expect(Math.abs(count - 500)).toBeLessThan(120);
});

test("a control that goes leaves those of the others where they are", () => {
  const [gone, ...others] = controls;
  for (const partition of partitions) {
    const before = tickerOf(partition, controls);
    const after = tickerOf(partition, others);
    if (before === gone) expect(others).toContain(after);
    else expect(after).toBe(before);
  }
});

test("a control that stood still holds nothing until it has said again that it lives", async () => {
  const clock = new DrivenClock();
  const [control] = controls as [ControlId];
  const beats = { beat: async () => [control], leave: async () => {} };
  const share = new TickShare({ control, beats, clock, lostAfterMs: 2500 });
  const [partition] = partitions as [Partition];
  expect(share.holds(partition)).toBe(false);
  await share.beat();
  expect(share.holds(partition)).toBe(true);
  clock.stand(2499);
  expect(share.holds(partition)).toBe(true);
  clock.stand(1);
  expect(share.holds(partition)).toBe(false);
  await share.beat();
  expect(share.holds(partition)).toBe(true);
  await share.leave();
  expect(share.holds(partition)).toBe(false);
});

test("who stops ticks is told when the one that was running has ended", async () => {
  const clock = new DrivenClock();
  const seen: string[] = [];
  let end = (): void => {};
  const run = async (): Promise<void> => {
    seen.push("begun");
    await new Promise<void>((resolve) => (end = resolve));
    seen.push("ended");
  };
  const stop = repeatTicks([{ name: "fill", periodMs: 1000, run }], { clock, log: silentLog });
  await clock.advance(2500);
  const stopped = stop().then(() => seen.push("stopped"));
  end();
  await stopped;
  await clock.advance(2500);
  expect(seen).toEqual(["begun", "ended", "stopped"]);
});
