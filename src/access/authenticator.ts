import { bearerOf } from "../base/crypto/bearer.js";
import { makeKeyCheck } from "../base/crypto/key-check.js";
import { isKeyText, keyDigestOf } from "../base/crypto/key-text.js";
import type { Secret } from "../base/crypto/secret.js";
import { refusal } from "../base/errors.js";
import { defaultProject, findProjectId, type ProjectId } from "../base/ids.js";
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
  /** Undefined where projects are not enabled: then there is the default one only. */
  readonly projects: ActiveProjects | undefined;
}

interface ActiveProjects {
  isActive(project: ProjectId): Promise<boolean>;
}

/**
 * The key of the configuration is let in without a word to Redis, where it names no project but the default
 * one. Any other key, and any other project, is looked up anew for each request: whoever kept the answer
 * would let a deleted key in for as long. What cannot be a key is refused without a look-up.
 */
export function makeAuthenticator({
  rootKey,
  rootPerson,
  keys,
  projects,
}: AuthenticatorParts): Authenticator {
  const isRoot = makeKeyCheck(rootKey);
  const admitRoot = makeRootAdmission(rootPrincipal(rootPerson), projects);
  const admitKey = makeKeyAdmission(keys, projects !== undefined);
  return {
    admit({ authorization, project }) {
      if (isRoot(authorization)) return admitRoot(project);
      const given = bearerOf(authorization);
      if (given === undefined || !isKeyText(given)) return refusal("unauthorized");
      return admitKey(keyDigestOf(given), project);
    },
  };
}

/** Each answer that needs no look-up is made once. */
function makeRootAdmission(
  root: Principal,
  projects: ActiveProjects | undefined,
): (project: string | undefined) => Admitted | Promise<Admitted> {
  const everywhere: Admitted = { kind: "admitted", principal: root };
  const inDefault = admittedIn(root, defaultProject);
  return (named) => {
    if (named === undefined) return everywhere;
    const project = findProjectId(named);
    if (project === defaultProject) return inDefault;
    if (project === undefined || projects === undefined) return notThere(root);
    return projects
      .isActive(project)
      .then((isActive) => (isActive ? admittedIn(root, project) : notThere(root)));
  };
}

function makeKeyAdmission(keys: AuthenticatorParts["keys"], hasProjects: boolean) {
  return async (digest: string, named: string | undefined): Promise<Admitted> => {
    const project = named === undefined ? undefined : findProjectId(named);
    const found = await keys.admit(digest, project);
    if (found.kind === "unknown") return refusal("unauthorized");
    const principal = principalOfKey(found.key);
    if (found.kind === "expired") return { ...refusal("unauthorized"), principal };
    // A key of one project is about that project, whether the request names it or not.
    const { credentialScope } = principal;
    if (named !== undefined && credentialScope !== null && credentialScope !== named)
      return { ...anotherProject, principal };
    const about = project ?? credentialScope ?? defaultProject;
    const isThere = found.kind === "admitted" && (hasProjects || about === defaultProject);
    if (!isThere || (named !== undefined && project === undefined)) return notThere(principal);
    return named === undefined ? { kind: "admitted", principal } : admittedIn(principal, about);
  };
}

const anotherProject = refusal("insufficient_scope", {
  message: "This API key reaches another project only",
});
const notThere = (principal: Principal): Admitted => ({ ...refusal("project_not_found"), principal });
const admittedIn = (principal: Principal, effectiveScope: ProjectId): Admitted => ({
  kind: "admitted",
  principal: { ...principal, effectiveScope },
});

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
