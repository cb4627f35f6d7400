import { createHmac, timingSafeEqual } from "node:crypto";
import type { Millis } from "../clock.js";
import type { Secret } from "./secret.js";

/** Clocks of machines differ by less; what is sent again within it is told by its content. */
const validMs: Millis = 60_000;

const macOf = (secret: Secret, at: string, text: string): Buffer =>
  createHmac("sha256", secret.reveal()).update(`remuda message\n${at}\n${text}`).digest();

/** `<instant>.<HMAC-SHA256>`: whoever holds the cluster secret has said this text at this instant. */
export const sign = (secret: Secret, text: string, now: Millis): string => {
  const at = String(Math.round(now));
  return `${at}.${macOf(secret, at, text).toString("base64url")}`;
};

export function isSigned(
  secret: Secret,
  signed: { readonly text: string; readonly signature: string },
  now: Millis,
): boolean {
  const [at = "", given = ""] = signed.signature.split(".");
  if (!/^\d{1,16}$/.test(at) || Math.abs(now - Number(at)) > validMs) return false;
  const [expected, actual] = [macOf(secret, at, signed.text), Buffer.from(given, "base64url")];
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
