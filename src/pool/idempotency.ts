import { createHash } from "node:crypto";
import type { Caller } from "../spec/paging.js";
import type { IdempotencyKey } from "./ports/pool-store.js";

const digest = (text: string): string => createHash("sha256").update(text).digest("base64url");

/** JSON with its keys in order, so that the same body gives the same digest whatever the client's order. */
const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, inner]) => [key, canonical(inner)]),
  );
};

/** What an idempotency key is remembered by; `scope` keeps the keys of operations apart. */
export const idempotencyKeyOf = (caller: Caller, scope: string, body: unknown): IdempotencyKey | undefined =>
  caller.idempotencyKey === undefined
    ? undefined
    : { key: digest(`${scope}\n${caller.idempotencyKey}`), body: digest(JSON.stringify(canonical(body))) };
