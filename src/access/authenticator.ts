import { hash } from "node:crypto";
import { bearerOf } from "../base/crypto/bearer.js";
import { makeKeyCheck } from "../base/crypto/key-check.js";
import { hasKeyForm, isKeyText, keyDigestOf } from "../base/crypto/key-text.js";
import type { Secret } from "../base/crypto/secret.js";
import { refusal } from "../base/errors.js";
import { findProjectId, type ProjectId } from "../base/ids.js";
import { type UnjudgedRequest, CallerAdmission, type CallerStore } from "./admission.js";
import type { ApiKey, ApiKeyStore } from "./api-key.js";
import { deferAdmission } from "./deferred-admission.js";
import { isTokenText, type People } from "./people.js";
import {
  type Admitted,
  type Authenticator,
  type JudgedKey,
  type Person,
  type Principal,
  rootPrincipal,
} from "./principal.js";

interface AuthenticatorParts {
  /** The key of the configuration. */
  readonly rootKey: Secret;
  /** Who answers for what is done with it. */
  readonly rootPerson: Person;
  readonly keys: Pick<ApiKeyStore, "admit" | "recall">;
  /** Undefined where no issuer is configured. */
  readonly people?: People | undefined;
  /** Asked about whoever needs no look-up. */
  readonly callers: CallerStore;
  /** False where projects are not enabled: then there is the default one only. */
  readonly hasProjects: boolean;
}

/**
 * The key of the configuration is let in without a word to Redis, where it names no project but the default
 * one and the request has no rate. Any other key is looked up anew for each request: whoever kept the answer
 * would let a deleted key in for as long. What cannot be a key is refused without a look-up. Who the issuer
 * of people's tokens is, and whether it can be reached, is nothing to a key.
 */
export function makeAuthenticator(parts: AuthenticatorParts): Authenticator {
  const isRoot = makeKeyCheck(parts.rootKey);
  // Whether the root key differs in form from keys of the API: then a text of that form need not be compared
  // with it.
  const isRootApart = !isKeyText(parts.rootKey.reveal());
  const root = rootPrincipal(parts.rootPerson);
  const admission = new CallerAdmission(parts.callers, parts.hasProjects);
  const { people } = parts;
  const admitPerson = makePersonAdmission(admission);
  const admitKey = makeKeyAdmission(parts.keys, admission);
  return {
    admit({ authorization, project: named, isUncounted = false }) {
      const given = bearerOf(authorization);
      if (given === undefined) return refusal("unauthorized");
      const isKey = isKeyText(given);
      const asked = { named, isUncounted };
      if (!(isKey && isRootApart) && isRoot(given)) return admission.known(root, "root", asked);
      if (people && isTokenText(given)) return admitPerson(people, given, asked);
      return isKey ? admitKey(keyDigestOf(given), asked) : refusal("unauthorized");
    },
    defer({ authorization, project: named }) {
      const given = isRootApart ? bearerOf(authorization) : undefined;
      if (given === undefined || !hasKeyForm(given)) return undefined;
      // A key that is known has a good checksum.
      const digest = keyDigestOf(given);
      const key = parts.keys.recall(digest);
      // What a policy allows may have to be looked up: those requests are admitted first.
      if (!key || key.policy) return undefined;
      const principal = principalOfKey(key);
      const presumed = admission.settle(principal, named, { isActive: true });
      if (presumed.kind === "refused") return undefined;
      return deferAdmission({
        principal: presumed.principal,
        key: judgedKeyOf(key, admission.projectOf(principal, named)),
        look: () => admitKey(digest, { named, isUncounted: false }),
      });
    },
  };
}

const makePersonAdmission =
  (admission: CallerAdmission) =>
  async (people: People, token: string, asked: UnjudgedRequest): Promise<Admitted> => {
    const got = await people.identify(token);
    if (got.kind === "refused") return got;
    // An issuer may give ids of any form.
    const caller = `person:${hash("sha256", got.value.id, "base64url")}`;
    return admission.known(got.value, caller, asked);
  };

const makeKeyAdmission =
  (keys: AuthenticatorParts["keys"], admission: CallerAdmission) =>
  async (digest: string, { named, isUncounted }: UnjudgedRequest): Promise<Admitted> => {
    const project = named === undefined ? undefined : findProjectId(named);
    const found = await keys.admit(digest, project, isUncounted);
    if (found.kind === "unknown") return refusal("unauthorized");
    const principal = principalOfKey(found.key);
    if (found.kind === "expired") return { ...refusal("unauthorized"), principal };
    return admission.settle(principal, named, { isActive: found.kind !== "elsewhere", rate: found.rate });
  };

/** Principals by the record of their key, which the store gives as the same one until the key is changed. */
const principals = new WeakMap<ApiKey, Principal>();

function principalOfKey(key: ApiKey): Principal {
  const known = principals.get(key);
  if (known) return known;
  const made = makePrincipal(key);
  principals.set(key, made);
  return made;
}

function makePrincipal({ id, createdBy, projectId, policy }: ApiKey): Principal {
  const scope = projectId ?? null;
  return {
    method: "api_key",
    source: "api_key",
    credentialId: id,
    type: "api_key",
    id,
    person: createdBy,
    credentialScope: scope,
    effectiveScope: scope,
    ...(policy && { policy }),
  };
}

/** The same one for all requests of a key that are about the same project as the one before. */
const judgedKeys = new WeakMap<ApiKey, JudgedKey>();

function judgedKeyOf(key: ApiKey, project: ProjectId): JudgedKey {
  const known = judgedKeys.get(key);
  if (known?.project === project) return known;
  const made = { digest: key.digest, project };
  judgedKeys.set(key, made);
  return made;
}
