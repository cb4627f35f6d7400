import type { RemovalNotes } from "../../access/first-removals.js";
import type { Millis } from "../../base/clock.js";
import { removalKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";

/** Each goes by itself when its time is over. */
export class RedisRemovalNotes implements RemovalNotes {
  constructor(
    private readonly store: ScriptStore,
    private readonly keepMs: Millis,
  ) {}

  async note(about: string, id: string): Promise<void> {
    await this.store.ask((redis) => redis.set(removalKey(about), id, "PX", this.keepMs));
  }

  async find(about: string): Promise<string | undefined> {
    return (await this.store.ask((redis) => redis.get(removalKey(about)))) ?? undefined;
  }
}
