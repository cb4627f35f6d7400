import type { Clock, Millis } from "./clock.js";
import { within } from "./deadline.js";

interface Stop {
  readonly name: string;
  readonly run: () => Promise<unknown> | unknown;
}

/**
 * What was started, to be stopped newest first: once, each within a limit, past failures, all failures reported.
 * A second `run` waits for the first.
 */
export class Stops {
  readonly #stops: Stop[] = [];
  #running: Promise<void> | undefined;

  constructor(private readonly clock: Clock, private readonly limitMs: Millis) {}

  add(name: string, run: Stop["run"]): void {
    this.#stops.push({ name, run });
  }

  run(): Promise<void> {
    this.#running ??= this.#runAll();
    return this.#running;
  }

  async #runAll(): Promise<void> {
    const failures: Error[] = [];
    for (const stop of this.#stops.toReversed()) {
      try {
        await within(this.clock, { what: `stopping ${stop.name}`, limitMs: this.limitMs }, Promise.resolve(stop.run()));
      } catch (error) {
        failures.push(new Error(`${stop.name} did not stop`, { cause: error }));
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, failures.map((failure) => failure.message).join("; "));
  }
}
