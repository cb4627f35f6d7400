import { createHash } from "node:crypto";

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

/** What a request is remembered by; `scope` keeps the idempotency keys of operations apart. */
export const requestDigests = (
  idempotencyKey: string | undefined,
  scope: string,
  body: unknown,
): { readonly key: string; readonly body: string } | undefined =>
  idempotencyKey === undefined
    ? undefined
    : { key: digest(`${scope}\n${idempotencyKey}`), body: digest(JSON.stringify(canonical(body))) };
