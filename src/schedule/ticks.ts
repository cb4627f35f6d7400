import { Queue, Worker } from "bullmq";
import type { Clock, Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import { type Log, textOf } from "../base/log.js";
import { reconnectMs, type QueueOptions, stalled, type RunningWorker } from "./queues.js";

export interface Tick {
  readonly name: string;
  readonly periodMs: Millis;
  /** Leaves more room in Redis. Where that is full and takes no schedule every control runs it by itself. */
  readonly freesMemory?: boolean;
  run(): Promise<void>;
}

/** How long a control that stops waits for ticks that are running. */
const lastTickMs: Millis = 3000;

/**
 * Repeats at this control the ticks of its own share. A tick that takes longer than its period is not begun
 * twice. The result stops them, and resolves when none is running.
 */
export function repeatTicks(
  ticks: readonly Tick[],
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): () => Promise<void> {
  const running = new Map<Tick, Promise<void>>();
  const begin = (tick: Tick): Promise<void> =>
    tick
      .run()
      .catch((error: unknown) => log.warn({ tick: tick.name, error: textOf(error) }, "tick failed"))
      .finally(() => void running.delete(tick));
  const stops = ticks.map((tick) =>
    clock.every(tick.periodMs, () => void (running.has(tick) || running.set(tick, begin(tick)))),
  );
  return async () => {
    for (const stop of stops) stop();
    const last = { what: "the last ticks", limitMs: lastTickMs };
    await within(clock, last, Promise.all(running.values())).catch(() => {});
  };
}

/** When each tick last ran, as all controls see it. */
interface TickRecord {
  ran(name: string): Promise<void>;
  ageMs(name: string): Promise<Millis>;
}

const scheduleName = "schedule";
/** A tick older than this many periods has lost its chain, which is armed again. */
const patience = 3;
/** At least so often a chain is looked for. */
const longestWatchMs: Millis = 3_600_000;

/**
 * Repeats the schedules over all controls: each period one of them runs the tick. Ticks are idempotent, and
 * may overlap with those of other controls.
 */
export async function startTicks(
  options: QueueOptions,
  ticks: readonly Tick[],
  { clock, record }: { clock: Clock; record: TickRecord },
): Promise<RunningWorker> {
  const { log } = options;
  const queue = openSchedule(options);
  const run = makeRun(record);
  const worker = openWorker(options, ticks, run);
  await Promise.all(ticks.map((tick) => armTick(queue, tick)));
  const watches = ticks.map((tick) =>
    watch(tick, {
      clock,
      record,
      arm: () => rearm(queue, tick),
      run: () => run(tick),
      warn: (error) =>
        log.warn({ tick: tick.name, error: textOf(error) }, "schedule could not be looked after"),
    }),
  );
  return {
    async close() {
      for (const stop of watches) stop();
      await worker.close(true);
      await queue.close();
    },
  };
}

function openSchedule({ connection, prefix, log }: QueueOptions): Queue {
  const queue = new Queue(scheduleName, { connection, prefix, skipVersionCheck: true });
  queue.on("error", (error) => log.warn({ error: error.message }, "schedule queue failed"));
  return queue;
}

/**
 * Runs a tick and notes that it ran. One that waits, for a store of archives say, is not begun a second time:
 * otherwise it would fill all places of the worker.
 */
function makeRun(record: TickRecord): (tick: Tick) => Promise<void> {
  const running = new Set<Tick>();
  return async (tick) => {
    if (running.has(tick)) return;
    running.add(tick);
    try {
      await tick.run();
      await record.ran(tick.name);
    } finally {
      running.delete(tick);
    }
  };
}

/** Runs whichever tick is due. */
function openWorker(
  { connection, prefix, log }: QueueOptions,
  ticks: readonly Tick[],
  run: (tick: Tick) => Promise<void>,
): Worker {
  const byName = new Map(ticks.map((tick) => [tick.name, tick]));
  const worker = new Worker(
    scheduleName,
    async (job) => {
      const tick = byName.get(job.name);
      if (tick) await run(tick);
    },
    {
      connection,
      prefix,
      concurrency: ticks.length,
      skipVersionCheck: true,
      runRetryDelay: reconnectMs,
      removeOnComplete: { count: 0 },
      removeOnFail: { count: 0 },
      ...stalled,
    },
  );
  worker.on("error", (error) => log.warn({ error: error.message }, "schedule worker failed"));
  worker.on("failed", (job, error) => log.warn({ tick: job?.name, error: textOf(error) }, "tick failed"));
  return worker;
}

async function armTick(queue: Queue, { name, periodMs }: Tick): Promise<void> {
  const opts = { removeOnComplete: true, removeOnFail: true };
  await queue.upsertJobScheduler(name, { every: periodMs }, { name, opts });
}

async function rearm(queue: Queue, tick: Tick): Promise<void> {
  await queue.removeJobScheduler(tick.name);
  await armTick(queue, tick);
}

interface Watching {
  readonly clock: Clock;
  readonly record: TickRecord;
  arm(): Promise<void>;
  run(): Promise<void>;
  warn(error: unknown): void;
}

function watch(tick: Tick, { clock, record, arm, run, warn }: Watching): () => void {
  const lostAfterMs = patience * tick.periodMs;
  /** Whether it is lost still. */
  const armLost = async (): Promise<boolean> => {
    if ((await record.ageMs(tick.name)) <= lostAfterMs) return false;
    try {
      await arm();
      return false;
    } catch (error) {
      warn(error);
      return true;
    }
  };
  let looking: Promise<boolean> | undefined;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = armLost().finally(() => (looking = undefined));
    if ((await looking) && tick.freesMemory) await run();
  };
  return clock.every(Math.min(lostAfterMs, longestWatchMs), () => void look().catch(warn));
}
