import { bearerOf } from "../base/crypto/bearer.js";
import { makeKeyCheck } from "../base/crypto/key-check.js";
import { isKeyText, keyDigestOf } from "../base/crypto/key-text.js";
import type { Secret } from "../base/crypto/secret.js";
import { refusal } from "../base/errors.js";
import { defaultProject } from "../base/ids.js";
import type { ApiKey, ApiKeyStore } from "./api-key.js";
import {
  type Admitted,
  type Authenticator,
  type Person,
  type Principal,
  rootPrincipal,
} from "./principal.js";

interface AuthenticatorParts {
  /** The key of the configuration. */
  readonly rootKey: Secret;
  /** Who answers for what is done with it. */
  readonly rootPerson: Person;
  readonly keys: Pick<ApiKeyStore, "admit">;
}

/**
 * The key of the configuration is let in without a word to Redis. Any other is looked up anew for each
 * request: whoever kept the answer would let a deleted key in for as long. What cannot be a key is refused
 * without a look-up.
 */
export function makeAuthenticator({ rootKey, rootPerson, keys }: AuthenticatorParts): Authenticator {
  const isRoot = makeKeyCheck(rootKey);
  const admitRoot = makeRootAdmission(rootPrincipal(rootPerson));
  return {
    admit({ authorization, project }) {
      if (isRoot(authorization)) return admitRoot(project);
      const given = bearerOf(authorization);
      if (given === undefined || !isKeyText(given)) return refusal("unauthorized");
      return admitKey(keys, keyDigestOf(given), project);
    },
  };
}

/** Each answer is made once. */
function makeRootAdmission(root: Principal): (project: string | undefined) => Admitted {
  const everywhere = inProject(root, undefined);
  const inDefault = inProject(root, defaultProject);
  return (project) => {
    if (project === undefined) return everywhere;
    return project === defaultProject ? inDefault : inProject(root, project);
  };
}

async function admitKey(
  keys: AuthenticatorParts["keys"],
  digest: string,
  project: string | undefined,
): Promise<Admitted> {
  const found = await keys.admit(digest);
  if (found.kind === "unknown") return refusal("unauthorized");
  const principal = principalOfKey(found.key);
  if (found.kind === "expired") return { ...refusal("unauthorized"), principal };
  return inProject(principal, project);
}

function principalOfKey({ id, createdBy, projectId, policy }: ApiKey): Principal {
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

/** A key of one project is about that project, whether the request names it or not. */
function inProject(principal: Principal, named: string | undefined): Admitted {
  const { credentialScope } = principal;
  if (named !== undefined && credentialScope !== null && credentialScope !== named)
    return {
      ...refusal("insufficient_scope", { message: "This API key reaches another project only" }),
      principal,
    };
  const project = named ?? credentialScope;
  if (project === null) return { kind: "admitted", principal };
  if (project !== defaultProject) return { ...refusal("project_not_found"), principal };
  return { kind: "admitted", principal: { ...principal, effectiveScope: defaultProject } };
}
