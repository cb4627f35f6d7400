import type { Millis } from "../../base/clock.js";
import type { BrowserId, LeaseId, Partition, PoolId, ProjectId, RequestId } from "../../base/ids.js";
import type { StoredRecording } from "../../spec/flight-recording.js";
import type { Tombstone } from "../session.js";
import type { IdempotencyKey } from "./pool-store.js";

/** One reservation of a name: another of the same owner has a later deadline. */
export interface Reservation {
  readonly deadline: Millis;
  /** False where its owner had the name already: then this reservation must not be given back. */
  readonly isNew: boolean;
}

/** Browsers that are reserved, until a deadline unless a record bears them out. */
export interface ReservedSize {
  readonly kind: "reserved";
  readonly deadline: Millis;
  /** What the owner held until then; zeros where it held nothing. */
  readonly before: { readonly size: number; readonly deadline: Millis };
}
/** The limit of concurrent sessions that is reached: the organization's, or the project's own. */
type ReachedLimit = "concurrent" | "ofProject";
/** The limit that is reached, and how many it allows. */
export interface Reached<Limit> {
  readonly kind: Limit;
  readonly most: number;
}
/** `mismatch`: it was kept for another body. */
export type KeptAnswer = { kind: "new" } | { kind: "same"; value: string } | { kind: "mismatch" };
export type SizeReservation = ReservedSize | Reached<"many" | "pooled" | ReachedLimit>;
export type SessionReservation = ReservedSize | { readonly kind: "unlimited" } | Reached<ReachedLimit>;

/** What pools may have together. */
export interface ProjectBounds {
  /** The sum of the sizes of all the organization's pools, null without a limit. */
  readonly pooledSessions: number | null;
  /** Pools of one project. */
  readonly maxPools: number;
}

/**
 * What spans partitions: the project's pools and names. Reservations name an owner and are void after a
 * deadline (docs/deployment.md#redis).
 */
export interface ProjectStore {
  readonly project: ProjectId;
  /**
   * Reserves a name for an owner; undefined where another owner has it. Reserving again is harmless.
   * `takesOver`: what was reserved under the same `key` is its own.
   */
  reserveName(ask: {
    kind: "pool" | "session";
    name: string;
    owner: string;
    partition: Partition;
    key?: string;
    takesOver?: boolean;
  }): Promise<Reservation | undefined>;
  freeName(ask: {
    kind: "pool" | "session";
    name: string;
    owner: string;
    /** No other reservation than this one of the owner. */
    only?: Pick<Reservation, "deadline">;
  }): Promise<void>;
  findName(
    kind: "pool" | "session",
    name: string,
  ): Promise<{ owner: string; partition: Partition; deadline: Millis } | undefined>;
  /** Reserves a pool's size. One that is to shrink holds its old size until the new one is settled. */
  reserveSize(pool: PoolId, size: number, most: ProjectBounds): Promise<SizeReservation>;
  /**
   * Makes what is reserved the size of the pool's record, or gives it back where there is no such pool.
   * `only`: no other reservation than this one.
   */
  settleSize(pool: PoolId, only?: ReservedSize): Promise<void>;
  /**
   * Gives back what a change has reserved that was not written, unless another has reserved since: not what
   * was held before it, which may be about to be written by another change of the pool.
   */
  giveBackSize(pool: PoolId, reserved: ReservedSize): Promise<void>;
  /** Reserves a session on demand, by the lease that it will have; `unlimited` where nothing limits them. */
  reserveSession(lease: LeaseId): Promise<SessionReservation>;
  /** Gives a session back that is over, or was never claimed. */
  freeSession(lease: LeaseId): Promise<void>;
  /** Gives a session back whose caller was not served, unless a retry may still have it. */
  settleSession(lease: LeaseId, waiter: RequestId): Promise<void>;
  /** Makes reservations what the records of pools and leases say, where they are not pending. */
  sweepReservations(): Promise<void>;
  /** Notes a pool that is being created; void after a while unless it is opened. */
  addPool(pool: PoolId): Promise<void>;
  openPool(pool: PoolId): Promise<void>;
  /**
   * Takes the pool out of every list and frees its name; its partition is still looked after until it is
   * empty.
   */
  dropPool(pool: PoolId, name?: string): Promise<void>;
  /**
   * Forgets a pool that came to nothing, with its size; whether it did. One that has a record after all is
   * opened, or dropped where it is deleted.
   */
  forgetPool(pool: PoolId): Promise<boolean>;
  /** What its record says, while it has one. One that is `creating` may still come to have it. */
  findPoolState(pool: PoolId): Promise<"open" | "deleted" | "creating" | undefined>;
  /**
   * Does what is left to do for a deleted pool whose deleter has died on the way; whether there was
   * something.
   */
  settlePool(pool: PoolId): Promise<boolean>;
  /** The same where no more is known than the partition: reads the ids of all pools. */
  settlePartition(partition: Partition): Promise<boolean>;
  pools(): Promise<readonly PoolId[]>;
  /** Open pools, newest first: `count` of them after the first `from`. Reads no others. */
  newestPools(from: number, count: number): Promise<readonly PoolId[]>;
  /** Every partition with anything in it: open pools, deleted ones not yet empty, on-demand. */
  partitions(): Promise<readonly Partition[]>;
  /** An answer kept under an idempotency key, or the place to keep it. */
  remember(idempotencyKey: IdempotencyKey, value: string): Promise<KeptAnswer>;
  /** The same, and nothing is kept where nothing was. */
  recall(idempotencyKey: IdempotencyKey): Promise<KeptAnswer>;
  /** Gives what is kept another value, for as long as it is kept. */
  settleKey(idempotencyKey: IdempotencyKey, value: string): Promise<void>;
  /** Forgets that value under the key, unless a repeat was told of it; whether it did. */
  forgetKey(idempotencyKey: IdempotencyKey, value: string): Promise<boolean>;
  sweepNames(): Promise<void>;
  /** Forgets pools that were never opened, and deleted ones whose partition is empty. */
  sweepPools(): Promise<void>;
  /** Moves tombstones from where they were written to where they are looked up. */
  sweepPendingTombstones(): Promise<void>;
  /** The same of one partition; again is harmless. */
  moveTombstones(partition: Partition): Promise<void>;
  findTombstone(id: BrowserId): Promise<Tombstone | undefined>;
  /** The last that bore the name. */
  findTombstoneNamed(name: string): Promise<Tombstone | undefined>;
  /** The last ended first: `count` of them after the first `from`. */
  tombstones(from: number, count: number): Promise<readonly Tombstone[]>;
  countTombstones(): Promise<number>;
  /** Drops tombstones and recordings that are too old, or too many. */
  sweepTombstones(): Promise<void>;
  /** `text` is the JSON of a `StoredRecording`; it is kept as long as a tombstone. */
  keepRecording(browser: BrowserId, text: string): Promise<void>;
  findRecording(browser: BrowserId): Promise<StoredRecording | undefined>;
  /** The newest of a partition's browsers, the newest first. */
  recordings(partition: Partition, most: number): Promise<readonly StoredRecording[]>;
}

/** What is done in all projects together. */
export interface Projects extends Pick<
  ProjectStore,
  | "partitions"
  | "settlePartition"
  | "sweepNames"
  | "sweepPools"
  | "sweepReservations"
  | "sweepPendingTombstones"
  | "sweepTombstones"
> {
  /** The store of the project to which the partition belongs. */
  at(partition: Partition): ProjectStore;
  /** Cuts streams of events to what all of them may have together. */
  sweepEvents(): Promise<void>;
}
