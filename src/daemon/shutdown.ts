import { type Clock, type Millis, pause } from "../base/clock.js";
import type { Log } from "../base/log.js";
import type { Stops } from "../base/stops.js";

/** What whatever is started in this daemon is given. */
export interface ProcessContext {
  readonly log: Log;
  readonly clock: Clock;
  /** Aborted when the daemon begins to stop: start nothing new, answer who waits. */
  readonly stopping: AbortSignal;
  /** Aborted by a second signal: wait for nobody, kill instead of closing, but leave nothing behind. */
  readonly hurry: AbortSignal;
  /** Stops the daemon because of a fault it cannot go on with, such as the death of its private Redis. */
  readonly fail: (error: unknown) => void;
  /** Prints for whoever has started it; undefined where nobody reads that. */
  readonly say?: ((text: string) => void) | undefined;
}

/** A start that throws has stopped what it had started. */
export type Start = (lifetime: ProcessContext) => Promise<Stops>;

/** `process`, or what a test puts in its place. */
interface SignalSource {
  on(event: string, listener: (cause: unknown) => void): unknown;
  off(event: string, listener: (cause: unknown) => void): unknown;
}

interface RunOptions {
  readonly log: Log;
  readonly clock: Clock;
  readonly signals: SignalSource;
  /** `stopMs` runs from the first signal to the end, `hurriedMs` from the second. */
  readonly limits: { readonly stopMs: Millis; readonly hurriedMs: Millis };
  readonly say?: ProcessContext["say"];
}

// A terminal's Ctrl-C reaches us twice where npm passes it on as well (docs/deployment.md#stopping).
const sameSignalMs = 1000;
const signalNames = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const faultNames = ["uncaughtException", "unhandledRejection"] as const;

/** Turns signals and faults into one request to stop, and a later second signal into hurry. */
class Ending {
  readonly #stopping = new AbortController();
  readonly #hurry = new AbortController();
  readonly stopping = this.#stopping.signal;
  readonly hurry = this.#hurry.signal;
  #askedAt: Millis | undefined;
  hasFailed = false;

  constructor(private readonly around: RunOptions) {}

  readonly ask = (signal: unknown): void => {
    const now = this.around.clock.monotonic();
    if (this.#askedAt === undefined) {
      this.around.log.info({ signal }, "stop was asked for");
      this.#begin(now);
    } else if (now - this.#askedAt > sameSignalMs && !this.hurry.aborted) {
      this.around.log.warn({ signal }, "stop was hurried by a second signal");
      this.#hurry.abort();
    }
  };

  readonly fail = (error: unknown): void => {
    this.around.log.error({ error }, "daemon failed");
    this.hasFailed = true;
    this.#begin(this.around.clock.monotonic());
  };

  hurryUp(): void {
    this.#hurry.abort();
  }

  #begin(now: Millis): void {
    this.#askedAt ??= now;
    this.#stopping.abort();
  }
}

const abortOf = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

/** Settles when the time to stop is up; one that takes too long is hurried first. */
async function timeUp(ending: Ending, { clock, limits }: RunOptions): Promise<"late"> {
  await abortOf(ending.stopping);
  await pause(clock, limits.stopMs, ending.hurry);
  ending.hurryUp();
  await pause(clock, limits.hurriedMs);
  return "late";
}

/** Undefined where the stop was asked for before the start was complete, and has ended the start. */
async function startUnlessStopped(
  start: Start,
  ending: Ending,
  { log, clock, say }: RunOptions,
): Promise<Stops | undefined> {
  try {
    const { stopping, hurry, fail } = ending;
    return await start({ log, clock, stopping, hurry, fail, say });
  } catch (error) {
    if (!ending.stopping.aborted) throw error;
    log.warn({ error }, "start was interrupted");
    return undefined;
  }
}

async function startAndStop(start: Start, ending: Ending, around: RunOptions): Promise<void> {
  const stops = await startUnlessStopped(start, ending, around);
  await abortOf(ending.stopping);
  await stops?.run();
}

/**
 * Runs a role until a signal or a fault ends it, and resolves with the exit code: 0 where it ended cleanly as
 * asked, else 1. Whatever hangs, it resolves within the limits; what is then left ends with the process.
 */
export async function runDaemon(start: Start, around: RunOptions): Promise<0 | 1> {
  const { signals, log } = around;
  const ending = new Ending(around);
  for (const name of signalNames) signals.on(name, ending.ask);
  for (const name of faultNames) signals.on(name, ending.fail);
  try {
    const how = await Promise.race([startAndStop(start, ending, around), timeUp(ending, around)]);
    if (how === "late") log.error({}, "stop took longer than its limit");
    else log.info({}, "daemon stopped");
    return how === "late" || ending.hasFailed ? 1 : 0;
  } catch (error) {
    log.error({ error }, "daemon could not start or stop");
    return 1;
  } finally {
    for (const name of signalNames) signals.off(name, ending.ask);
    for (const name of faultNames) signals.off(name, ending.fail);
  }
}
