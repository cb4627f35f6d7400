import { ticksKey } from "./redis/keys.js";
import type { ScriptStore } from "./redis/redis.js";

/** When each schedule last ran, by Redis's clock. */
export class RedisTickStore {
  constructor(private readonly store: ScriptStore) {}

  async ran(name: string): Promise<void> {
    const at = await this.store.now();
    await this.store.ask((redis) => redis.hset(ticksKey, name, String(at)));
  }

  async ageMs(name: string): Promise<number> {
    const text = await this.store.ask((redis) => redis.hget(ticksKey, name));
    const ageMs = (await this.store.now()) - Number(text ?? -Infinity);
    // It ran in what is still to come by a clock that has gone back since, so that nothing is known.
    return ageMs < 0 ? Infinity : ageMs;
  }

  /**
   * Notes that the ticks listen, and returns for how long (ms) they have done so without a gap: beats during
   * an outage were lost.
   */
  async steadyMs(gapMs: number): Promise<number> {
    return Number((await this.store.run("ticks-steady", () => ticksKey, { gapMs })).payload);
  }
}
