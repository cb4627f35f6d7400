import type { Guarded, Principal } from "../access/principal.js";
import type { BrowserId, LeaseId, RequestId } from "../base/ids.js";
import type { TraceContext } from "../base/trace-context.js";
import type { Telemetry } from "./bodies.js";

/** The lease that a request is about, and what it captures. */
export interface CapturingLease {
  readonly browser: BrowserId;
  readonly lease: LeaseId;
  readonly telemetry: Telemetry | undefined;
  /** What it is part of, as its record has it. */
  readonly trace?: string | undefined;
}

/** What an operation needs to know of the request: who sent it, and how. */
export interface Caller {
  readonly request: RequestId;
  readonly principal: Principal;
  /** Aborts when the caller's connection has gone. */
  readonly gone: AbortSignal;
  readonly idempotencyKey?: string;
  /** `X-Stainless-Retry-Count`: 0 for a first attempt. */
  readonly retryCount: number;
  /** `X-Remuda-Lease-Id` or the body's `lease_id`. */
  readonly lease?: LeaseId;
  /** The span of the caller that the request is part of. */
  readonly trace?: TraceContext | undefined;
  /**
   * Whether its credential has ended since it was let in; undefined where it was known to be good a moment
   * ago.
   */
  hasEnded?(): Promise<boolean> | undefined;
  /** To be told whose browser the request manages, so that its holder can see the call among the events. */
  concerns?(lease: CapturingLease | Promise<CapturingLease>): void;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
  readonly nextOffset: number;
}

export interface Paging {
  readonly limit: number;
  readonly offset: number;
  /** Whether the caller may see a thing; absent: all of them. Others are on no page and count nowhere. */
  readonly sees?: ((thing: Guarded) => boolean) | undefined;
}

export interface PoolListQuery extends Paging {
  /** The whole name, regardless of case and accents. */
  readonly name?: string;
  /** A part of the name, or the whole id. */
  readonly query?: string;
  readonly region?: string;
}

export interface SessionListQuery extends Paging {
  readonly status: "active" | "deleted" | "all";
  readonly query?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly region?: string;
}

/** The text without case and accents, as lists compare it (docs/api.md#lists). */
export const folded = (text: string): string => text.normalize("NFD").replaceAll(/\p{M}/gu, "").toLowerCase();

export function pageOf<Item>(all: readonly Item[], { limit, offset }: Paging): Page<Item> {
  const items = all.slice(offset, offset + limit);
  return { items, hasMore: offset + limit < all.length, nextOffset: offset + items.length };
}

/** True where a list's filters select this: `name` is its whole name, `query` a part of it or its id. */
export function isWanted(
  thing: { readonly id: string; readonly name?: string },
  { name, query }: Pick<PoolListQuery, "name" | "query">,
): boolean {
  const ownName = folded(thing.name ?? "");
  if (name !== undefined && ownName !== folded(name)) return false;
  return query === undefined || thing.id === query || ownName.includes(folded(query));
}
