import { makeKeyCheck } from "../base/crypto/key-check.js";
import type { Secret } from "../base/crypto/secret.js";
import { refusal } from "../base/errors.js";
import { defaultProject } from "../base/ids.js";
import { type Authenticator, type Admitted, type Person, rootPrincipal } from "./principal.js";

interface AuthenticatorParts {
  /** The key of the configuration. */
  readonly rootKey: Secret;
  /** Who answers for what is done with it. */
  readonly rootPerson: Person;
}

/** Lets the key of the configuration in without a word to Redis. */
export function makeAuthenticator({ rootKey, rootPerson }: AuthenticatorParts): Authenticator {
  const isRoot = makeKeyCheck(rootKey);
  const root = rootPrincipal(rootPerson);
  const inDefault: Admitted = { kind: "admitted", principal: { ...root, effectiveScope: defaultProject } };
  const everywhere: Admitted = { kind: "admitted", principal: root };
  const unknownProject: Admitted = { ...refusal("project_not_found"), principal: root };
  return {
    admit({ authorization, project }) {
      if (!isRoot(authorization)) return refusal("unauthorized");
      if (project === undefined) return everywhere;
      return project === defaultProject ? inDefault : unknownProject;
    },
  };
}
