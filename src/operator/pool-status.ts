import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { timestampOf, type Millis } from "../base/clock.js";
import type { BrowserPool, Condition, PoolStatus } from "./browser-pool.js";
import type { RemotePool } from "./pool-api.js";

/** The pool of a resource as it was last read, if it is known. */
export type KnownPool = RemotePool | "absent" | undefined;

/** What is known of a resource's pool after it was reconciled. */
export type Outcome =
  | { readonly kind: "there"; readonly pool: RemotePool }
  | {
      /**
       * `refused`: the API does not take what the resource says. `leased`: the pool is being deleted, and
       * waits for leases.
       */
      readonly kind: "refused" | "unreachable" | "leased";
      readonly message: string;
      readonly pool: KnownPool;
    };

interface Truth {
  readonly status: Condition["status"];
  readonly reason: string;
  readonly message: string;
}
const isTrue = (reason: string, message: string): Truth => ({ status: "True", reason, message });
const isFalse = (reason: string, message = ""): Truth => ({ status: "False", reason, message });

type Truths = Readonly<Record<"Ready" | "Progressing" | "Degraded", Truth>>;

/** Reasons of the API's `fill` that no waiting cures, as conditions of Kubernetes call them. */
const faults: Readonly<Record<string, string>> = {
  capacity: "NoCapacity",
  launch_failing: "LaunchFailing",
  not_supported: "NotSupported",
};

function truthsOfPool({ size, existing, fill }: RemotePool): Truths {
  const lacking = Math.max(0, size - existing);
  if (lacking === 0)
    return {
      Ready: isTrue("AtSize", `All ${size} browsers exist`),
      Progressing: isFalse("AtSize"),
      Degraded: isFalse("AtSize"),
    };
  const told = `${existing} of ${size} browsers exist`;
  const fault = faults[fill?.reason ?? ""];
  const why = fill?.lastError ? `${told}: ${fill.lastError}` : told;
  return {
    Ready: isFalse("BelowSize", told),
    Progressing: fault ? isFalse(fault, why) : isTrue("Filling", told),
    Degraded: fault ? isTrue(fault, why) : isFalse("Filling"),
  };
}

function truthsOf(outcome: Outcome): Truths {
  if (outcome.kind === "there") return truthsOfPool(outcome.pool);
  if (outcome.kind === "leased")
    return {
      Ready: isFalse("Deleting", outcome.message),
      Progressing: isTrue("WaitingForLeases", outcome.message),
      Degraded: isFalse("Deleting"),
    };
  const reason = outcome.kind === "refused" ? "Refused" : "ApiUnavailable";
  const status = outcome.kind === "refused" ? "False" : "Unknown";
  return {
    Ready: { status, reason, message: outcome.message },
    Progressing: { status, reason, message: outcome.message },
    Degraded: isTrue(reason, outcome.message),
  };
}

/** A condition keeps the time of its last change while its status stays. */
function conditionsOf({ metadata, status }: BrowserPool, truths: Truths, now: Millis): readonly Condition[] {
  return Object.entries(truths).map(([type, truth]) => {
    const before = status?.conditions?.find((condition) => condition.type === type);
    const isSame = before?.status === truth.status;
    return {
      type,
      ...truth,
      message: truth.message.slice(0, 1024),
      lastTransitionTime: isSame ? before.lastTransitionTime : timestampOf(now),
      observedGeneration: metadata.generation,
    };
  });
}

/** Chooses no pod at all: a HorizontalPodAutoscaler asks for a selector, and browsers are not pods. */
const selectorOf = ({ metadata }: BrowserPool): string => `remuda.dev/browsers-of=${metadata.uid}`;

/** The id of one that is gone is kept: the next one is made under another key. */
function poolFields(pool: KnownPool): PoolStatus {
  if (pool === undefined) return {};
  if (pool === "absent") return { replicas: 0, idle: 0, leased: 0, launching: 0, waiting: 0 };
  const { id: poolId, existing: replicas, idle, leased, launching, waiting } = pool;
  return { poolId, replicas, idle, leased, launching, waiting };
}

const sorted = (_key: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value;

/** Stands for what a pool has in the fields that the resource names, in whatever order the API gives them. */
function digestOf({ spec: { pool: named = {} } }: BrowserPool, { configuration }: RemotePool): string {
  const had = Object.entries(configuration).filter(([field]) => Object.hasOwn(named, field));
  return createHash("sha256")
    .update(JSON.stringify(Object.fromEntries(had), sorted))
    .digest("base64url");
}

/**
 * Whether a pool is what was made of this generation, and has kept it: somebody may have made another in its
 * place, renamed or changed it, and a Redis that has failed over may have an earlier configuration of it.
 */
export const isApplied = (resource: BrowserPool, pool: RemotePool): boolean =>
  resource.status?.appliedGeneration === resource.metadata.generation &&
  resource.status.poolId === pool.id &&
  resource.metadata.name === pool.name &&
  resource.status.appliedDigest === digestOf(resource, pool) &&
  pool.size === resource.spec.replicas;

/** A generation that the API refuses is no longer what the pool has, even if it was. */
function appliedFields(resource: BrowserPool, outcome: Outcome): PoolStatus {
  const { status: before = {}, metadata } = resource;
  if (outcome.kind === "there")
    return { appliedGeneration: metadata.generation, appliedDigest: digestOf(resource, outcome.pool) };
  const { appliedGeneration, appliedDigest } = before;
  if (outcome.kind === "refused" && appliedGeneration === metadata.generation) return {};
  return {
    ...(appliedGeneration !== undefined && { appliedGeneration }),
    ...(appliedDigest !== undefined && { appliedDigest }),
  };
}

/** The status that a resource is to have, or undefined where it has it already. */
export function nextStatus(resource: BrowserPool, outcome: Outcome, now: Millis): PoolStatus | undefined {
  const { status: before = {}, metadata } = resource;
  const { appliedGeneration: _generation, appliedDigest: _digest, ...kept } = before;
  const next: PoolStatus = {
    replicas: 0,
    ...kept,
    ...appliedFields(resource, outcome),
    ...poolFields(outcome.pool),
    observedGeneration: metadata.generation,
    selector: selectorOf(resource),
    conditions: conditionsOf(resource, truthsOf(outcome), now),
  };
  return isDeepStrictEqual(next, before) ? undefined : next;
}
