import { Type } from "typebox";
import type { Millis } from "../../base/clock.js";
import { attemptEach } from "../../base/concurrently.js";
import { findPoolId, LeaseId, onDemandIn, partitionOf, type PoolId, type RequestId } from "../../base/ids.js";
import { parserOf } from "../../base/parser.js";
import type {
  ProjectBounds,
  ReservedSize,
  SessionReservation,
  SizeReservation,
} from "../../pool/ports/project-store.js";
import { Rounds } from "../../pool/rounds.js";
import type { StoreLimits } from "../limits.js";
import { isPending } from "../pending.js";
import { graceMs, type ProjectScripts, sweepRound } from "../project/project-scripts.js";
import { organizationKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";

type ReservedKind = "pool" | "session";
interface HeldReservation {
  readonly owner: string;
  readonly kind: string;
  readonly project: string;
  readonly size: number;
  readonly deadline: Millis;
  readonly text: string;
}

/** All reservations of the organization, as they were at one moment. */
export interface ReservationAccount {
  readonly at: Millis;
  readonly projects: ReadonlyMap<string, readonly HeldReservation[]>;
}

export async function readAccount(store: Pick<ScriptStore, "ask" | "now">): Promise<ReservationAccount> {
  const texts = await store.ask((redis) => redis.hgetall(organizationKey("reservations")));
  const projects = new Map<string, HeldReservation[]>();
  for (const [owner, text] of Object.entries(texts)) {
    const held = parseHeld(owner, text);
    const ofProject = projects.get(held.project);
    if (ofProject) ofProject.push(held);
    else projects.set(held.project, [held]);
  }
  return { at: await store.now(), projects };
}

/** A session is claimed right after it was reserved, in one or two more round trips. */
const sessionGraceMs: Millis = 30_000;
/** A first limit that another daemon has set is heeded here after so long. */
const lookMs: Millis = 1000;

const waiterParser = parserOf("a waiter", Type.Object({ lease: LeaseId }));

function parseHeld(owner: string, text: string): HeldReservation {
  const [kind = "", project = "", size, deadline] = text.split(" ");
  return { owner, kind, project, size: Number(size ?? 0), deadline: Number(deadline ?? 0), text };
}

/**
 * How many browsers the pools and sessions of one project hold of what the organization may have
 * (docs/limits.md). Reserved before a record is written, given back when it is over; the sweep makes both the
 * same again where a daemon died in between.
 */
export class RedisReservations {
  readonly #rounds: Rounds<string>;
  #look: { readonly until: Millis; readonly isSet: Promise<boolean> } | undefined;

  constructor(
    private readonly scripts: ProjectScripts,
    private readonly limits: Pick<StoreLimits, "concurrentSessions">,
  ) {
    this.#rounds = new Rounds(scripts.clock, sweepRound);
  }

  async reserveSize(pool: PoolId, size: number, most: ProjectBounds): Promise<SizeReservation> {
    return await this.#reserve(pool, {
      kind: "pool",
      size,
      graceMs,
      pooled: most.pooledSessions ?? "",
      mostPools: most.maxPools,
    });
  }

  async settleSize(pool: PoolId, only?: ReservedSize): Promise<void> {
    const held = await this.#findHeld(pool);
    if (held && (only === undefined || held.deadline === only.deadline)) await this.#settlePool(held);
  }

  async giveBackSize(pool: PoolId, { deadline, before }: ReservedSize): Promise<void> {
    const held = await this.#findHeld(pool);
    if (held?.deadline !== deadline) return;
    const size = Math.max(await this.#sizeOf(pool), before.size);
    await this.#settle("pool", { ...held, size, deadline: before.deadline });
  }

  async reserveSession(lease: LeaseId): Promise<SessionReservation> {
    if (!(await this.#areSessionsLimited())) return { kind: "unlimited" };
    const reply = await this.#reserve(lease, {
      kind: "session",
      size: 1,
      graceMs: sessionGraceMs,
      pooled: "",
      mostPools: 0,
    });
    if (reply.kind === "reserved") return reply;
    return { kind: reply.kind === "ofProject" ? "ofProject" : "concurrent", most: reply.most };
  }

  /** Limits are looked up anew by whoever asks next. */
  forgetLimits(): void {
    this.#look = undefined;
  }

  freeSize = (pool: PoolId): Promise<void> => this.#free(pool);

  /** Where nothing limits sessions none are reserved: what is left from before is the sweep's. */
  async freeSession(lease: LeaseId): Promise<void> {
    if (await this.#areSessionsLimited()) await this.#free(lease);
  }

  async settleSession(lease: LeaseId, waiter: RequestId): Promise<void> {
    if (!(await this.#areSessionsLimited())) return;
    const { scripts } = this;
    // The waiter first: it becomes a lease, never the other way round.
    const waits = await scripts.ask((redis) =>
      redis.hexists(scripts.partitionKey(onDemandIn(scripts.project), "waiterRecords"), waiter),
    );
    const lives = await scripts.ask((redis) =>
      redis.hexists(scripts.partitionKey(onDemandIn(scripts.project), "leases"), lease),
    );
    if (waits + lives === 0) await this.#free(lease);
  }

  /** What was reserved since the account was read stays: it is settled only as it was read. */
  async sweep(pools: readonly PoolId[], { at, projects }: ReservationAccount): Promise<void> {
    const held = projects.get(this.scripts.project) ?? [];
    await this.#sweepPools(pools, held, at);
    await this.#sweepSessions(held, at);
  }

  async #sweepPools(pools: readonly PoolId[], held: readonly HeldReservation[], now: Millis): Promise<void> {
    const byOwner = new Map(held.map((one) => [one.owner, one]));
    const due = held.filter(({ kind, deadline }) => kind === "pool" && !isPending(deadline, now, graceMs));
    const unreserved = pools.filter((pool) => !byOwner.has(pool));
    const failures = await this.#rounds.over([...due.map(({ owner }) => owner), ...unreserved], (pool) =>
      this.#settlePool(byOwner.get(pool) ?? parseHeld(pool, "")),
    );
    if (failures.length > 0) throw failures[0];
  }

  async #settlePool({ owner, size, text }: HeldReservation): Promise<void> {
    const pool = findPoolId(owner);
    const actual = pool ? await this.#sizeOf(pool) : 0;
    if (actual !== size) await this.#settle("pool", { owner, text, size: actual });
  }

  /** The size that the pool's record says; 0 where there is no such pool. */
  async #sizeOf(pool: PoolId): Promise<number> {
    return Number((await this.scripts.poolRecord(partitionOf(pool))).size ?? 0);
  }

  async #findHeld(pool: PoolId): Promise<HeldReservation | undefined> {
    const text = await this.scripts.ask((redis) => redis.hget(organizationKey("reservations"), pool));
    return text === null ? undefined : parseHeld(pool, text);
  }

  /** A session is borne out by its lease, or by the waiter that will have that. */
  async #sweepSessions(held: readonly HeldReservation[], now: Millis): Promise<void> {
    const { scripts } = this;
    const sessions = held.filter(({ kind }) => kind === "session");
    const isLimited = await this.#areSessionsLimited();
    if (!isLimited && sessions.length === 0) return;
    const waiting = await scripts.ask((redis) =>
      redis.hvals(scripts.partitionKey(onDemandIn(scripts.project), "waiterRecords")),
    );
    const leases = await scripts.ask((redis) =>
      redis.hkeys(scripts.partitionKey(onDemandIn(scripts.project), "leases")),
    );
    const borne = new Set<string>([...waiting.map((text) => waiterParser.json(text).lease), ...leases]);
    const isDue = ({ deadline }: HeldReservation): boolean => !isPending(deadline, now, sessionGraceMs);
    const over = sessions.filter((one) => isDue(one) && !borne.has(one.owner));
    const reserved = new Set(sessions.map(({ owner }) => owner));
    const unreserved = isLimited ? [...borne].filter((owner) => !reserved.has(owner)) : [];
    await attemptEach(
      [
        ...over.map(({ owner, text }) => ({ owner, text, size: 0 })),
        ...unreserved.map((owner) => ({ owner, text: "", size: 1 })),
      ],
      sweepRound.atOnce,
      (one) => this.#settle("session", one),
    );
  }

  async #reserve(
    owner: string,
    args: { kind: ReservedKind; size: number; graceMs: Millis; pooled: number | ""; mostPools: number },
  ): Promise<SizeReservation> {
    const { project } = this.scripts;
    const concurrent = this.limits.concurrentSessions ?? "";
    const { kind, payload } = await this.scripts.runShared("reserve-browsers", {
      ...args,
      owner,
      project,
      concurrent,
    });
    if (kind !== "reserved") return { kind, most: Number(payload) };
    const [deadline = 0, size = 0, until = 0] = payload.split(" ").map(Number);
    return { kind, deadline, before: { size, deadline: until } };
  }

  async #settle(
    kind: ReservedKind,
    {
      owner,
      text,
      size,
      deadline = "",
    }: Pick<HeldReservation, "owner" | "text" | "size"> & { deadline?: Millis | "" },
  ): Promise<void> {
    const { project } = this.scripts;
    const args = { owner, project, kind, before: text, size, deadline };
    await this.scripts.runShared("settle-reservation", args);
  }

  async #free(owner: string): Promise<void> {
    await this.scripts.runShared("free-reservation", { owner });
  }

  /**
   * Whether a session on demand has to be reserved. The limits that the API sets are looked at once a second
   * at most, so that nobody pays for limits that are not set.
   */
  async #areSessionsLimited(): Promise<boolean> {
    if (this.limits.concurrentSessions !== null) return true;
    const now = this.scripts.clock.monotonic();
    if (this.#look === undefined || now >= this.#look.until) {
      const isSet = this.scripts
        .ask((redis) => redis.exists(organizationKey("limits")))
        .then((found) => found > 0);
      this.#look = { until: now + lookMs, isSet };
      isSet.catch(() => (this.#look = undefined));
    }
    return await this.#look.isSet;
  }
}
