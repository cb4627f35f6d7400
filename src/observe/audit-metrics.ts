import { Counter, type Registry } from "prom-client";

/** What a control counts of the audit log. */
export class AuditMetrics {
  readonly #recorded: Counter;
  readonly #folded: Counter;
  readonly #lost: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#recorded = new Counter({
      name: "remuda_audit_entries_total",
      help: "Entries put into the audit log",
      registers,
    });
    this.#folded = new Counter({
      name: "remuda_audit_requests_folded_total",
      help: "Requests that were not let in and have an entry in the audit log together with others",
      registers,
    });
    this.#lost = new Counter({
      name: "remuda_audit_entries_lost_total",
      help: "Requests that have left no entry in the audit log",
      labelNames: ["reason"],
      registers,
    });
  }

  recorded(count: number): void {
    this.#recorded.inc(count);
  }
  folded(count: number): void {
    this.#folded.inc(count);
  }
  lost(reason: string, count: number): void {
    this.#lost.inc({ reason }, count);
  }
}
