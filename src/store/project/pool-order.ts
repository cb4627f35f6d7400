import { forEachConcurrently } from "../../base/concurrently.js";
import { findPoolId, partitionOf, type PoolId } from "../../base/ids.js";
import type { ProjectScripts } from "./project-scripts.js";

const poolsAtOnce = 64;

/** The open pools of one project in the order in which they were opened, to be read page by page. */
export class RedisPoolOrder {
  constructor(private readonly scripts: ProjectScripts) {}

  /** Newest first: `count` of them after the first `from`. */
  async newest(from: number, count: number): Promise<readonly PoolId[]> {
    const ids = await this.scripts.ask((redis) => redis.zrevrange(this.#key, from, from + count - 1));
    return ids.flatMap((id) => findPoolId(id) ?? []);
  }

  /** Makes it what the notes of pools say, where a release that keeps no order has written them. */
  async mend(open: readonly PoolId[]): Promise<void> {
    const listed = new Set<string>(await this.scripts.ask((redis) => redis.zrange(this.#key, "0", "-1")));
    const unlisted = open.filter((id) => !listed.delete(id));
    const failures = [
      ...(await forEachConcurrently(unlisted, poolsAtOnce, (pool) => this.add(pool))),
      ...(await forEachConcurrently(listed, poolsAtOnce, (pool) => this.#drop(pool))),
    ];
    if (failures.length > 0) throw failures[0];
  }

  /** Others may have opened it since the notes were read. */
  async #drop(pool: string): Promise<void> {
    const noted = await this.scripts.ask((redis) => redis.hget(this.scripts.key("pools"), pool));
    if (noted !== "open") await this.scripts.ask((redis) => redis.zrem(this.#key, pool));
  }

  /** Puts it where it was by the time at which it was created. */
  async add(pool: PoolId): Promise<void> {
    const record = this.scripts.partitionKey(partitionOf(pool), "pool");
    const createdAt = Number((await this.scripts.ask((redis) => redis.hget(record, "createdAt"))) ?? 0);
    // Places are in microseconds.
    await this.scripts.ask((redis) => redis.zadd(this.#key, "NX", createdAt * 1000, pool));
  }

  get #key(): string {
    return this.scripts.key("poolOrder");
  }
}
