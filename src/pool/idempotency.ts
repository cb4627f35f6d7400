import { principalKey } from "../access/principal.js";
import { requestDigests } from "../base/crypto/request-digests.js";
import type { Caller } from "../spec/caller.js";
import type { IdempotencyKey } from "./ports/pool-store.js";

/**
 * What a caller's idempotency key is remembered by, where it has sent one: its own, so that nobody is lent a
 * browser that another was, by sending what that one has sent.
 */
export const idempotencyKeyOf = (caller: Caller, scope: string, body: unknown): IdempotencyKey | undefined =>
  requestDigests(caller.idempotencyKey, `${scope} as ${principalKey(caller.principal)}`, body);
