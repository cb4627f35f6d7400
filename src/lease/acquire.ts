import type { Millis } from "../base/clock.js";
import { type Detail, type Done, done, refusal, type Refusal } from "../base/errors.js";
import type { Partition } from "../base/ids.js";
import type { PoolSummary } from "../pool/ports/partition-overview.js";
import type { PoolStore } from "../pool/ports/pool-store.js";
import type { AcquireBody, Telemetry } from "../spec/bodies.js";
import { checkStartHost, checkStartUrl } from "../spec/field-checks.js";
import { type PoolCandidate, PoolNameCache } from "../pool/lookup.js";
import { type OtlpDestinationRefs, resolveTelemetry } from "../registry/destinations/selectors.js";
import { type LeaseRequest, waiterOf } from "./lease-request.js";
import { finalAnswer, LeaseAttempt, type LendPorts, type LendResult } from "./lease-attempt.js";
import type { Granted, TimedOut } from "../pool/operations.js";
import { type Caller, idempotencyKeyOf } from "../spec/caller.js";
import { checkTelemetry } from "../spec/telemetry.js";
import { notSupported, unsupportedOfAcquire } from "../spec/unsupported-fields.js";

interface AcquirePorts extends LendPorts {
  readonly destinations: OtlpDestinationRefs;
  readonly maxWaitMs: Millis;
}

type AcquireResult = Granted | TimedOut | Refusal;
const timedOut: TimedOut = { kind: "timed-out" };

/** An acquire of one pool that the caller may mean. */
interface PoolAcquire {
  readonly pool: PoolCandidate;
  readonly body: AcquireBody;
  readonly caller: Caller;
  /** Why it is refused, unless it is a repeat. */
  readonly refused?: Refusal | undefined;
}

/** Lends a browser of a pool, or waits for one (docs/api.md#acquire). */
export const makeAcquire = (ports: AcquirePorts) => {
  const names = new PoolNameCache(ports.projects);
  return async (ref: string, body: AcquireBody, caller: Caller): Promise<AcquireResult> => {
    const fault = refusedBody(body);
    if (fault) return fault;
    for (const candidate of names.candidates(ref)) {
      const pool = await candidate;
      if (!pool) continue;
      const outcome = await acquireFrom(ports, { pool, body, caller });
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
  { poolStore, sessionReader }: AcquirePorts,
  { pool }: PoolAcquire,
  startUrl: string,
): Promise<Refusal | undefined> {
  const terms = await poolStore.findTerms(pool.partition);
  const faults: Detail[] = [];
  if (terms && isMeant(terms, pool))
    checkStartHost(faults, startUrl, (await sessionReader.find(pool.partition, terms.templateKey))?.network);
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : undefined;
}

/** Its telemetry names its destination by the id. */
async function judged(
  ports: AcquirePorts,
  acquire: PoolAcquire,
): Promise<Done<Telemetry | null | undefined> | Refusal> {
  const { start_url: startUrl, telemetry: asked } = acquire.body;
  const refused = startUrl ? await refusedStart(ports, acquire, startUrl) : undefined;
  if (refused) return refused;
  const { telemetry, faults } = asked
    ? await resolveTelemetry(ports.destinations, asked)
    : { telemetry: asked, faults: [] };
  return faults.length > 0 ? refusal("bad_request", { details: faults }) : done(telemetry);
}

/** What a first request is refused for now is no matter to its repeat, which has its lease or its place. */
async function acquireFrom(ports: AcquirePorts, acquire: PoolAcquire): Promise<AcquireResult> {
  const asked = await judged(ports, acquire);
  if (asked.kind === "done")
    return await acquireAs(ports, acquire, leaseRequestOf(ports, acquire, asked.value));
  const request = leaseRequestOf(ports, acquire, undefined);
  const key = request.idempotencyKey?.key;
  const isRepeat = key !== undefined && (await ports.poolStore.findByKey(request.partition, key));
  return isRepeat ? await acquireAs(ports, { ...acquire, refused: asked }, request) : asked;
}

async function acquireAs(
  ports: AcquirePorts,
  acquire: PoolAcquire,
  request: LeaseRequest,
): Promise<AcquireResult> {
  const opened = await LeaseAttempt.open(ports, request);
  if (opened.kind === "refused") {
    const isLost = opened.code === "name_taken" && !(await isThere(ports, acquire.pool));
    return isLost ? refusal("pool_not_found") : opened;
  }
  const attempt = opened.value;
  const result = await attempt.end(lendFrom(ports, acquire, attempt));
  if (result.kind !== "unserved") return result;
  return result.why === "deleted" ? refusal("pool_not_found", { message: "The pool was deleted" }) : timedOut;
}

function leaseRequestOf(
  ports: AcquirePorts,
  { pool, body, caller }: PoolAcquire,
  telemetry: Telemetry | null | undefined,
): LeaseRequest {
  const idempotencyKey = idempotencyKeyOf(caller, `acquire ${pool.id}`, body);
  const { name, tags, start_url: startUrl, protect_filled: protectFilled } = body;
  const { partition } = pool;
  const details = { name, tags, startUrl, telemetry, protectFilled };
  const waiter = waiterOf(ports, details, idempotencyKey ? { caller, idempotencyKey } : { caller });
  return idempotencyKey ? { caller, idempotencyKey, partition, waiter } : { caller, partition, waiter };
}

/** Asks the store once, and waits where that has put the request in line. */
async function lendFrom(
  ports: AcquirePorts,
  { pool, body, refused }: PoolAcquire,
  attempt: LeaseAttempt,
): Promise<LendResult<TimedOut | Refusal>> {
  const asked = storeRequestOf(attempt.request, { pool, body, refused });
  const reply = await attempt.ask(() => ports.poolStore.acquire(pool.partition, asked));
  switch (reply.kind) {
    case "refused":
      return finalAnswer(reply);
    case "granted":
      return await attempt.grant(reply);
    case "waiting":
      return await attempt.wait(reply, await limitOf(ports, pool.partition, body));
    case "none":
      return finalAnswer(refused ?? timedOut);
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

const storeRequestOf = (
  { waiter, idempotencyKey, caller: { admission } }: LeaseRequest,
  { pool, body, refused }: Omit<PoolAcquire, "caller">,
): Parameters<PoolStore["acquire"]>[1] => ({
  pool: pool.id,
  waiter,
  mayWait: body.acquire_timeout_seconds !== 0,
  ...(pool.name === undefined ? {} : { name: pool.name }),
  ...(idempotencyKey ? { idempotencyKey } : {}),
  ...(refused ? { isRepeatOnly: true } : {}),
  admission,
});

/** A name is reserved before it is known whether the candidate is the pool that is meant. */
async function isThere({ poolStore }: AcquirePorts, pool: PoolCandidate): Promise<boolean> {
  const found = await poolStore.findTerms(pool.partition);
  return found !== undefined && isMeant(found, pool);
}

/** A candidate that was found by its name may have another by now. */
const isMeant = (terms: Pick<PoolSummary, "id" | "name">, { id, name }: PoolCandidate): boolean =>
  terms.id === id && (name === undefined || terms.name === name);

async function limitOf(ports: AcquirePorts, partition: Partition, body: AcquireBody): Promise<Millis> {
  if (body.acquire_timeout_seconds !== undefined)
    return Math.min(body.acquire_timeout_seconds * 1000, ports.maxWaitMs);
  const rate = (await ports.poolStore.findTerms(partition))?.fillRatePerMinute ?? 0;
  // The time in which the whole pool fills at its rate, which is a percentage of the pool per minute.
  return rate > 0 ? Math.min((100 / rate) * 60_000, ports.maxWaitMs) : ports.maxWaitMs;
}
