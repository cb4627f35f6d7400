import { type BrowserId, type Partition, partitionOf } from "../../base/ids.js";
import type { Meter } from "../../egress/parts.js";
import type { DeniedBy } from "../../egress/rules.js";

type RequestOutcome = Parameters<Meter["request"]>[1];
type Direction = Parameters<Meter["carried"]>[1];

/** What counts under the labels of pools. */
export interface PoolTrafficMeter {
  asked(pool: string, outcome: "direct" | "upstream" | "denied", count: number): void;
  denied(pool: string, reason: DeniedBy, count: number): void;
  passed(pool: string, direction: Direction, bytes: number): void;
}

const isAllowed = (outcome: RequestOutcome): outcome is "direct" | "upstream" =>
  outcome === "direct" || outcome === "upstream";

class KindCounts<Kind extends string> {
  readonly #counts = new Map<Kind, number>();

  add(kind: Kind, count: number): void {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + count);
  }

  [Symbol.iterator](): IterableIterator<[Kind, number]> {
    return this.#counts.entries();
  }
}

interface Share {
  readonly outcomes: KindCounts<RequestOutcome>;
  readonly bytes: KindCounts<Direction>;
}

/**
 * Counts requests and bytes by pool. They are added up here and reported now and then, so that a request
 * waits for no label and costs no promise.
 */
export class TrafficCounters implements Meter {
  #shares = new Map<Partition, Share>();

  request(browser: BrowserId, outcome: RequestOutcome): void {
    this.#of(partitionOf(browser)).outcomes.add(outcome, 1);
  }

  carried(browser: BrowserId, direction: Direction, bytes: number): void {
    this.#of(partitionOf(browser)).bytes.add(direction, bytes);
  }

  /** Reports what came since the last time. What has no label now is reported the next time. Never throws. */
  async report(labelOf: (partition: Partition) => Promise<string>, meter: PoolTrafficMeter): Promise<void> {
    const shares = this.#shares;
    this.#shares = new Map();
    await Promise.all(
      [...shares].map(async ([partition, share]) => {
        const pool = await labelOf(partition).catch(() => undefined);
        if (pool === undefined) this.#giveBack(partition, share);
        else reportShare(meter, pool, share);
      }),
    );
  }

  #giveBack(partition: Partition, { outcomes, bytes }: Share): void {
    const share = this.#of(partition);
    for (const [outcome, count] of outcomes) share.outcomes.add(outcome, count);
    for (const [direction, count] of bytes) share.bytes.add(direction, count);
  }

  #of(partition: Partition): Share {
    const share = this.#shares.get(partition) ?? {
      outcomes: new KindCounts<RequestOutcome>(),
      bytes: new KindCounts<Direction>(),
    };
    this.#shares.set(partition, share);
    return share;
  }
}

function reportShare(meter: PoolTrafficMeter, pool: string, { outcomes, bytes }: Share): void {
  for (const [outcome, count] of outcomes) {
    meter.asked(pool, isAllowed(outcome) ? outcome : "denied", count);
    if (!isAllowed(outcome)) meter.denied(pool, outcome, count);
  }
  for (const [direction, count] of bytes) meter.passed(pool, direction, count);
}
