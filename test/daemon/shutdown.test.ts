import { EventEmitter, once } from "node:events";
import { beforeEach, expect, test } from "vitest";
import type { Log } from "../../src/base/log.js";
import { Stops } from "../../src/base/stops.js";
import { type ProcessContext, runDaemon, type Start } from "../../src/daemon/shutdown.js";
import { DrivenClock } from "../support/driven-clock.js";

let clock: DrivenClock;
let signals: EventEmitter;
let said: string[];
beforeEach(() => {
  clock = new DrivenClock();
  signals = new EventEmitter();
  said = [];
});

const say = (_: object, message: string): void => void said.push(message);
const log: Log = { debug: say, info: say, warn: say, error: say, child: () => log };

/** Runs a role whose stop is the one given; `ended` is the exit code once there is one. */
function run(
  stop: (lifetime: ProcessContext) => Promise<unknown> | unknown,
  start: Start = async (lifetime) => {
    const stops = new Stops(clock, 1_000_000);
    stops.add("the only part", () => stop(lifetime));
    return stops;
  },
) {
  const state: { ended?: number } = {};
  const done = runDaemon(start, { log, clock, signals, limits: { stopMs: 60_000, hurriedMs: 5000 } });
  void done.then((code) => (state.ended = code));
  return state;
}

const never = (): Promise<never> => new Promise(() => {});
const untilHurry = ({ hurry }: ProcessContext): Promise<void> =>
  new Promise((resolve) => hurry.addEventListener("abort", () => resolve()));

test("it runs until a signal, then stops once and ends with 0", async () => {
  let stopped = 0;
  const daemon = run(() => (stopped += 1));
  await clock.advance(100_000);
  expect(daemon.ended).toBeUndefined();
  signals.emit("SIGTERM", "SIGTERM");
  await clock.advance(0);
  expect([daemon.ended, stopped]).toEqual([0, 1]);
});

test("a signal within a second of the first is the same one", async () => {
  const daemon = run(untilHurry);
  signals.emit("SIGINT", "SIGINT");
  await clock.advance(1000);
  signals.emit("SIGINT", "SIGINT");
  await clock.advance(10_000);
  expect(daemon.ended).toBeUndefined();
});

test("a later second signal hurries the stop, which still clears up and ends with 0", async () => {
  const daemon = run(untilHurry);
  signals.emit("SIGINT", "SIGINT");
  await clock.advance(1001);
  signals.emit("SIGTERM", "SIGTERM");
  await clock.advance(0);
  expect(daemon.ended).toBe(0);
});

test("a stop that takes longer than its limit is hurried by itself", async () => {
  const daemon = run(untilHurry);
  signals.emit("SIGTERM", "SIGTERM");
  await clock.advance(59_999);
  expect(daemon.ended).toBeUndefined();
  await clock.advance(1);
  expect(daemon.ended).toBe(0);
});

test("whatever hangs, it ends within its limits, with 1", async () => {
  const daemon = run(never);
  signals.emit("SIGTERM", "SIGTERM");
  await clock.advance(64_999);
  expect(daemon.ended).toBeUndefined();
  await clock.advance(1);
  expect(daemon.ended).toBe(1);
});

test("a hurried stop that hangs ends within the shorter limit", async () => {
  const daemon = run(never);
  signals.emit("SIGTERM", "SIGTERM");
  await clock.advance(2000);
  signals.emit("SIGTERM", "SIGTERM");
  await clock.advance(5000);
  expect(daemon.ended).toBe(1);
});

test.each(["uncaughtException", "unhandledRejection"])(
  "an %s is logged, stops it cleanly and ends with 1",
  async (event) => {
    let stopped = 0;
    const daemon = run(() => (stopped += 1));
    await clock.advance(0);
    signals.emit(event, new Error("oh"));
    await clock.advance(0);
    expect([daemon.ended, stopped]).toEqual([1, 1]);
    expect(said).toContain("daemon failed");
  },
);

test("a part that cannot go on stops the whole", async () => {
  let fail: ProcessContext["fail"] = () => {};
  const daemon = run(
    () => {},
    async (lifetime) => {
      fail = lifetime.fail;
      return new Stops(clock, 1000);
    },
  );
  await clock.advance(0);
  fail(new Error("redis-server ended"));
  await clock.advance(0);
  expect(daemon.ended).toBe(1);
});

test("a start that fails ends with 1", async () => {
  const daemon = run(
    () => {},
    () => Promise.reject(new Error("port in use")),
  );
  await clock.advance(0);
  expect(daemon.ended).toBe(1);
});

test("a signal during the start reaches it; a start that gives up then ends with 0", async () => {
  const daemon = run(
    () => {},
    ({ stopping }) =>
      new Promise((_, reject) => stopping.addEventListener("abort", () => reject(new Error("interrupted")))),
  );
  signals.emit("SIGINT", "SIGINT");
  await clock.advance(0);
  expect(daemon.ended).toBe(0);
});

test("a start that completes after the signal is stopped", async () => {
  let stopped = 0;
  const daemon = run(
    () => {},
    async ({ stopping }) => {
      await new Promise((resolve) => stopping.addEventListener("abort", resolve));
      const stops = new Stops(clock, 1000);
      stops.add("late", () => (stopped += 1));
      return stops;
    },
  );
  signals.emit("SIGINT", "SIGINT");
  await clock.advance(0);
  expect([daemon.ended, stopped]).toEqual([0, 1]);
});

test("a stop that fails ends with 1", async () => {
  const daemon = run(() => Promise.reject(new Error("stuck")));
  signals.emit("SIGINT", "SIGINT");
  await clock.advance(0);
  expect(daemon.ended).toBe(1);
});

test("nothing listens to the process once it has ended", async () => {
  run(() => {});
  signals.emit("SIGINT", "SIGINT");
  await clock.advance(0);
  expect(signals.eventNames()).toEqual([]);
});

test("what was started after a stop is stopped by the next, and what had failed in it once more", async () => {
  const stops = new Stops(clock, 1000);
  const stopped: string[] = [];
  let fails = true;
  stops.add("failing", () => {
    if (fails) throw new Error("not yet");
    stopped.push("failing");
  });
  await expect(stops.run()).rejects.toThrow("failing did not stop");
  stops.add("later", () => stopped.push("later"));
  await expect(stops.run()).rejects.toThrow("failing did not stop");
  expect(stopped).toEqual([]);
  fails = false;
  await stops.runAgain();
  await stops.runAgain();
  expect(stopped).toEqual(["later", "failing"]);
});

test("a stop that fails while another has failed in the same run already is told to whoever waits", async () => {
  const stops = new Stops(clock, 1000);
  const gate = new EventEmitter();
  let [tries, begun] = [0, 0];
  stops.add("cgroup", async () => {
    begun += 1;
    if (begun === 1) await once(gate, "open");
    throw new Error("busy");
  });
  stops.add("processes", () => {
    if ((tries += 1) === 1) throw new Error("alive");
  });
  const first = expect(stops.runAgain()).rejects.toThrow("cgroup did not stop");
  await expect.poll(() => begun).toBe(1);
  const second = expect(stops.runAgain()).rejects.toThrow("cgroup did not stop");
  gate.emit("open");
  await Promise.all([first, second]);
  expect([tries, begun]).toEqual([2, 2]);
});
