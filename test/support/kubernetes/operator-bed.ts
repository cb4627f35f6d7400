import { vi } from "vitest";
import { TestCluster } from "./cluster.js";
import { startOperator } from "./operator.js";
import { TestPools } from "./pools.js";

/** A cluster and an API of Remuda's, with the operators that a test starts on them. */
export class OperatorBed {
  readonly #stops: (() => Promise<void>)[] = [];

  private constructor(
    readonly cluster: TestCluster,
    readonly pools: TestPools,
  ) {}

  static async open(): Promise<OperatorBed> {
    return new OperatorBed(await TestCluster.open(), await TestPools.open());
  }

  async operate(settings: object = {}): Promise<void> {
    const operator = await startOperator({
      cluster: this.cluster,
      apiUrl: this.pools.url,
      apiKey: "a-key-of-the-organization",
      settings: { period_seconds: 1, request_limit_seconds: 1, ...settings },
    });
    this.#stops.push(() => operator.stop());
  }

  statusOf(name: string): Readonly<Record<string, unknown>> | undefined {
    return this.cluster.resources.get(name)?.status;
  }

  /** What was asked of the API that begins so. */
  asked(begin: string): readonly string[] {
    return this.pools.asked.filter((each) => each.startsWith(begin));
  }

  /** Resolves when the operators have listed their resources some times more. */
  async rounds(count: number): Promise<void> {
    const lists = (): number =>
      this.cluster.asked.filter(({ path }) => path.endsWith("/browserpools")).length;
    const before = lists();
    await eventually(() => {
      if (lists() < before + count) throw new Error(`${lists() - before} of ${count} rounds`);
    });
  }

  async close(): Promise<void> {
    for (const stop of this.#stops.splice(0)) await stop();
    await Promise.all([this.cluster.close(), this.pools.close()]);
  }
}

export const eventually = (what: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(what, { timeout: 60_000, interval: 20 });
