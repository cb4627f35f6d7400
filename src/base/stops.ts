import type { Clock, Millis } from "./clock.js";
import { within } from "./deadline.js";

interface Stop {
  readonly name: string;
  readonly run: () => Promise<unknown> | unknown;
}

/**
 * What was started, to be stopped newest first: once, each within a limit, past failures, all failures
 * reported. A second `run` waits for the first.
 */
export class Stops {
  readonly #stops: Stop[] = [];
  #failed: Stop[] = [];
  #running: Promise<void> | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly limitMs: Millis,
  ) {}

  add(name: string, run: Stop["run"]): void {
    this.#stops.push({ name, run });
  }

  run(): Promise<void> {
    this.#running ??= this.#runAll(this.#stops.splice(0).toReversed());
    return this.#running;
  }

  /**
   * Runs the stops like `run`; where an earlier run has failed, what failed in it is run once more, and where
   * something was started since, that is stopped too.
   */
  runAgain(): Promise<void> {
    if (this.#stops.length + this.#failed.length > 0) {
      const before = this.#running?.catch(() => {}) ?? Promise.resolve();
      // What fails in the run before is known once that is over.
      this.#running = before.then(() =>
        this.#runAll([...this.#stops.splice(0).toReversed(), ...this.#failed.splice(0)]),
      );
    }
    return this.run();
  }

  async #runAll(stops: readonly Stop[]): Promise<void> {
    const failures: Error[] = [];
    for (const stop of stops) {
      try {
        await within(
          this.clock,
          { what: `stopping ${stop.name}`, limitMs: this.limitMs },
          Promise.resolve(stop.run()),
        );
      } catch (error) {
        failures.push(new Error(`${stop.name} did not stop`, { cause: error }));
        this.#failed.push(stop);
      }
    }
    if (failures.length > 0)
      throw new AggregateError(failures, failures.map((failure) => failure.message).join("; "));
  }
}

/**
 * Opens something whole or not at all: where `open` throws, what it has added to the stops by then is stopped
 * again. Told is why it could not be opened.
 */
export async function openWhole<Opened>(stops: Stops, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open();
  } catch (error) {
    await stops.run().catch(() => {});
    throw error;
  }
}
