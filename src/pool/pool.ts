import { type Static, Type } from "typebox";
import type { Millis } from "../base/clock.js";
import type { BrowserId, NodeId, PoolId } from "../base/ids.js";
import type { BrowserState } from "./browser.js";
import type { PoolSpec } from "../spec/launch-template.js";

/** How many browsers are in each state; `stale` are those of an older generation than the pool's. */
export const BrowserCounts = Type.Object({
  launching: Type.Number(),
  idle: Type.Number(),
  leased: Type.Number(),
  resetting: Type.Number(),
  stale: Type.Number(),
  waiting: Type.Number(),
});
export type BrowserCounts = Readonly<Static<typeof BrowserCounts>>;

/** Why a pool is below its size (docs/api.md#pools). */
export const fillReasons = ["rate", "capacity", "launch_failing", "rate_zero", "not_supported"] as const;
type FillReason = (typeof fillReasons)[number];
export interface FillHold {
  readonly reason: FillReason;
  /**
   * The reason's details. `not_supported` has the fields, `launch_failing` the last error, and `capacity` why
   * nodes launch nothing, if some do not.
   */
  readonly fields?: readonly string[];
  readonly last_error?: string;
}

export interface Pool {
  readonly id: PoolId;
  readonly name?: string;
  readonly createdAt: Millis;
  readonly revision: number;
  /** When that revision was written, in microseconds since 1970; absent of the first. */
  readonly revisedAt?: number;
  readonly generation: number;
  readonly networkGeneration: number;
  readonly spec: PoolSpec;
  readonly counts: BrowserCounts;
  /** Absent when the pool is at its size or launches are under way. */
  readonly fill?: FillHold;
}

/** One row of GET /browser_pools/{x}/browsers. */
export interface PoolBrowser {
  readonly id: BrowserId;
  readonly state: BrowserState;
  readonly node: NodeId;
  readonly generation: number;
  readonly stale: boolean;
  readonly ageMs: Millis;
  readonly served: number;
  readonly lastError?: string;
}

/** Launches still wanted so that `size` browsers exist, leased ones included. */
export const shortfall = (size: number, have: BrowserCounts): number =>
  Math.max(0, size - have.launching - have.idle - have.leased - have.resetting);
