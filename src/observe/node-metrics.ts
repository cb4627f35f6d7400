import { Counter, Gauge, type Registry } from "prom-client";

/** What a node counts of the browsers that it watches and ends, and of the memory they share. */
export class NodeMetrics {
  readonly #saves: Counter;
  readonly #limits: Counter;
  readonly #standbyEnded: Counter;
  readonly #memoryLeft: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#saves = new Counter({
      name: "remuda_profile_saves_total",
      help: "Ends of sessions that were to save their profile",
      labelNames: ["outcome"],
      registers,
    });
    this.#limits = new Counter({
      name: "remuda_limit_retirements_total",
      help: "Browsers of this node retired for having more than they may",
      labelNames: ["limit"],
      registers,
    });
    this.#standbyEnded = new Counter({
      name: "remuda_standby_ended_total",
      help: "Browsers of this node that stood by and were ended since its memory was short",
      registers,
    });
    this.#memoryLeft = new Gauge({
      name: "remuda_memory_available_bytes",
      help: "Memory that is left on this node: of the machine's, or of its container's limit",
      registers,
    });
  }

  profileSaved(outcome: "saved" | "missing" | "broken" | "failed"): void {
    this.#saves.inc({ outcome });
  }
  limitPassed(limit: "memory_exceeded" | "storage_exceeded"): void {
    this.#limits.inc({ limit });
  }
  standbyEnded(browsers: number): void {
    this.#standbyEnded.inc(browsers);
  }
  memoryLeft(bytes: number): void {
    this.#memoryLeft.set(bytes);
  }
}
