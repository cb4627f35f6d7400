import {
  decodeJwt,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";
import type { TokenVerifier } from "../access/people.js";
import type { Clock, Millis } from "../base/clock.js";
import { done, refusal, type Refusal } from "../base/errors.js";
import { type Log, textOf } from "../base/log.js";
import { KeysUnavailable } from "./key-set.js";

interface TokenSettings {
  readonly issuer: string;
  readonly audience: string;
  /** Asymmetric ones only. */
  readonly algorithms: readonly string[];
  readonly clockToleranceMs: Millis;
  /** Null: as long as tokens say themselves. */
  readonly maxTokenAgeMs: Millis | null;
}

interface VerifierParts {
  readonly findKey: JWTVerifyGetKey;
  readonly clock: Clock;
  readonly log: Log;
}

/** Tokens with the groups of a large organization have this much; it is also most of what a head may be. */
const maxTokenLength = 12 * 1024;
/**
 * Types by which issuers mark what is to let somebody in (RFC 9068, 2.1; RFC 8725, 3.11), or nothing: a
 * logout token, say, has the same issuer, audience and signature.
 */
const types: ReadonlySet<unknown> = new Set([undefined, "jwt", "at+jwt", "application/at+jwt"]);

/** Judges tokens; who shows a bad one is not told what is wrong with it, but the log is. */
export function makeTokenVerifier(
  settings: TokenSettings,
  { findKey, clock, log }: VerifierParts,
): TokenVerifier {
  const { issuer, audience, maxTokenAgeMs, clockToleranceMs } = settings;
  const fixed = {
    issuer,
    audience,
    algorithms: [...settings.algorithms],
    clockTolerance: clockToleranceMs / 1000,
    requiredClaims: ["exp"],
    ...(maxTokenAgeMs !== null && { maxTokenAge: maxTokenAgeMs / 1000 }),
  };
  const refuse = (why: string): Refusal => {
    log.debug({ why }, "token refused");
    return refusal("unauthorized");
  };
  return {
    async verify(token) {
      if (token.length > maxTokenLength) return refuse(`it has more than ${maxTokenLength} characters`);
      if (!isFrom(issuer, token)) return refuse('its "iss" is not the configured issuer');
      try {
        const options = { ...fixed, currentDate: new Date(clock.now()) };
        const { payload, protectedHeader } = await verified(token, findKey, options);
        if (!types.has(protectedHeader.typ?.toLowerCase())) return refuse("its type lets nobody in");
        return done({ claims: payload, until: endOf(payload, maxTokenAgeMs) + clockToleranceMs });
      } catch (error) {
        // Texts of jose name the claim, and hold nothing of the token.
        return error instanceof KeysUnavailable ? noKeys : refuse(textOf(error));
      }
    },
  };
}

/** The end that a token has, or that it has by its age where that comes first. */
const endOf = ({ exp = 0, iat = 0 }: JWTPayload, maxAgeMs: Millis | null): Millis =>
  Math.min(exp * 1000, iat * 1000 + (maxAgeMs ?? Infinity));

/** What issuers have of one kind: the key in use, the one before it and the next. */
const mostTried = 4;

/** A token that names no key may be of any of the issuer's (RFC 7515, 4.1.4), which are tried in turn. */
async function verified(token: string, findKey: JWTVerifyGetKey, options: JWTVerifyOptions) {
  const found = await jwtVerify(token, findKey, options).catch(unlessOneOfSeveral);
  if (!(found instanceof errors.JWKSMultipleMatchingKeys)) return found;
  let tried = 0;
  for await (const key of found) {
    if ((tried += 1) > mostTried) break;
    const got = await jwtVerify(token, key, options).catch(unlessUnsigned);
    if (got) return got;
  }
  throw new errors.JWSSignatureVerificationFailed();
}

function unlessOneOfSeveral(error: unknown): errors.JWKSMultipleMatchingKeys {
  if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
  return error;
}

function unlessUnsigned(error: unknown): undefined {
  if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
}

const noKeys = refusal("unavailable", { message: "The issuer's keys cannot be fetched now" });

/** Looked at before any key is, so that only tokens which could be good have keys fetched. */
function isFrom(issuer: string, token: string): boolean {
  try {
    return decodeJwt(token).iss === issuer;
  } catch {
    return false;
  }
}
