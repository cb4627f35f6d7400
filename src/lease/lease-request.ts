import { keyOf } from "../access/principal.js";
import { type ControlId, newLeaseId, type Partition } from "../base/ids.js";
import { childOf, traceText } from "../base/trace-context.js";
import type { IdempotencyKey, Waiter } from "../pool/ports/pool-store.js";
import type { Telemetry } from "../spec/bodies.js";
import type { Caller } from "../spec/caller.js";

/** A lease that a caller asks for. */
export interface LeaseRequest {
  readonly partition: Partition;
  readonly waiter: Waiter;
  readonly caller: Caller;
  readonly idempotencyKey?: IdempotencyKey;
}

interface SessionDetails {
  readonly name?: string | undefined;
  readonly tags?: Readonly<Record<string, string>> | undefined;
  readonly startUrl?: string | undefined;
  readonly telemetry?: Telemetry | null | undefined;
  readonly protectFilled?: boolean | undefined;
}

/** Every acquire makes one, so its fields are assigned: spreading objects is slower. */
export function waiterOf(
  { control }: { readonly control: ControlId },
  { name, tags, startUrl, telemetry, protectFilled }: SessionDetails,
  { caller, idempotencyKey }: Pick<LeaseRequest, "caller" | "idempotencyKey">,
): Waiter {
  const waiter: { -readonly [Field in keyof Waiter]: Waiter[Field] } = {
    id: caller.request,
    lease: newLeaseId(),
    control,
    connection: caller.request,
  };
  if (idempotencyKey) waiter.key = idempotencyKey.key;
  if (name !== undefined) waiter.name = name;
  if (tags && Object.keys(tags).length > 0) waiter.tags = JSON.stringify(tags);
  if (startUrl) waiter.startUrl = startUrl;
  if (telemetry && Object.keys(telemetry).length > 0) waiter.telemetry = JSON.stringify(telemetry);
  if (protectFilled) waiter.protectFilled = true;
  const holder = keyOf(caller.principal);
  if (holder !== undefined) waiter.holder = holder;
  const { trace } = caller;
  if (trace?.isSampled) waiter.trace = traceText(childOf(trace));
  return waiter;
}
