import { createLocalJWKSet, exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import type { ApiKey, ApiKeyStore } from "../../../src/access/api-key.js";
import type { GuardedLookup } from "../../../src/access/authorize.js";
import { makeAuthenticator } from "../../../src/access/authenticator.js";
import { makePeople, type PeopleSettings } from "../../../src/access/people.js";
import { systemClock } from "../../../src/base/clock.js";
import { keyDigestOf, makeKeyText } from "../../../src/base/crypto/key-text.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import { defaultProject, newApiKeyId, type ProjectId } from "../../../src/base/ids.js";
import { makeTokenVerifier } from "../../../src/oidc/verify-token.js";
import { key, makeLogBook, rootPerson } from "../http/http-server.js";

const secret = new Secret("the secret of this suite");
/** Keys as the store gives them, by digest; `expired` are judged so. */
const records = new Map<string, Awaited<ReturnType<ApiKeyStore["admit"]>>>();

/** A project beside the default one. */
export const blue = "blueblueblue" as ProjectId;
const isActive = (project: ProjectId): boolean => [defaultProject, blue].includes(project);

/** The text of a key that the store knows. */
export function knownKey(more: Partial<ApiKey> = {}, kind: "admitted" | "expired" = "admitted"): string {
  const text = makeKeyText(secret, String(records.size)).reveal();
  const record: ApiKey = {
    id: newApiKeyId(),
    name: "known",
    digest: keyDigestOf(text),
    mask: "rmd_...",
    createdAt: 1,
    createdBy: rootPerson,
    ...more,
  };
  records.set(record.digest, { kind, key: record });
  return text;
}
/** The text of a key that the store does not know: a deleted one, or one of another deployment. */
export const unknownKey = (): string => makeKeyText(secret, "nobody's").reveal();

type Pair = readonly [action: string, resource: string];
export const keyWith = (...pairs: readonly Pair[]): string => keyOf({}, pairs);
/** A key that reaches something, with a policy. */
export const keyOf = (reach: Partial<ApiKey>, pairs: readonly Pair[]): string =>
  knownKey({ ...reach, policy: { statements: pairs.map(([action, resource]) => ({ action, resource })) } });

const issuer = { issuer: "https://people.example", audience: "urn:remuda" };
const signing = await generateKeyPair("ES256", { extractable: true });
const findKey = createLocalJWKSet({ keys: [await exportJWK(signing.publicKey)] });
const verifier = makeTokenVerifier(
  { ...issuer, algorithms: ["ES256"], clockToleranceMs: 0, maxTokenAgeMs: null },
  { findKey, clock: systemClock, log: makeLogBook().log },
);

/** The token of a person. */
export const tokenOf = (claims: JWTPayload, { privateKey } = signing): Promise<string> =>
  new SignJWT({ iss: issuer.issuer, aud: issuer.audience, sub: "ada", project: "*", ...claims })
    .setProtectedHeader({ alg: "ES256" })
    .setExpirationTime(claims.exp ?? "1h")
    .sign(privateKey);
export const unsignedToken = (claims: JWTPayload): string =>
  new UnsecuredJWT({ iss: issuer.issuer, aud: issuer.audience, sub: "ada", project: "*", ...claims })
    .setExpirationTime("1h")
    .encode() + "AA";
export const otherSigner = (): ReturnType<typeof generateKeyPair> => generateKeyPair("ES256");

export const peopleSettings: PeopleSettings = {
  idClaim: "sub",
  emailClaim: "email",
  nameClaim: "name",
  projectClaim: "project",
  roleClaim: "roles",
  admins: ["admin"],
  members: ["member"],
  readers: ["reader"],
  defaultRole: "none",
  dashboardClients: ["console"],
};

export const authenticator = makeAuthenticator({
  people: makePeople(verifier, peopleSettings, makeLogBook().log),
  rootKey: new Secret(key),
  rootPerson,
  keys: {
    async admit(digest, named) {
      const found = records.get(digest) ?? { kind: "unknown" };
      if (found.kind !== "admitted" || isActive(named ?? found.key.projectId ?? defaultProject)) return found;
      return { kind: "elsewhere", key: found.key };
    },
    // Their operations ask no script that could judge.
    recall: () => undefined,
  },
  callers: {
    isLimited: false,
    admit: async (_, project) => ({ kind: isActive(project) ? "admitted" : "elsewhere" }),
  },
  hasProjects: true,
});

/** Names that things go by besides their ids. */
export const ids = {
  browsers: "browser1",
  profiles: "profile1",
  proxies: "proxy1",
  vaults: "vault1",
} as const;
/** One thing of each kind: `mine`, or its id. The browser holds the profile where a test says so. */
export function thingsWith(
  held: { id: string; save: boolean } | undefined,
  vaults: readonly string[] = [],
): GuardedLookup {
  return {
    find: async (kind, ref) =>
      !["mine", ids[kind]].includes(ref)
        ? undefined
        : { id: ids[kind], ...(kind === "browsers" && { vaults, ...(held && { profile: held }) }) },
    choose: async (kind, { id, name }) => (name === "mine" || id === ids[kind] ? ids[kind] : undefined),
  };
}
