import { expect, test } from "vitest";
import { ClockWatch } from "../../src/observe/clock-watch.js";
import { DrivenClock } from "../support/driven-clock.js";
import { makeLogBook } from "../support/http/http-server.js";

const [minuteMs, hourMs] = [60_000, 3_600_000];
const differs = "this machine's clock differs from Redis's";
const agrees = "this machine's clock agrees with Redis's again";

function watchOf(storeAheadMs: () => number, clock = new DrivenClock()) {
  const { log, lines } = makeLogBook();
  const storeNow = async (): Promise<number> => clock.now() + storeAheadMs();
  return { watch: new ClockWatch({ clock, log, storeNow }), clock, lines };
}

test.each([-hourMs, -31_000, 31_000, hourMs])(
  "a difference of %d ms is said once, and so is its end",
  async (ms) => {
    let aheadMs = -ms;
    const { watch, clock, lines } = watchOf(() => aheadMs);
    const stop = watch.start();
    await clock.advance(10 * minuteMs);
    expect(lines).toEqual([{ level: "warn", fields: { aheadMs: ms }, message: differs }]);
    aheadMs = 0;
    await clock.advance(10 * minuteMs);
    expect(lines.slice(1)).toEqual([{ level: "info", fields: { aheadMs: 0 }, message: agrees }]);
    stop();
    expect(clock.pending).toBe(0);
  },
);

test("clocks that agree within half a minute are not spoken of", async () => {
  const { watch, clock, lines } = watchOf(() => 29_000);
  const stop = watch.start();
  await clock.advance(10 * minuteMs);
  stop();
  expect(lines).toEqual([]);
});

test("an answer that takes long is taken for one of the middle of that time", async () => {
  const clock = new DrivenClock();
  const { log } = makeLogBook();
  const storeNow = async (): Promise<number> => {
    clock.stand(40_000);
    return clock.now() - 20_000;
  };
  expect(await new ClockWatch({ clock, log, storeNow }).aheadMs()).toBe(0);
});

test("where Redis does not answer nothing is said of clocks", async () => {
  const clock = new DrivenClock();
  const { log, lines } = makeLogBook();
  const watch = new ClockWatch({ clock, log, storeNow: () => Promise.reject(new Error("no Redis")) });
  const stop = watch.start();
  await clock.advance(minuteMs);
  stop();
  expect(lines.filter(({ level }) => level !== "debug")).toEqual([]);
  await expect(watch.aheadMs()).rejects.toThrow("no Redis");
});
