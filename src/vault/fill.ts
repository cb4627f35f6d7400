import { type Static, Type } from "typebox";
import type { Millis } from "../base/clock.js";
import { type Done, refusal, type Refusal } from "../base/errors.js";
import { BrowserId, LeaseId, ProjectId, VaultId, VaultItemId } from "../base/ids.js";
import { parserOf, readonlyList } from "../base/parser.js";
import type { FillErrorCode } from "../spec/page-fill.js";

/**
 * An order is begun within this, by the clock of Redis. One that was longer on its way would be carried out
 * when its caller has been told that nobody answers, and has gone on; and whoever could see it in Redis could
 * have it carried out once more.
 */
const orderLimitMs: Millis = 5000;
interface OrderClock {
  readonly store: { now(): Promise<Millis> };
}
export const orderUntil = async ({ store }: OrderClock): Promise<Millis> =>
  (await store.now()) + orderLimitMs;

/** Refused where an order comes too late. */
export async function refuseLate(
  { store }: OrderClock,
  { until }: { readonly until: Millis },
): Promise<Refusal | undefined> {
  return (await store.now()) > until ? refusal("node_silent", { retryAfterSeconds: 1 }) : undefined;
}

/** What every order has. */
const Order = Type.Object({ project: ProjectId, until: Type.Number() });
export const orderParser = parserOf("an order to a node", Order);

/** One field of an item, and the element of the page that is to get its value. */
const FillBinding = Type.Object({ field: Type.String(), selector: Type.String() });

/**
 * What is to be filled where. It has names only: whoever holds the browser's pipe opens the values by itself
 * (`openFill`), so that none travels between daemons.
 */
const FillOrder = Type.Object({
  project: ProjectId,
  vault: VaultId,
  item: VaultItemId,
  key: Type.String(),
  /** The values are those of this version; a change that came between refuses. */
  version: Type.Integer(),
  browser: BrowserId,
  lease: LeaseId,
  until: Type.Number(),
  bindings: readonlyList(FillBinding),
  /** Absent: the only page that is open. */
  pageUrl: Type.Optional(Type.String()),
  timeoutMs: Type.Integer(),
  /** Origins of pages and frames that may be given the values; empty: all. */
  allowedOrigins: readonlyList(Type.String()),
  /** Clients are not to read the page back afterwards. */
  protectFilled: Type.Optional(Type.Literal(true)),
});
export type FillOrder = Readonly<Static<typeof FillOrder>>;
export const fillOrderParser = parserOf("an order to fill", FillOrder);

interface FieldOutcome {
  readonly index: number;
  readonly status: "filled" | "failed" | "not_attempted" | "unknown";
  readonly errorCode?: FillErrorCode;
}
export interface FillOutcome {
  readonly status: "completed" | "failed" | "unknown";
  readonly fields: readonly FieldOutcome[];
}

/** Which passkey of an item a browser is to have, for how long; for no time at all it has none any more. */
const PasskeyOrder = Type.Object({
  project: ProjectId,
  vault: VaultId,
  item: VaultItemId,
  key: Type.String(),
  version: Type.Integer(),
  field: Type.String(),
  browser: BrowserId,
  lease: LeaseId,
  until: Type.Number(),
  forMs: Type.Integer({ minimum: 0 }),
  /** The field is empty, and the first passkey that a page makes is to be kept there. */
  isRegistering: Type.Optional(Type.Boolean()),
});
export type PasskeyOrder = Readonly<Static<typeof PasskeyOrder>>;
export const passkeyOrderParser = parserOf("an order of a passkey", PasskeyOrder);

/** Fills pages of browsers. A refusal has written nothing; once a write has begun, an outcome is answered. */
export interface VaultFill {
  /** Whether this deployment can fill: else no item offers it. */
  readonly isSupported: boolean;
  fill(order: FillOrder, gone: AbortSignal): Promise<Done<FillOutcome> | Refusal>;
  /** Refused where the browser does not have it now, as far as is known. */
  passkey(order: PasskeyOrder): Promise<Done<null> | Refusal>;
}
