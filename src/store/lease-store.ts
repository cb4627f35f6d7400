import { Type } from "typebox";
import {
  type BrowserId,
  type ControlId,
  isOnDemand,
  LeaseId,
  type Partition,
  partitionOf,
  RequestId,
} from "../base/ids.js";
import type { Refusal } from "../base/errors.js";
import { parserOf } from "../base/parser.js";
import { LaunchingBrowser, type LeasedBrowser, leasedParser } from "../pool/browser.js";
import { LaunchFailure } from "../pool/ports/messages.js";
import type {
  AcquireRequest,
  CreateRequest,
  LeaseChange,
  LeaseStore,
  ReleaseReply,
  ReleaseRequest,
  TouchReply,
} from "../pool/ports/pool-store.js";
import type {
  AcquireReply,
  CreateReply,
  FailedWaiter,
  RejoinReply,
  WaitingReply,
  WithdrawReply,
} from "../pool/ports/store-replies.js";
import { capturedIn } from "./effects.js";
import { flag, type PartitionScripts } from "./partition-scripts.js";
import { WarmScripts } from "./warm-scripts.js";
import type { ScriptReply } from "./redis/replies.js";

const placeParser = parserOf("a waiter", Type.Object({ id: RequestId, lease: LeaseId }));
/** What `remember` of include/repeats.lua keeps under an idempotency key. */
const rememberedParser = parserOf("a remembered key", Type.Object({ lease: LeaseId, waiter: RequestId }));
const claimedParser = parserOf(
  "a claimed launch",
  Type.Object({ browser: LaunchingBrowser, waiter: RequestId, lease: LeaseId }),
);
const launchingParser = parserOf(
  "a waiter with a launch",
  Type.Object({ connection: Type.Optional(RequestId), failure: Type.Optional(LaunchFailure) }),
);
const rejoinedParser = parserOf(
  "a reply of rejoin",
  Type.Array(Type.Enum(["waiting", "held", "superseded", "over", "deleted"])),
);

/** This marks a waiter whose caller or control is away. A session may be called so, but for the colon. */
const awayMark = /"(?:detachedAt|lostAt)":/;

/** Leases and waiters of partitions: one atomic script for each change of state. */
export class RedisLeaseStore implements LeaseStore {
  readonly #warmAcquires: WarmScripts;
  readonly #warmReleases: WarmScripts;

  constructor(protected readonly scripts: PartitionScripts) {
    this.#warmAcquires = new WarmScripts(scripts.clock);
    this.#warmReleases = new WarmScripts(scripts.clock);
  }

  async acquire(partition: Partition, ask: AcquireRequest): Promise<AcquireReply> {
    const { connection, lease } = ask.waiter;
    const target = { partition, request: connection, idempotencyKey: ask.idempotencyKey, asker: connection };
    const args = {
      pool: ask.pool,
      name: ask.name ?? "",
      waiter: JSON.stringify(ask.waiter),
      lease,
      body: ask.idempotencyKey?.body ?? "",
      mayWait: flag(ask.mayWait),
      isRepeatOnly: flag(ask.isRepeatOnly ?? false),
    };
    if (!ask.idempotencyKey && this.#warmAcquires.areAsked(partition)) {
      const warm = await this.scripts.runFor(ask.admission, target, { name: "acquire-warm", args });
      if (warm.kind === "refused") return warm;
      if (warm.kind === "granted") return grantIn(warm);
      if (warm.kind === "over") return { kind: "over" };
      this.#warmAcquires.leave(partition);
    }
    const reply = await this.scripts.runFor(ask.admission, target, { name: "acquire", args });
    if (reply.kind === "refused") return reply;
    if (reply.kind === "granted") return grantIn(reply);
    if (reply.kind === "waiting") return { kind: "waiting", ...parsePlace(reply.payload) };
    if (reply.kind === "unsupported") return { kind: "unsupported", fields: reply.payload.split(" ") };
    return { kind: reply.kind };
  }

  async createSession(partition: Partition, ask: CreateRequest): Promise<CreateReply> {
    const { candidate } = ask;
    const browser = candidate && {
      ...candidate,
      templateKey: candidate.id,
      generation: 1,
      networkGeneration: 1,
    };
    const reply = await this.scripts.run(
      { partition, request: ask.relaunch ?? ask.waiter.connection, idempotencyKey: ask.idempotencyKey },
      "create-session",
      {
        browser: browser ? JSON.stringify(browser) : "",
        waiter: JSON.stringify(ask.waiter),
        template: ask.template ? JSON.stringify(ask.template) : "",
        body: ask.idempotencyKey?.body ?? "",
        isRelaunch: flag(ask.relaunch !== undefined),
        reservedUntil: ask.reservedUntil ?? "",
        standby: ask.standby?.key ?? "",
        facts: ask.standby?.facts ?? "",
      },
    );
    if (reply.kind === "granted") return grantIn(reply);
    if (reply.kind === "claimed") return { kind: "claimed", ...claimedParser.json(reply.payload) };
    if (reply.kind === "waiting") return { kind: "waiting", ...parsePlace(reply.payload) };
    return { kind: reply.kind };
  }

  async withdraw(
    partition: Partition,
    ask: { waiter: RequestId; connection: RequestId; lease: LeaseId },
  ): Promise<WithdrawReply> {
    const reply = await this.scripts.run({ partition, request: ask.connection }, "withdraw", { ...ask });
    if (reply.kind === "granted") return grantIn(reply);
    return { kind: reply.kind };
  }

  async findByKey(
    partition: Partition,
    key: string,
  ): Promise<{ lease: LeaseId; waiter: RequestId } | undefined> {
    const text = await this.scripts.ask((redis) => redis.get(this.scripts.idempotencyKey(partition, key)));
    return text === null ? undefined : rememberedParser.json(text);
  }

  async heldAmong(partition: Partition, leases: readonly LeaseId[]): Promise<readonly LeaseId[]> {
    const browsers = await this.scripts.ask((redis) =>
      redis.hmget(this.scripts.keyOf(partition, "leases"), ...leases),
    );
    return leases.filter((_, index) => browsers[index] !== null);
  }

  async findHeld(
    partition: Partition,
    lease: LeaseId,
  ): Promise<{ browser: LeasedBrowser; at: number } | undefined> {
    const reply = await this.scripts.run({ partition }, "find-lease", { lease });
    return reply.kind === "held" ? { browser: leasedParser.json(reply.payload), at: reply.at } : undefined;
  }

  async confirm(partition: Partition, leases: readonly LeaseId[]): Promise<void> {
    await this.scripts.run({ partition }, "confirm", { leases: JSON.stringify(leases) });
  }

  async undo(
    partition: Partition,
    lease: LeaseId,
    request: RequestId,
  ): Promise<"undone" | "kept" | "opened" | "over"> {
    return (await this.scripts.run({ partition, request }, "undo", { lease })).kind;
  }

  async release(partition: Partition, ask: ReleaseRequest): Promise<ReleaseReply | Refusal> {
    const { browser, name = "", lease = "", reuse, why, isRetry, request } = ask;
    const isNamed = why === "released" && lease !== "";
    // A release is known by the lease that it names, however often it is asked for.
    const target = { partition, request: isNamed ? lease : request, asker: request };
    const args = { browser, request, name, lease, reuse: flag(reuse), why, isRetry: flag(isRetry) };
    if (isNamed && reuse && !isOnDemand(partition) && this.#warmReleases.areAsked(partition)) {
      const warm = await this.scripts.runFor(ask.admission, target, { name: "release-warm", args });
      if (warm.kind === "refused") return warm;
      if (warm.kind === "released") return releaseIn("released", warm.effects);
      this.#warmReleases.leave(partition);
    }
    const reply = await this.scripts.runFor(ask.admission, target, { name: "release", args });
    return reply.kind === "refused" ? reply : releaseIn(reply.kind, reply.effects);
  }

  async touch(
    partition: Partition,
    ask: { browser: BrowserId; lease?: LeaseId; change: LeaseChange; request: RequestId },
  ): Promise<TouchReply> {
    const { browser, lease = "", change, request } = ask;
    const reply = await this.scripts.run({ partition, request }, "change-lease", {
      browser,
      lease,
      change: JSON.stringify(change),
    });
    if (reply.kind === "touched")
      return { kind: "touched", browser: leasedParser.json(reply.payload), at: reply.at };
    return { kind: reply.kind };
  }

  async findLeaseEnd(browser: BrowserId, lease: LeaseId): Promise<string | undefined> {
    const { kind, payload } = await this.scripts.run({ partition: partitionOf(browser) }, "lease-end", {
      browser,
      lease,
    });
    return kind === "ended" ? payload : undefined;
  }

  async waitingAmong(partition: Partition, waiters: readonly RequestId[]): Promise<readonly RequestId[]> {
    const texts = await this.scripts.ask((redis) =>
      redis.hmget(this.scripts.keyOf(partition, "waiterRecords"), ...waiters),
    );
    return waiters.filter((_, index) => {
      const text = texts[index];
      return typeof text === "string" && !awayMark.test(text);
    });
  }

  async failedAmong(partition: Partition, waiters: readonly RequestId[]): Promise<readonly FailedWaiter[]> {
    const texts = await this.scripts.ask((redis) =>
      redis.hmget(this.scripts.keyOf(partition, "waiterRecords"), ...waiters),
    );
    return texts.flatMap((text) => {
      const { connection, failure } = launchingParser.json(text ?? "{}");
      return connection && failure ? [{ ...failure, connection }] : [];
    });
  }

  async rejoin(partition: Partition, stored: readonly string[]): Promise<readonly RejoinReply[]> {
    const reply = await this.scripts.run({ partition }, "rejoin", { waiting: `[${stored.join(",")}]` });
    return rejoinedParser.json(reply.payload);
  }

  async unfinished(partition: Partition, browsers: readonly BrowserId[]): Promise<readonly BrowserId[]> {
    const keys = (["resetting", "retiring"] as const).map((part) => this.scripts.keyOf(partition, part));
    const scores = await Promise.all(
      keys.map((key) => this.scripts.ask((redis) => redis.zmscore(key, ...browsers))),
    );
    return browsers.filter((_, index) =>
      scores.some((all) => all[index] !== null && all[index] !== undefined),
    );
  }

  async beat(partition: Partition, control: ControlId): Promise<void> {
    await this.scripts.run({ partition }, "control-beat", { control });
  }
}

function parsePlace(stored: string): Omit<WaitingReply, "kind"> {
  const { id, lease } = placeParser.json(stored);
  return { waiter: id, lease, stored };
}

const grantIn = ({ payload, at }: Pick<ScriptReply, "payload" | "at">) => ({
  kind: "granted" as const,
  browser: leasedParser.json(payload),
  at,
});

function releaseIn(kind: ReleaseReply["kind"], effects: string): ReleaseReply {
  const captured = capturedIn(effects);
  return captured ? { kind, captured } : { kind };
}
