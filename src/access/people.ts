import type { Millis } from "../base/clock.js";
import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { findProjectId, type ProjectId } from "../base/ids.js";
import { isRecord } from "../base/is-record.js";
import type { Log } from "../base/log.js";
import { actions, organization, type Policy } from "./policy.js";
import type { Principal } from "./principal.js";

/** What an issuer says of whoever shows its token. */
type Claims = Readonly<Record<string, unknown>>;

export interface TokenVerifier {
  /** What a token says that is the issuer's, for us, and in force until a time. */
  verify(token: string): Promise<Done<{ readonly claims: Claims; readonly until: Millis }> | Refusal>;
}

/** Which claims say who somebody is, and what their values mean. */
export interface PeopleSettings {
  readonly idClaim: string;
  readonly emailClaim: string;
  readonly nameClaim: string;
  /** Null: everybody is of the organization. */
  readonly projectClaim: string | null;
  readonly roleClaim: string;
  readonly admins: readonly string[];
  readonly members: readonly string[];
  readonly readers: readonly string[];
  readonly defaultRole: Exclude<PersonRole, "admin">;
  readonly dashboardClients: readonly string[];
}

/** Knows people by the tokens of the configured issuer. */
export interface People {
  identify(token: string): Promise<Done<Principal> | Refusal>;
}

export const makePeople = (verifier: TokenVerifier, settings: PeopleSettings, log: Log): People => ({
  async identify(token) {
    const got = await verifier.verify(token);
    if (got.kind === "refused") return got;
    const { claims, until } = got.value;
    const found = principalOf(claims, settings);
    if (found.kind === "refused" && found.code === "unauthorized")
      log.debug({ why: `its "${settings.idClaim}" is nobody's id` }, "token refused");
    return found.kind === "refused" ? found : done({ ...found.value, expiresAt: until });
  },
});

/** Three parts that are not empty, as a signed token has and no API key. */
export const isTokenText = (text: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);

type PersonRole = "admin" | "member" | "reader" | "none";

/** Admins and members have no policy: everything in the scope. Nobody has more by a claim that is missing. */
function principalOf(claims: Claims, settings: PeopleSettings): Done<Principal> | Refusal {
  const id = textIn(claims, settings.idClaim, 255);
  if (id === undefined) return refusal("unauthorized");
  const scope = scopeOf(claims, settings);
  if (scope === undefined) return noProject;
  const role = roleOf(claims, settings);
  return done({
    method: "jwt",
    source: isOfDashboard(claims, settings) ? "dashboard" : "oauth",
    credentialId: null,
    type: "user",
    id,
    person: { id, email: emailOf(claims, settings), name: textIn(claims, settings.nameClaim, 255) ?? null },
    credentialScope: scope,
    effectiveScope: scope,
    ...(role === "member" && { isMember: true }),
    ...((role === "reader" || role === "none") && { policy: policyOf(role, scope) }),
  });
}

const noProject = refusal("insufficient_scope", { message: "The token names no project of this deployment" });

/** Undefined where a claim is to say the project, and does not. */
function scopeOf(claims: Claims, { projectClaim }: PeopleSettings): ProjectId | null | undefined {
  if (projectClaim === null) return null;
  const named = valueIn(claims, projectClaim);
  if (named === "*") return null;
  return typeof named === "string" ? findProjectId(named) : undefined;
}

/** The highest of those that are named. */
function roleOf(
  claims: Claims,
  { roleClaim, admins, members, readers, defaultRole }: PeopleSettings,
): PersonRole {
  const role = valueIn(claims, roleClaim);
  const given: readonly unknown[] = Array.isArray(role) ? role : [role];
  const isAmong = (values: readonly string[]): boolean => values.some((value) => given.includes(value));
  if (isAmong(admins)) return "admin";
  if (isAmong(members)) return "member";
  return isAmong(readers) ? "reader" : defaultRole;
}

/** What a role may do, as a key with this policy may. */
function policyOf(role: "reader" | "none", scope: ProjectId | null): Policy {
  const resource = scope === null ? `organizations/${organization}/*` : `projects/${scope}/*`;
  const given = actions.filter(
    (action) =>
      role === "reader" &&
      action.endsWith(":read") &&
      (scope === null || !action.startsWith("organizations:")),
  );
  return { statements: given.map((action) => ({ action, resource })) };
}

/** An address that the issuer says it has not verified may be anybody's. Some issuers say so by a text. */
const emailOf = (claims: Claims, { emailClaim }: PeopleSettings): string =>
  (isUnverified(claims) ? undefined : textIn(claims, emailClaim, 320)) ?? unknownEmail;
const isUnverified = ({ email_verified: isVerified = true }: Claims): boolean =>
  isVerified !== true && isVerified !== "true";
const unknownEmail = "unknown@remuda.invalid";

const isOfDashboard = ({ azp, client_id: client }: Claims, { dashboardClients }: PeopleSettings): boolean =>
  dashboardClients.some((known) => known === (azp ?? client));

/** A claim by its name, which may have dots itself, else by a dotted path through claims within claims. */
function valueIn(claims: Claims, claim: string): unknown {
  if (Object.hasOwn(claims, claim)) return claims[claim];
  return claim
    .split(".")
    .reduce<unknown>((at, key) => (isRecord(at) && Object.hasOwn(at, key) ? at[key] : undefined), claims);
}

/** It is no character, and Redis refuses JSON that has it (RFC 8259, 8.2). */
const halfPair = /\p{Surrogate}/u;

function textIn(claims: Claims, claim: string, longest: number): string | undefined {
  const value = valueIn(claims, claim);
  if (typeof value !== "string" || value === "" || value.length > longest) return undefined;
  return halfPair.test(value) ? undefined : value;
}
