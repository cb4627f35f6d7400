import type { Clock, Millis } from "../../base/clock.js";
import type { Partition, ProjectId } from "../../base/ids.js";
import type { RedisClient } from "../redis/connect.js";
import {
  organizationKey,
  type OrganizationPart,
  partitionKey,
  type PartitionPart,
  projectIdempotencyKey,
  projectKey,
  type ProjectPart,
} from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import type { ScriptArgs } from "../redis/script-call.js";
import type { ScriptName, ScriptReply } from "../redis/replies.js";

/** A reservation whose owner has not come to be by then is void. Longer than any wait for a browser. */
export const graceMs: Millis = 120_000;
/** A look at what is reserved, which a reap waits for: what it does not come to is left to the next. */
export const sweepRound = { atOnce: 64, limitMs: 5000 } as const;

/** Runs scripts and plain commands on what spans the partitions of one project, in a slot of its own. */
export class ProjectScripts {
  constructor(
    private readonly store: ScriptStore,
    readonly project: ProjectId,
  ) {}

  get clock(): Clock {
    return this.store.clock;
  }

  run<const Name extends ScriptName>(name: Name, args: ScriptArgs): Promise<ScriptReply<Name>> {
    return this.store.run(name, (key) => this.key(key as ProjectPart), args);
  }

  /** Runs a script on what a partition has. */
  runIn<const Name extends ScriptName>(
    partition: Partition,
    name: Name,
    args: ScriptArgs,
  ): Promise<ScriptReply<Name>> {
    return this.store.run(name, (key) => this.partitionKey(partition, key as PartitionPart), args);
  }

  /** Runs a script on what all projects share. */
  runShared<const Name extends ScriptName>(name: Name, args: ScriptArgs): Promise<ScriptReply<Name>> {
    return this.store.run(name, (key) => organizationKey(key as OrganizationPart), args);
  }

  runUnderKey<const Name extends ScriptName>(
    name: Name,
    digest: string,
    args: ScriptArgs,
  ): Promise<ScriptReply<Name>> {
    return this.store.run(name, () => this.idempotencyKey(digest), args);
  }

  ask<Value>(command: (redis: RedisClient) => Promise<Value>): Promise<Value> {
    return this.store.ask(command);
  }

  now(): Promise<Millis> {
    return this.store.now();
  }

  key(part: ProjectPart): string {
    return projectKey(this.project, part);
  }

  partitionKey(partition: Partition, part: PartitionPart): string {
    return partitionKey(this.project, partition, part);
  }

  idempotencyKey(digest: string): string {
    return projectIdempotencyKey(this.project, digest);
  }

  /** What an open pool's record says; nothing of one that is deleted or never came to be. */
  async poolRecord(
    partition: Partition,
  ): Promise<{ state?: string; id?: string; name?: string; size?: string }> {
    const key = this.partitionKey(partition, "pool");
    const [state, id, name, size] = await this.ask((redis) =>
      redis.hmget(key, "state", "id", "name", "size"),
    );
    if (!state) return {};
    return state === "open"
      ? { state, ...(id ? { id } : {}), ...(name ? { name } : {}), ...(size ? { size } : {}) }
      : { state };
  }
}
