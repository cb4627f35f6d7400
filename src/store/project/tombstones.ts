import { type BrowserId, findBrowserId, type Partition } from "../../base/ids.js";
import { parseTombstone, type Tombstone } from "../../pool/session.js";
import type { StoreLimits } from "../limits.js";
import type { ProjectScripts } from "./project-scripts.js";
import type { ScriptReply } from "../redis/replies.js";

/** What is kept of the sessions of one project that are over. */
export class RedisTombstones {
  constructor(
    private readonly scripts: ProjectScripts,
    private readonly limits: Pick<StoreLimits, "maxRecordings" | "maxTombstones" | "tombstoneMs">,
  ) {}

  async find(id: BrowserId): Promise<Tombstone | undefined> {
    const text = await this.scripts.ask((redis) => redis.hget(this.scripts.key("tombstones"), id));
    return text === null ? undefined : parseTombstone(text);
  }

  async findNamed(name: string): Promise<Tombstone | undefined> {
    const text = await this.scripts.ask((redis) => redis.hget(this.scripts.key("tombstoneNames"), name));
    const id = findBrowserId(text ?? "");
    return id && (await this.find(id));
  }

  async list(from: number, count: number): Promise<readonly Tombstone[]> {
    const ids = await this.scripts.ask((redis) =>
      redis.zrevrange(this.scripts.key("tombstoneOrder"), from, from + count - 1),
    );
    if (ids.length === 0) return [];
    const texts = await this.scripts.ask((redis) => redis.hmget(this.scripts.key("tombstones"), ...ids));
    return texts.flatMap((text) => (text === null ? [] : parseTombstone(text)));
  }

  count(): Promise<number> {
    return this.scripts.ask((redis) => redis.zcard(this.scripts.key("tombstoneOrder")));
  }

  /** Drops those that are too old, or too many. */
  async sweep(): Promise<void> {
    await this.#store([]);
  }

  /** Moves what a partition has noted into the project's slot; again is harmless. */
  async move(partition: Partition): Promise<void> {
    const key = this.scripts.partitionKey(partition, "pendingTombstones");
    const tombstones = await this.scripts.ask((redis) => redis.hgetall(key));
    if (Object.keys(tombstones).length === 0) return;
    await this.#store(Object.values(tombstones));
    await this.scripts.runIn(partition, "drop-moved-tombstones", { moved: JSON.stringify(tombstones) });
  }

  #store(tombstones: readonly string[]): Promise<ScriptReply<"store-tombstones">> {
    const { maxTombstones: most, maxRecordings: mostRecordings, tombstoneMs: keepMs } = this.limits;
    return this.scripts.run("store-tombstones", {
      tombstones: JSON.stringify(tombstones),
      most,
      keepMs,
      mostRecordings,
    });
  }
}
