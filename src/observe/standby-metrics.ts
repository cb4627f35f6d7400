import { Counter, Gauge, type Registry } from "prom-client";

/** How many browsers stand by, and how many are being launched for that, as the store has it. */
export interface StandbyGauge {
  readonly idle: number;
  readonly launching: number;
}

/** What a control shows and counts of browsers that stand by for sessions on demand. */
export class StandbyMetrics {
  readonly #browsers: Gauge;
  readonly #sessions: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#browsers = new Gauge({
      name: "remuda_standby_browsers",
      help: "Browsers that stand by for sessions on demand, by state",
      labelNames: ["state"],
      registers,
    });
    this.#sessions = new Counter({
      name: "remuda_standby_sessions_total",
      help: "Sessions on demand of which such browsers stand by: lent one, or launched as none was there",
      labelNames: ["outcome"],
      registers,
    });
  }

  asked(outcome: "taken" | "missed"): void {
    this.#sessions.inc({ outcome });
  }

  /** Undefined where the store cannot be read: a gauge is absent then rather than old. */
  show(found: StandbyGauge | undefined): void {
    this.#browsers.reset();
    for (const [state, count] of Object.entries(found ?? {})) this.#browsers.set({ state }, count);
  }
}
