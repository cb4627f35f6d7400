import { createHmac, timingSafeEqual } from "node:crypto";
import type { Millis } from "../clock.js";
import type { Secret } from "./secret.js";

/** Whoever receives the same message twice within this time knows it by its content. */
const validMs: Millis = 60_000;

const macOf = (secret: Secret, at: string, text: string): Buffer =>
  createHmac("sha256", secret.reveal()).update(`remuda message\n${at}\n${text}`).digest();

/** `<instant>.<HMAC-SHA256>`: whoever holds the cluster secret has said this text at this instant. */
export const sign = (secret: Secret, text: string, now: Millis): string => {
  const at = String(Math.round(now));
  return `${at}.${macOf(secret, at, text).toString("base64url")}`;
};

/**
 * When this was said by the clock of whoever has signed it; undefined where that was nobody with the secret.
 */
export function signedAt(
  secret: Secret,
  { text, signature }: { readonly text: string; readonly signature: string },
): Millis | undefined {
  const [at = "", given = ""] = signature.split(".");
  if (!/^\d{1,16}$/.test(at)) return undefined;
  const [expected, actual] = [macOf(secret, at, text), Buffer.from(given, "base64url")];
  return actual.length === expected.length && timingSafeEqual(actual, expected) ? Number(at) : undefined;
}

export const isRecent = (at: Millis, now: Millis): boolean => Math.abs(now - at) <= validMs;
