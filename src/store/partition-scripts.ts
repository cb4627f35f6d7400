import { LRUCache } from "lru-cache";
import type { DeferredAdmission, JudgedKey } from "../access/principal.js";
import type { Clock, Millis } from "../base/clock.js";
import { type Refusal, RemudaError } from "../base/errors.js";
import {
  type LeaseId,
  type Partition,
  type ProjectId,
  projectNamedByPartition,
  type RequestId,
} from "../base/ids.js";
import type { IdempotencyKey } from "../pool/ports/pool-store.js";
import type { EffectRunner } from "./effects.js";
import type { StoreLimits } from "./limits.js";
import type { RedisClient } from "./redis/connect.js";
import { toldRate } from "./organization/caller-store.js";
import {
  accessKey,
  answerKey,
  callerRateKey,
  idempotencyKey,
  type PartitionKeys,
  partitionKeys,
  type PartitionPart,
} from "./redis/keys.js";
import type { ScriptStore } from "./redis/redis.js";
import type { ScriptName, ScriptReply } from "./redis/replies.js";
import {
  type CallParts,
  KeyJudgement,
  type ScriptArgs,
  SharedArgs,
  SharedKeys,
} from "./redis/script-call.js";

/** The partition in which a script runs, and the request it runs for. */
interface ScriptTarget {
  readonly partition: Partition;
  /** The request under which the script's first answer is kept. */
  readonly request?: RequestId | LeaseId;
  readonly idempotencyKey?: IdempotencyKey | undefined;
}

interface KeysOfPartition {
  readonly project: ProjectId;
  readonly parts: PartitionKeys;
  /** All but those of a request, which stand last in the headers. */
  readonly shared: SharedKeys;
}

/** Pieces of an index: more than any partition has browsers. */
const mostIndexPieces = 10_000;

/** Scripts that have no answer of their own: a request that is asked in both ways is one. */
const answersOf: Readonly<Partial<Record<ScriptName, ScriptName>>> = {
  "acquire-warm": "acquire",
  "release-warm": "release",
  "browser-ready-warm": "browser-ready",
};

export const flag = (value: boolean): string => (value ? "1" : "0");

/** Runs scripts and plain commands on partitions. `unnamed` is the project of those that name none. */
export class PartitionScripts {
  readonly #limits: SharedArgs;
  readonly #judgements = new WeakMap<JudgedKey, KeyJudgement>();
  readonly #keys = new LRUCache<Partition, KeysOfPartition>({ max: 1000 });

  constructor(
    private readonly store: ScriptStore,
    private readonly effects: EffectRunner,
    private readonly at: { readonly unnamed: ProjectId; readonly limits: StoreLimits },
  ) {
    this.#limits = new SharedArgs(limitArgs(at.limits));
  }

  /** Runs a script on a partition and carries out what it leaves to be done. */
  async run<const Name extends ScriptName>(
    target: ScriptTarget,
    name: Name,
    args: ScriptArgs,
  ): Promise<ScriptReply<Name>> {
    const keys = this.#keysIn(target, name);
    const reply = await this.store.call(name, { keys, args, sharedArgs: this.#limits });
    if (reply.effects !== "") await this.effects.carryOut(target.partition, reply.effects);
    return reply;
  }

  /**
   * The same for what goes by the index of the partition: where that is made anew, each call makes a piece of
   * it, and others are served in between.
   */
  async runIndexed<const Name extends ScriptName>(
    target: ScriptTarget,
    name: Name,
    args: ScriptArgs,
  ): Promise<ScriptReply<Name>> {
    for (let piece = 0; piece < mostIndexPieces; piece += 1) {
      const reply = await this.run(target, name, args);
      if (reply.kind !== "indexing") return reply;
    }
    throw new RemudaError("store_unavailable");
  }

  /** The same for whoever may be let in by the script itself. A refusal says why they are not. */
  async runFor<const Name extends ScriptName>(
    admission: DeferredAdmission | undefined,
    target: ScriptTarget & { readonly asker: RequestId },
    { name, args }: { readonly name: Name; readonly args: ScriptArgs },
  ): Promise<ScriptReply<Name> | Refusal> {
    const due = admission?.due();
    if (!admission || !due) return await this.run(target, name, args);
    const { asker, partition } = target;
    const parts = { keys: this.#keysIn(target, name), args, sharedArgs: this.#limits };
    const judgement = this.#judgementOf(due);
    const reply = await this.store.callJudged(name, parts, { judgement, asker });
    if (!reply) {
      const got = await admission.judge();
      return got.kind === "refused" ? got : await this.run(target, name, args);
    }
    admission.letIn(toldRate(this.at.limits.requestsPerMinute, { isTaken: true, told: reply.rate }).rate);
    if (reply.effects !== "") await this.effects.carryOut(partition, reply.effects);
    return reply;
  }

  get clock(): Clock {
    return this.store.clock;
  }

  ask<Value>(command: (redis: RedisClient) => Promise<Value>): Promise<Value> {
    return this.store.ask(command);
  }

  /** Asks when the present turn of the event loop ends. */
  atTurnEnd(ask: () => void): void {
    this.store.atTurnEnd(ask);
  }

  now(): Promise<Millis> {
    return this.store.now();
  }

  keyOf(partition: Partition, part: PartitionPart): string {
    return this.#keysOf(partition).parts[part];
  }

  idempotencyKey(partition: Partition, digest: string): string {
    return idempotencyKey(this.#projectOf(partition), partition, digest);
  }

  /** A key is judged for each of its requests, and each names the same project, or none. */
  #judgementOf(due: JudgedKey): KeyJudgement {
    const kept = this.#judgements.get(due);
    if (kept) return kept;
    const keys = [accessKey("keyDigests"), accessKey("activeProjects"), callerRateKey(due.digest)];
    const perMinute = String(this.at.limits.requestsPerMinute ?? "");
    const made = new KeyJudgement(keys, [due.digest, due.project, perMinute]);
    this.#judgements.set(due, made);
    return made;
  }

  #keysIn(
    { partition, request, idempotencyKey: remembered }: ScriptTarget,
    name: ScriptName,
  ): CallParts["keys"] {
    const { project, shared } = this.#keysOf(partition);
    const script = answersOf[name] ?? name;
    return {
      shared,
      keyOf: (key) => {
        if (key === "answer") return answerKey(project, partition, { script, request: request ?? "none" });
        if (key === "idempotency") return idempotencyKey(project, partition, remembered?.key ?? "none");
        throw new Error(`script ${script}: no partition has ${key}, or it stands behind those of a request`);
      },
    };
  }

  #keysOf(partition: Partition): KeysOfPartition {
    const kept = this.#keys.get(partition);
    if (kept) return kept;
    const project = this.#projectOf(partition);
    const parts = partitionKeys(project, partition);
    const shared = new SharedKeys((key) => parts[key as PartitionPart]);
    const made = { project, parts, shared };
    this.#keys.set(partition, made);
    return made;
  }

  #projectOf(partition: Partition): ProjectId {
    return projectNamedByPartition(partition) ?? this.at.unnamed;
  }
}

/** The limits under the names by which the scripts' headers ask for them. */
const limitArgs = (limits: StoreLimits): ScriptArgs => ({
  most: limits.maxSessions ?? "",
  keepMs: limits.idempotencyMs,
  maxWaiters: limits.maxWaiters,
  perMinute: limits.requestsPerMinute ?? "",
  provisionalMs: limits.provisionalMs,
  controlLostMs: limits.controlLostMs,
  keyedMs: limits.keyedGraceMs,
  retryWindowMs: limits.retryWindowMs,
  maxLeases: limits.maxLeases ?? "",
  claimMs: limits.launchPickupMs,
  launchMs: limits.launchClaimMs,
  initialMs: limits.backoffInitialMs,
  maxMs: limits.backoffMaxMs,
  earlyMs: limits.earlyDeathMs,
  atOnce: limits.retiredAtOnce,
  eventsKept: limits.eventsKept,
  nodeLostMs: limits.nodeLostMs,
});
