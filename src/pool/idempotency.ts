import { requestDigests } from "../base/crypto/request-digests.js";
import type { Caller } from "../spec/paging.js";
import type { IdempotencyKey } from "./ports/pool-store.js";

/** What a caller's idempotency key is remembered by, where it has sent one. */
export const idempotencyKeyOf = (caller: Caller, scope: string, body: unknown): IdempotencyKey | undefined =>
  requestDigests(caller.idempotencyKey, scope, body);
