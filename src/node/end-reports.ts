import { forEachConcurrently } from "../base/concurrently.js";
import { groupBy } from "../base/group-by.js";
import { type BrowserId, type ClaimId, type Partition, partitionOf } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { RetireReason } from "../pool/browser.js";
import type { LeaseUsage, NodeReports } from "../pool/ports/node-reports.js";

/** The limit that a browser has exceeded. */
export type ExceededLimit = Extract<RetireReason, "memory_exceeded" | "storage_exceeded">;

/** The end of a browser as its node decides it. */
export interface BrowserEnd {
  readonly why: Extract<
    RetireReason,
    | "crashed"
    | "unhealthy"
    | "not_clean"
    | "reset_failed"
    | "launch_failed"
    | "missing"
    | "node_lost"
    | ExceededLimit
  >;
  readonly text: string;
}

interface EndReportPorts {
  readonly reports: Pick<NodeReports, "end" | "gone">;
  readonly log: Log;
}

/** So many of one pool. */
const endsAtOnce = 8;

/**
 * Reports ends that this node has decided. A report that Redis did not take is kept until it does: otherwise
 * a record that names a browser which is no more would be handed out.
 */
export class EndReports {
  readonly #waiting = new Map<BrowserId, BrowserEnd>();
  readonly #retrying = new Map<Partition, Promise<unknown>>();

  constructor(private readonly ports: EndReportPorts) {}

  /** Whether the end of this browser is still to be reported. */
  isWaiting(id: BrowserId): boolean {
    return this.#waiting.has(id);
  }

  /** The claim under which the browser may be reported gone; undefined where there is none, or not yet. */
  async decide(id: BrowserId, end: BrowserEnd): Promise<ClaimId | undefined> {
    try {
      const reply = await this.ports.reports.end(id, end.why, end.text);
      this.#waiting.delete(id);
      return reply.kind === "unknown" ? undefined : reply.claim;
    } catch (error) {
      this.ports.log.warn({ browser: id, error: textOf(error) }, "end could not be reported");
      this.#waiting.set(id, end);
      return undefined;
    }
  }

  async gone(id: BrowserId, claim: ClaimId, used?: LeaseUsage): Promise<void> {
    await this.ports.reports.gone(id, claim, used).catch((error: unknown) => {
      this.ports.log.warn({ browser: id, error: textOf(error) }, "end left to the tick");
    });
  }

  /** Reports the end and the removal at once, for a browser of which nothing is left by now. */
  async endedBefore(id: BrowserId, end: BrowserEnd): Promise<void> {
    const claim = await this.decide(id, end);
    if (claim) await this.gone(id, claim);
  }

  /**
   * Reports again what waits. Redis may take nothing of one pool, in a Cluster, which keeps no other waiting;
   * whoever asks during a retry of a pool joins it.
   */
  async retry(): Promise<void> {
    const waiting = groupBy(this.#waiting, ([id]) => partitionOf(id));
    await Promise.all([...waiting].map(([partition, ends]) => this.#retryOnce(partition, ends)));
  }

  #retryOnce(partition: Partition, ends: readonly (readonly [BrowserId, BrowserEnd])[]): Promise<unknown> {
    const retrying =
      this.#retrying.get(partition) ??
      forEachConcurrently(ends, endsAtOnce, ([id, end]) => this.endedBefore(id, end)).finally(() =>
        this.#retrying.delete(partition),
      );
    this.#retrying.set(partition, retrying);
    return retrying;
  }
}
