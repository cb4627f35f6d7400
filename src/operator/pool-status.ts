import { isDeepStrictEqual } from "node:util";
import { timestampOf, type Millis } from "../base/clock.js";
import type { BrowserPool, Condition, PoolStatus } from "./browser-pool.js";
import type { RemotePool } from "./pool-api.js";

/** What is known of a resource's pool after it was reconciled. */
export type Outcome =
  | { readonly kind: "there"; readonly pool: RemotePool }
  /** The API does not take what the resource says. */
  | { readonly kind: "refused"; readonly message: string; readonly pool?: RemotePool }
  | { readonly kind: "unreachable"; readonly message: string }
  /** It is being deleted, and waits for leases. */
  | { readonly kind: "leased"; readonly message: string };

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

const poolFields = (pool: RemotePool | undefined): PoolStatus =>
  pool
    ? {
        poolId: pool.id,
        replicas: pool.existing,
        idle: pool.idle,
        leased: pool.leased,
        launching: pool.launching,
        waiting: pool.waiting,
      }
    : {};

/** The status that a resource is to have, or undefined where it has it already. */
export function nextStatus(resource: BrowserPool, outcome: Outcome, now: Millis): PoolStatus | undefined {
  const { status: before = {}, metadata } = resource;
  const next: PoolStatus = {
    ...before,
    ...poolFields("pool" in outcome ? outcome.pool : undefined),
    observedGeneration: metadata.generation,
    ...(outcome.kind === "there" && { appliedGeneration: metadata.generation }),
    replicas: ("pool" in outcome ? outcome.pool?.existing : before.replicas) ?? 0,
    selector: selectorOf(resource),
    conditions: conditionsOf(resource, truthsOf(outcome), now),
  };
  return isDeepStrictEqual(next, before) ? undefined : next;
}
