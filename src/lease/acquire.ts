import type { Millis } from "../base/clock.js";
import { type Detail, refusal, type Refusal } from "../base/errors.js";
import type { Partition } from "../base/ids.js";
import type { AcquireBody } from "../spec/bodies.js";
import { checkStartHost, checkStartUrl } from "../spec/field-checks.js";
import { type PoolCandidate, PoolNameCache } from "../pool/lookup.js";
import { idempotencyKeyOf } from "../pool/idempotency.js";
import { type OtlpDestinationRefs, resolveTelemetry } from "../registry/destinations/selectors.js";
import { type LeaseRequest, waiterOf } from "./lease-request.js";
import { finalAnswer, type LeaseReply, lend, type LendPorts } from "./lend.js";
import type { Granted, TimedOut } from "../pool/operations.js";
import type { Caller } from "../spec/paging.js";
import { checkTelemetry } from "../spec/telemetry.js";
import { notSupported, unsupportedOfAcquire } from "../spec/unsupported-fields.js";

export interface AcquirePorts extends LendPorts {
  readonly destinations: OtlpDestinationRefs;
  readonly maxWaitMs: Millis;
}

type Outcome = Granted | TimedOut | Refusal;
const timedOut: TimedOut = { kind: "timed-out" };

interface Ask {
  readonly pool: PoolCandidate;
  readonly body: AcquireBody;
  readonly caller: Caller;
}

/** Lends a browser of a pool, or waits for one (docs/api.md#acquire). */
export const makeAcquire = (ports: AcquirePorts) => {
  const names = new PoolNameCache(ports.projects);
  return async (ref: string, body: AcquireBody, caller: Caller): Promise<Outcome> => {
    const fault = refusedBody(body);
    if (fault) return fault;
    for (const candidate of names.candidates(ref)) {
      const pool = await candidate;
      if (!pool) continue;
      const outcome = await acquireIn(ports, { pool, body, caller });
      if (outcome.kind !== "refused" || outcome.code !== "pool_not_found") return outcome;
    }
    return refusal("pool_not_found");
  };
};

function refusedBody(body: AcquireBody): Refusal | undefined {
  const unsupported = unsupportedOfAcquire(body);
  if (unsupported.length > 0) return notSupported(unsupported);
  const faults: Detail[] = [];
  checkStartUrl(faults, body.start_url ?? "");
  checkTelemetry(faults, body.telemetry);
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : undefined;
}

/**
 * A start page outside the pool's allowlist. The script that lends does not look at it: the browser's way out
 * is what holds.
 */
async function refusedStart(
  { poolStore, configs }: AcquirePorts,
  { pool, body }: Ask,
): Promise<Refusal | undefined> {
  if (!body.start_url) return undefined;
  const terms = await poolStore.findTerms(pool.partition);
  const faults: Detail[] = [];
  if (terms?.id === pool.id)
    checkStartHost(faults, body.start_url, (await configs.find(pool.partition, terms.launchConfig))?.network);
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : undefined;
}

async function acquireIn(ports: AcquirePorts, ask: Ask): Promise<Outcome> {
  const { pool, body, caller } = ask;
  const refused = await refusedStart(ports, ask);
  if (refused) return refused;
  const keyed = idempotencyKeyOf(caller, `acquire ${pool.id}`, body);
  const asker = keyed ? { caller, keyed } : { caller };
  const { name, tags, start_url: startUrl } = body;
  const { telemetry, faults } = await resolveTelemetry(ports.destinations, body.telemetry);
  if (faults.length > 0) return refusal("bad_request", { details: faults });
  const waiter = waiterOf(ports, { name, tags, startUrl, telemetry }, asker);
  const wanted: LeaseRequest = keyed
    ? { caller, keyed, partition: pool.partition, waiter }
    : { caller, partition: pool.partition, waiter };
  const lent = await lend(ports, wanted, {
    requestLease: () => askFor(ports, wanted, ask),
    limitMs: () => limitOf(ports, wanted.partition, body),
  });
  if (lent.kind === "refused" && lent.code === "name_taken" && !(await isThere(ports, pool)))
    return refusal("pool_not_found");
  if (lent.kind !== "unserved") return lent;
  return lent.why === "deleted" ? refusal("pool_not_found", { message: "The pool was deleted" }) : timedOut;
}

async function askFor(
  { poolStore }: AcquirePorts,
  { partition, waiter, keyed }: LeaseRequest,
  { pool, body }: Ask,
): Promise<LeaseReply<TimedOut | Refusal>> {
  const reply = await poolStore.acquire(partition, {
    pool: pool.id,
    waiter,
    mayWait: body.acquire_timeout_seconds !== 0,
    ...(pool.name === undefined ? {} : { name: pool.name }),
    ...(keyed ? { keyed } : {}),
  });
  switch (reply.kind) {
    case "granted":
      return reply;
    case "waiting":
      return reply;
    case "none":
      return finalAnswer(timedOut);
    case "missing":
      return finalAnswer(refusal("pool_not_found"));
    case "full":
      return finalAnswer(refusal("too_many_waiters", { retryAfterSeconds: 1 }));
    case "mismatch":
      return finalAnswer(refusal("idempotency_mismatch"));
    case "over":
      return finalAnswer(refusal("lease_ended"));
    case "unsupported":
      return finalAnswer(notSupported(reply.fields));
  }
}

/** A name is reserved before it is known whether the candidate is the pool that is meant. */
async function isThere(
  { poolStore }: AcquirePorts,
  { id, partition, name }: PoolCandidate,
): Promise<boolean> {
  const found = await poolStore.findTerms(partition);
  return found?.id === id && (name === undefined || found.name === name);
}

async function limitOf(ports: AcquirePorts, partition: Partition, body: AcquireBody): Promise<Millis> {
  if (body.acquire_timeout_seconds !== undefined)
    return Math.min(body.acquire_timeout_seconds * 1000, ports.maxWaitMs);
  const rate = (await ports.poolStore.findTerms(partition))?.fillRatePerMinute ?? 0;
  // The time in which the whole pool fills at its rate, which is a percentage of the pool per minute.
  return rate > 0 ? Math.min((100 / rate) * 60_000, ports.maxWaitMs) : ports.maxWaitMs;
}
