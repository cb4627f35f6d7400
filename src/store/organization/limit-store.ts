import type { LimitStore } from "../../access/organization-limits.js";
import type { ProjectLimitStore } from "../../access/project-limits.js";
import type { Rate, RateLimiter } from "../../access/rate-limiter.js";
import type { ProjectId } from "../../base/ids.js";
import { organizationKey, type OrganizationPart, rateKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";

/** Under this name the limit of projects that have none of their own. */
const ofEachProject = "default";
const ownOf = (project: ProjectId): string => `project ${project}`;

/** Whoever keeps for a while what was looked up of limits. */
interface LimitReaders {
  forgetLimits(): void;
}

/** What the API has set as limits of the organization and of projects. */
export class RedisLimitStore implements LimitStore, ProjectLimitStore {
  constructor(
    private readonly store: ScriptStore,
    private readonly readers: LimitReaders,
  ) {}

  async read(): ReturnType<LimitStore["read"]> {
    const limit = await this.store.ask((redis) => redis.hget(organizationKey("limits"), ofEachProject));
    const set = await this.store.ask((redis) => redis.hlen(organizationKey("limits")));
    const used = await this.store.ask((redis) => redis.hmget(organizationKey("usage"), "pool", "session"));
    return {
      ofEachProject: limit === null ? null : Number(limit),
      isAnySet: set > 0,
      reserved: used.reduce((sum, count) => sum + Number(count ?? 0), 0),
    };
  }

  async setOfEachProject(before: number | null, after: number | null): Promise<"set" | "changed"> {
    const args = { field: ofEachProject, before: before ?? "", after: after ?? "" };
    const keyOf = (key: string): string => organizationKey(key as OrganizationPart);
    return (await this.#changed(this.store.run("set-limit", keyOf, args))).kind;
  }

  async ofProject(project: ProjectId): Promise<number | null> {
    const limit = await this.store.ask((redis) => redis.hget(organizationKey("limits"), ownOf(project)));
    return limit === null ? null : Number(limit);
  }

  async setOfProject(project: ProjectId, limit: number | null): Promise<void> {
    const [key, field] = [organizationKey("limits"), ownOf(project)];
    await this.#changed(
      this.store.ask((redis) => (limit === null ? redis.hdel(key, field) : redis.hset(key, field, limit))),
    );
  }

  /** Readers forget what they had before the caller is answered, also where it is not known what was done. */
  #changed<Reply>(change: Promise<Reply>): Promise<Reply> {
    return change.finally(() => this.readers.forgetLimits());
  }
}

/** What a script tells of a rate: how many are left, or until when to wait. */
export const rateOf = (
  perMinute: number,
  { isTaken, told }: { readonly isTaken: boolean; readonly told: string },
): Rate =>
  isTaken ? { perMinute, remaining: Number(told) } : { perMinute, remaining: 0, retryAfterMs: Number(told) };

/** So many requests of one kind in a minute, of all callers at all daemons together. */
export class RedisRateLimiter implements RateLimiter {
  constructor(
    private readonly store: ScriptStore,
    private readonly perMinute: number,
  ) {}

  async take(bucket: string): ReturnType<RateLimiter["take"]> {
    const { perMinute } = this;
    const { kind, payload } = await this.store.run("take-request", () => rateKey(bucket), { perMinute });
    return rateOf(perMinute, { isTaken: kind === "taken", told: payload });
  }
}
