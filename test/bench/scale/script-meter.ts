import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import type { ScriptStore } from "../../../src/store/redis/redis.js";

/** What the runs of one script took of Redis's processor, as far as nothing else ran beside them. */
export interface MeteredScript {
  readonly name: string;
  readonly times: number;
  readonly medianMs: number;
  readonly longestMs: number;
  /** The runs that took longer than any may. */
  readonly over: number;
  /** The most commands in one of the first runs. */
  readonly commands: number;
}

/** What no script is to take. */
export const mostMs = 5;
const countedRuns = 40;

/**
 * Measures each call of a script by the processor time of Redis's main thread, which other work on the
 * machine does not lengthen, as it does all that a clock tells.
 */
export class ScriptMeter {
  readonly #runs = new Map<string, { readonly ms: number; readonly commands: number }[]>();
  #begun = 0;
  #open = 0;

  private constructor(
    private readonly redis: Redis,
    private readonly schedstat: string,
  ) {}

  static async on(store: ScriptStore, redis: Redis): Promise<ScriptMeter> {
    const pid = /^process_id:(\d+)/m.exec(await redis.info("server"))?.[1] ?? "";
    // What Redis does at times beside commands (expiry, rehashing) comes in small pieces.
    await redis.config("SET", "activerehashing", "no", "hz", "500");
    const meter = new ScriptMeter(redis, `/proc/${pid}/task/${pid}/schedstat`);
    const call = store.call.bind(store);
    store.call = ((...asked: Parameters<typeof call>) =>
      meter.#measure(asked[0], () => call(...asked))) as never;
    return meter;
  }

  /** What has run since this was asked last. */
  take(): readonly MeteredScript[] {
    const taken = [...this.#runs].map(([name, runs]) => {
      const sorted = runs.map(({ ms }) => ms).toSorted((one, other) => one - other);
      return {
        name,
        times: sorted.length,
        medianMs: sorted[Math.floor(sorted.length / 2)] ?? 0,
        longestMs: sorted.at(-1) ?? 0,
        over: sorted.filter((ms) => ms > mostMs).length,
        commands: Math.max(...runs.map(({ commands }) => commands)),
      };
    });
    this.#runs.clear();
    return taken;
  }

  async #measure<Value>(name: string, call: () => Promise<Value>): Promise<Value> {
    const isCounted = (this.#runs.get(name)?.length ?? 0) < countedRuns;
    const place = (this.#begun += 1);
    const isFirst = (this.#open += 1) === 1;
    const commandsBefore = isFirst && isCounted ? await this.#commands() : 0;
    const before = this.#processorMs();
    try {
      const answer = await call();
      const ms = this.#processorMs() - before;
      const commands = isFirst && isCounted ? (await this.#commands()) - commandsBefore : 0;
      if (isFirst && this.#begun === place) this.#note(name, { ms, commands });
      return answer;
    } finally {
      this.#open -= 1;
    }
  }

  #note(name: string, run: { ms: number; commands: number }): void {
    const runs = this.#runs.get(name) ?? [];
    this.#runs.set(name, runs);
    runs.push(run);
  }

  /** Nanoseconds come first in the file (Linux, Documentation/scheduler/sched-stats.rst). */
  #processorMs(): number {
    return Number(readFileSync(this.schedstat, "utf8").split(" ")[0]) / 1e6;
  }

  async #commands(): Promise<number> {
    const calls = [
      ...(await this.redis.info("commandstats")).matchAll(/^cmdstat_(?!info|evalsha)\S+:calls=(\d+)/gm),
    ];
    return calls.reduce((sum, [, count]) => sum + Number(count), 0);
  }
}
