import { LRUCache } from "lru-cache";
import type { Millis } from "../base/clock.js";
import type {
  BrowserId,
  ControlId,
  Partition,
  LeaseId,
  NodeId,
  PoolId,
  ProjectId,
  RequestId,
} from "../base/ids.js";
import { partitionOf, newRequestId } from "../base/ids.js";
import type { Browser, RetireReason } from "../pool/browser.js";
import { type LaunchTemplate, resetModeOf } from "../spec/launch-template.js";
import type { Lack, LeasedBrowser, PoolSummary, BrowsersRead } from "../pool/ports/partition-overview.js";
import type { BrowserCounts, Pool } from "../pool/pool.js";
import type {
  LaunchCandidate,
  PoolStore,
  IdempotencyKey,
  PoolWrite,
  ReleaseRequest,
  LeaseChange,
  Waiter,
  LaunchDemand,
} from "../pool/ports/pool-store.js";
import { namedBy } from "../registry/references.js";
import type { AcquireReply, CreateReply, WaitingReply, WithdrawReply } from "../pool/ports/store-replies.js";
import type { StoreLimits } from "./limits.js";
import type { EffectRunner } from "./effects.js";
import {
  answerKey,
  partitionKey,
  type PartitionKeys,
  partitionKeys,
  type PartitionPart,
  idempotencyKey,
} from "./redis/keys.js";
import { RedisPartitionOverview } from "./partition-overview.js";
import { parseBrowser, parsePool, poolFields } from "./records.js";
import type { RedisClient } from "./redis/connect.js";
import type { ScriptArgs, ScriptReply, ScriptStore } from "./redis/redis.js";

/** Where a script runs and under which request. */
interface Place {
  readonly partition: Partition;
  readonly request?: RequestId;
  readonly keyed?: IdempotencyKey | undefined;
}

const flag = (value: boolean): string => (value ? "1" : "0");
const word = <Kind extends string>(reply: ScriptReply): Kind => reply.kind as Kind;

/** The partitions of one project, each in a slot of its own: one atomic script for each change of state. */
export class RedisPoolStore implements PoolStore {
  readonly #limits: ScriptArgs;
  readonly #keys = new LRUCache<Partition, PartitionKeys>({ max: 1000 });
  readonly #overview = new RedisPartitionOverview({
    run: (partition, script, args) => this.run({ partition }, script, args),
    ask: (command) => this.#ask(command),
    keyOf: (partition, part) => this.#keysOf(partition)[part],
  });

  constructor(
    private readonly store: ScriptStore,
    private readonly effects: EffectRunner,
    private readonly at: { readonly project: ProjectId; readonly limits: StoreLimits },
  ) {
    this.#limits = limitArgs(at.limits);
  }

  async acquire(
    partition: Partition,
    ask: { pool: PoolId; name?: string; waiter: Waiter; keyed?: IdempotencyKey; mayWait: boolean },
  ): Promise<AcquireReply> {
    const reply = await this.run({ partition, request: ask.waiter.connection, keyed: ask.keyed }, "acquire", {
      pool: ask.pool,
      name: ask.name ?? "",
      waiter: JSON.stringify(ask.waiter),
      body: ask.keyed?.body ?? "",
      mayWait: flag(ask.mayWait),
    });
    if (reply.kind === "granted")
      return { kind: "granted", browser: parseBrowser(reply.payload), at: reply.at };
    if (reply.kind === "waiting") return { kind: "waiting", ...parsePlace(reply.payload) };
    if (reply.kind === "unsupported") return { kind: "unsupported", fields: reply.payload.split(" ") };
    return { kind: word<"none" | "full" | "missing" | "mismatch" | "over">(reply) };
  }

  async createSession(
    partition: Partition,
    ask: {
      candidate?: LaunchCandidate;
      waiter: Waiter;
      template: LaunchTemplate;
      keyed?: IdempotencyKey;
      again?: RequestId;
    },
  ): Promise<CreateReply> {
    const { candidate } = ask;
    const browser = candidate && { ...candidate, config: candidate.id, generation: 1, networkGeneration: 1 };
    const reply = await this.run(
      { partition, request: ask.again ?? ask.waiter.connection, keyed: ask.keyed },
      "create-session",
      {
        browser: browser ? JSON.stringify(browser) : "",
        waiter: JSON.stringify(ask.waiter),
        config: JSON.stringify(ask.template),
        body: ask.keyed?.body ?? "",
        isAgain: flag(ask.again !== undefined),
      },
    );
    if (reply.kind === "granted")
      return { kind: "granted", browser: parseBrowser(reply.payload), at: reply.at };
    if (reply.kind === "claimed")
      return {
        kind: "claimed",
        ...(JSON.parse(reply.payload) as { browser: Browser; waiter: RequestId; lease: LeaseId }),
      };
    if (reply.kind === "again") return { kind: "waiting", ...parsePlace(reply.payload) };
    return { kind: word<"mismatch" | "over" | "full" | "none" | "superseded">(reply) };
  }

  async withdraw(
    partition: Partition,
    ask: { waiter: RequestId; connection: RequestId; lease: LeaseId },
  ): Promise<WithdrawReply> {
    const reply = await this.run({ partition, request: ask.connection }, "withdraw", { ...ask });
    if (reply.kind === "granted")
      return { kind: "granted", browser: parseBrowser(reply.payload), at: reply.at };
    return { kind: word<"withdrawn" | "kept" | "superseded" | "unknown">(reply) };
  }

  async findKeyed(
    partition: Partition,
    key: string,
  ): Promise<{ lease: LeaseId; waiter: RequestId } | undefined> {
    const text = await this.#ask((redis) => redis.get(idempotencyKey(this.at.project, partition, key)));
    return text === null ? undefined : (JSON.parse(text) as { lease: LeaseId; waiter: RequestId });
  }

  async heldAmong(partition: Partition, leases: readonly LeaseId[]): Promise<readonly LeaseId[]> {
    const browsers = await this.#ask((redis) =>
      redis.hmget(partitionKey(this.at.project, partition, "leases"), ...leases),
    );
    return leases.filter((_, index) => browsers[index] !== null);
  }

  async findHeld(
    partition: Partition,
    lease: LeaseId,
  ): Promise<{ browser: Browser; at: number } | undefined> {
    const reply = await this.run({ partition }, "find-lease", { lease });
    return reply.kind === "held" ? { browser: parseBrowser(reply.payload), at: reply.at } : undefined;
  }

  async confirm(partition: Partition, leases: readonly LeaseId[]): Promise<void> {
    await this.run({ partition }, "confirm", { leases: JSON.stringify(leases) });
  }

  async undo(
    partition: Partition,
    lease: LeaseId,
    request: RequestId,
  ): Promise<"undone" | "kept" | "opened" | "over"> {
    return word(await this.run({ partition, request }, "undo", { lease }));
  }

  async release(
    partition: Partition,
    ask: ReleaseRequest,
  ): Promise<"released" | "saving" | "already" | "superseded" | "unknown" | "elsewhere"> {
    const { browser, name = "", lease = "", reuse, why, isRetry, request } = ask;
    return word(
      await this.run({ partition, request }, "release", {
        browser,
        name,
        lease,
        reuse: flag(reuse),
        why,
        isRetry: flag(isRetry),
      }),
    );
  }

  async touch(
    partition: Partition,
    ask: { browser: BrowserId; lease?: LeaseId; change: LeaseChange; request: RequestId },
  ): Promise<{ kind: "touched"; browser: Browser; at: number } | { kind: "superseded" | "unknown" }> {
    const { browser, lease = "", change, request } = ask;
    const reply = await this.run({ partition, request }, "change-lease", {
      browser,
      lease,
      change: JSON.stringify(change),
    });
    if (reply.kind === "touched")
      return { kind: "touched", browser: parseBrowser(reply.payload), at: reply.at };
    return { kind: word<"superseded" | "unknown">(reply) };
  }

  async findLeaseEnd(browser: BrowserId, lease: LeaseId): Promise<string | undefined> {
    const { kind, payload } = await this.run({ partition: partitionOf(browser) }, "lease-end", {
      browser,
      lease,
    });
    return kind === "ended" ? payload : undefined;
  }

  async standingAmong(partition: Partition, waiters: readonly RequestId[]): Promise<readonly RequestId[]> {
    const texts = await this.#ask((redis) =>
      redis.hmget(partitionKey(this.at.project, partition, "waiterRecords"), ...waiters),
    );
    return waiters.filter((_, index) => {
      const text = texts[index];
      return typeof text === "string" && !text.includes('"detachedAt"') && !text.includes('"lostAt"');
    });
  }

  async rejoin(
    partition: Partition,
    stored: readonly string[],
  ): Promise<readonly ("waiting" | "held" | "superseded" | "over" | "deleted")[]> {
    const reply = await this.run({ partition }, "rejoin", { waiting: `[${stored.join(",")}]` });
    return JSON.parse(reply.payload) as ("waiting" | "held" | "superseded" | "over" | "deleted")[];
  }

  async unfinished(partition: Partition, browsers: readonly BrowserId[]): Promise<readonly BrowserId[]> {
    const keys = (["resetting", "retiring"] as const).map((part) =>
      partitionKey(this.at.project, partition, part),
    );
    const scores = await Promise.all(
      keys.map((key) => this.#ask((redis) => redis.zmscore(key, ...browsers))),
    );
    return browsers.filter((_, index) =>
      scores.some((all) => all[index] !== null && all[index] !== undefined),
    );
  }

  async beat(partition: Partition, control: ControlId): Promise<void> {
    await this.run({ partition }, "control-beat", { control });
  }

  async createPool(
    partition: Partition,
    ask: { id: PoolId; write: PoolWrite; request: RequestId },
  ): Promise<void> {
    await this.run({ partition, request: ask.request }, "create-pool", {
      id: ask.id,
      ...writeArgs(ask.write, 1),
    });
  }

  async updatePool(
    partition: Partition,
    ask: Parameters<PoolStore["updatePool"]>[1],
  ): Promise<"updated" | "changed" | "missing"> {
    return word(
      await this.run({ partition, request: ask.request }, "update-pool", {
        ...writeArgs(ask.write, ask.revision + 1),
        revision: String(ask.revision),
        isNewLaunch: flag(ask.isNewLaunch),
        isNewNetwork: flag(ask.isNewNetwork),
        isNewRefresh: flag(ask.isNewRefresh ?? false),
        discard: flag(ask.discard),
      }),
    );
  }

  async deletePool(
    partition: Partition,
    ask: { force: boolean; request: RequestId },
  ): Promise<"deleted" | "leased" | "missing"> {
    return word(
      await this.run({ partition, request: ask.request }, "delete-pool", { force: flag(ask.force) }),
    );
  }

  async flush(partition: Partition, request: RequestId, before?: number): Promise<"flushed" | "missing"> {
    return word(await this.run({ partition, request }, "flush", { why: "flushed", before: before ?? "" }));
  }

  async findPool(partition: Partition): Promise<Pool | undefined> {
    const reply = await this.run({ partition }, "read-pool", { fields: JSON.stringify(poolFields) });
    const { values, counts } = JSON.parse(reply.payload) as {
      values: (string | null)[];
      counts: Pool["counts"];
    };
    return parsePool(values, counts);
  }

  async now(): Promise<number> {
    const [seconds] = await this.#ask((redis) => redis.time());
    return Number(seconds) * 1000;
  }

  async findBrowser(id: BrowserId): Promise<{ browser: Browser; at: number } | undefined> {
    const reply = await this.run({ partition: partitionOf(id) }, "read-browser", { browser: id });
    return reply.kind === "found" ? { browser: parseBrowser(reply.payload), at: reply.at } : undefined;
  }

  async browsers(partition: Partition): Promise<{ browsers: readonly Browser[]; at: number }> {
    const reply = await this.run({ partition }, "read-browsers", {});
    return { browsers: Object.values(JSON.parse(reply.payload) as string[]).map(parseBrowser), at: reply.at };
  }

  browsersOf = (partition: Partition, node: NodeId): Promise<BrowsersRead> =>
    this.#overview.browsersOf(partition, node);
  partitionsOf = (node: NodeId, partitions: readonly Partition[]): Promise<readonly Partition[]> =>
    this.#overview.partitionsOf(node, partitions);
  spread = (partition: Partition): ReturnType<RedisPartitionOverview["spread"]> =>
    this.#overview.spread(partition);
  leased = (partition: Partition, from: number, count: number): Promise<readonly LeasedBrowser[]> =>
    this.#overview.leased(partition, from, count);
  records = (partition: Partition, ids: readonly BrowserId[]): Promise<BrowsersRead> =>
    this.#overview.records(partition, ids);
  findTerms = (partition: Partition): Promise<PoolSummary | undefined> => this.#overview.findTerms(partition);
  lackOf = (partition: Partition): Promise<Lack> => this.#overview.lackOf(partition);
  counts = (partition: Partition): Promise<BrowserCounts> => this.#overview.counts(partition);

  async networkChanges(partition: Partition): Promise<string> {
    // A control of an earlier release writes no stamp.
    return (
      await this.#ask((redis) =>
        redis.hmget(partitionKey(this.at.project, partition, "pool"), "networkChanges", "networkStamp"),
      )
    ).join(" ");
  }

  async findLaunchConfig(partition: Partition, key: string): Promise<LaunchTemplate | undefined> {
    const text = await this.#ask((redis) =>
      redis.hget(partitionKey(this.at.project, partition, "templates"), key),
    );
    return text === null ? undefined : (JSON.parse(text) as LaunchTemplate);
  }

  async wanted(partition: Partition, most: number): Promise<LaunchDemand> {
    const reply = JSON.parse(
      (await this.run({ partition }, "launch-demand", { most })).payload,
    ) as Partial<LaunchDemand>;
    return { count: 0, resting: [], trying: [], ...reply };
  }

  async claimLaunches(
    partition: Partition,
    ask: { candidates: readonly LaunchCandidate[]; madeFor?: string; obstacle?: string; request: RequestId },
  ): Promise<readonly Browser[]> {
    const reply = await this.run({ partition, request: ask.request }, "claim-launches", {
      candidates: JSON.stringify(ask.candidates),
      madeFor: ask.madeFor ?? "",
      obstacle: ask.obstacle ?? "",
    });
    return reply.kind === "claimed" ? (JSON.parse(reply.payload) as Browser[]) : [];
  }

  async reap(partition: Partition): Promise<{ launch: readonly Browser[]; isOpen: boolean }> {
    const reply = await this.run({ partition }, "reap", {});
    if (reply.kind === "missing") return { launch: [], isOpen: false };
    const { launch, state } = JSON.parse(reply.payload) as { launch: Browser[]; state: string };
    return { launch: Object.values(launch), isOpen: state === "open" };
  }

  async recycle(partition: Partition, ask: Parameters<PoolStore["recycle"]>[1]): Promise<number> {
    const { maxLeases, drains, request } = ask;
    const args = { maxLeases: maxLeases ?? "", node: drains?.node ?? "", drainMs: drains?.ms ?? 0 };
    return Number((await this.run({ partition, request }, "recycle", args)).payload);
  }

  async silenceNode(partition: Partition, node: NodeId, silentMs: Millis): Promise<void> {
    await this.run({ partition, request: newRequestId() }, "silence-node", { node, silentMs });
  }

  async clearNode(
    partition: Partition,
    ask: { node: NodeId; why: RetireReason; which: "idle" | "all" | "lost"; request: RequestId },
  ): Promise<number> {
    const { node, why, which, request } = ask;
    return Number((await this.run({ partition, request }, "clear-node", { node, why, which })).payload);
  }

  /** Runs a script on a partition and carries out what it leaves to be done. */
  async run(place: Place, name: string, args: ScriptArgs): Promise<ScriptReply> {
    const reply = await this.store.run(name, this.#keysIn(place, name), args, this.#limits);
    await this.effects.carryOut(place.partition, reply.effects);
    return reply;
  }

  #ask<Value>(command: (redis: RedisClient) => Promise<Value>): Promise<Value> {
    return this.store.ask(command);
  }

  #keysIn({ partition, request, keyed }: Place, script: string): (key: string) => string {
    const { project } = this.at;
    const keys = this.#keysOf(partition);
    return (key) => {
      if (key === "answer") return answerKey(project, partition, { script, request: request ?? "none" });
      if (key === "idempotency") return idempotencyKey(project, partition, keyed?.key ?? "none");
      return keys[key as PartitionPart];
    };
  }

  #keysOf(partition: Partition): PartitionKeys {
    const kept = this.#keys.get(partition);
    if (kept) return kept;
    const made = partitionKeys(this.at.project, partition);
    this.#keys.set(partition, made);
    return made;
  }
}

function parsePlace(stored: string): Omit<WaitingReply, "kind"> {
  const { id, lease } = JSON.parse(stored) as Waiter;
  return { waiter: id, lease, stored };
}

const writeArgs = ({ spec, launchConfig, unsupported }: PoolWrite, revision: number): ScriptArgs => ({
  name: spec.name ?? "",
  config: JSON.stringify(spec),
  launchConfig: JSON.stringify(launchConfig),
  size: spec.size,
  fillRate: spec.fill_rate_per_minute,
  fields: JSON.stringify({
    unsupported: unsupported.join(" "),
    timeoutSeconds: String(spec.timeout_seconds),
    reset: resetModeOf(spec),
    follows: (spec.refresh_on_profile_update && spec.profile_id) || "",
    uses: [revision, ...namedBy(spec)].join(" "),
  }),
});

/** The limits under the names by which the scripts' headers ask for them. */
const limitArgs = (limits: StoreLimits): ScriptArgs => ({
  most: limits.maxSessions ?? "",
  keepMs: limits.idempotencyMs,
  maxWaiters: limits.maxWaiters,
  provisionalMs: limits.provisionalMs,
  controlLostMs: limits.controlLostMs,
  keyedMs: limits.keyedGraceMs,
  retryWindowMs: limits.retryWindowMs,
  claimMs: limits.launchPickupMs,
  launchMs: limits.launchClaimMs,
  initialMs: limits.backoffInitialMs,
  maxMs: limits.backoffMaxMs,
  earlyMs: limits.earlyDeathMs,
  eventsKept: limits.eventsKept,
  nodeLostMs: limits.nodeLostMs,
});
