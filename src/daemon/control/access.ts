import type { GuardedLookup } from "../../access/authorize.js";
import type { KnownProjects } from "../../access/api-key.js";
import { makeApiKeyOperations } from "../../access/api-key-operations.js";
import { entitlementsOf } from "../../access/entitlements.js";
import { FailedLogins } from "../../access/failed-logins.js";
import { makeLimitOperations } from "../../access/organization-limits.js";
import { makePeople, type People } from "../../access/people.js";
import { KeySet } from "../../oidc/key-set.js";
import { makeTokenVerifier } from "../../oidc/verify-token.js";
import { makeAuthenticator } from "../../access/authenticator.js";
import type { PolicyTargets } from "../../access/policy.js";
import type { Person } from "../../access/principal.js";
import { firstProject } from "../../access/project.js";
import type { ProjectId } from "../../base/ids.js";
import type { Config } from "../../config/config.js";
import type { HttpDeps, OperationsInProject } from "../../http/deps.js";
import { guardedBy } from "../../pool/session.js";
import { resolveProfile } from "../../registry/profiles/selectors.js";
import { findVault } from "../../registry/vaults/selectors.js";
import type { ProjectStores } from "../../store/project/projects.js";
import { namesIn } from "./projects.js";
import type { DaemonParts } from "../parts.js";

/** Who is let in, the keys that let them in, and what policies speak of. */
export function openAccess(
  shared: DaemonParts,
  operationsIn: HttpDeps["operationsIn"],
): Pick<
  HttpDeps,
  | "authenticator"
  | "failedLogins"
  | "endedAmong"
  | "apiKeys"
  | "thingsIn"
  | "limits"
  | "entitlements"
  | "creations"
> {
  const { config, keys, stores } = shared;
  const { apiKeys: store, callers, directory, limits, creations } = stores;
  const known = config.projects.enabled ? namesIn(directory) : onlyDefault;
  const thingsIn = (project: ProjectId): GuardedLookup =>
    makeThings(stores.projects.of(project), operationsIn(project));
  return {
    authenticator: makeAuthenticator({
      rootKey: keys.api,
      rootPerson: rootPersonOf(config),
      keys: store,
      people: openPeople(shared),
      callers,
      hasProjects: config.projects.enabled,
    }),
    failedLogins: new FailedLogins(config.limits.failedLoginsPerMinute, shared.clock),
    endedAmong: (ids) => store.endedAmong(ids),
    apiKeys: makeApiKeyOperations({
      store,
      projects: known,
      secret: keys.cluster,
      targets: targetsAmong(known, thingsIn),
    }),
    thingsIn,
    limits: makeLimitOperations({
      store: limits,
      ...config.limits,
      countVaults: (scope) => stores.projects.countVaults(scope),
    }),
    entitlements: entitlementsOf({ ...config.limits, ...config.vault }),
    creations,
  };
}

/** Undefined where no issuer is configured: there are API keys only. */
function openPeople({ config, clock, log }: DaemonParts): People | undefined {
  const { oidc } = config.access;
  const { issuer, audience } = oidc;
  if (issuer === null || audience === null) return undefined;
  const keys = new KeySet({ ...oidc, issuer, clock, log });
  const verifier = makeTokenVerifier({ ...oidc, issuer, audience }, { findKey: keys.find, clock, log });
  return makePeople(verifier, oidc, log);
}

/** Who answers for what is done with the key of the configuration, and for what it declares. */
export const rootPersonOf = ({ access }: Config): Person => ({
  id: access.rootId,
  email: access.rootEmail,
  name: access.rootName,
});

const onlyDefault: KnownProjects = {
  nameOf: async (id) => (id === firstProject.id ? firstProject.name : undefined),
};

function makeThings(
  { profiles, proxies, vaults }: ProjectStores,
  operations: OperationsInProject,
): GuardedLookup {
  return {
    find: (kind, ref) => finders[kind](operations, ref),
    async choose(kind, selector) {
      if (kind === "profiles") return (await resolveProfile(profiles, selector)).id;
      if (kind === "vaults") return await findVault(vaults, selector);
      const found = await proxies.resolve(selector);
      return found.kind === "found" ? found.id : undefined;
    },
  };
}

type Find = (operations: OperationsInProject, ref: string) => ReturnType<GuardedLookup["find"]>;
const finders: Readonly<Record<Parameters<GuardedLookup["find"]>[0], Find>> = {
  async browsers({ sessions }, ref) {
    const got = await sessions.get(ref, { includeDeleted: true });
    if (got.kind === "refused") return undefined;
    if (got.value.kind === "session") {
      const { browser, profile, launch } = got.value.session;
      return { id: browser.id, ...(profile && { profile }), vaults: launch.vault_ids ?? [] };
    }
    return guardedBy(got.value.tombstone);
  },
  async profiles({ profiles }, ref) {
    const got = await profiles.get(ref);
    return got.kind === "refused" ? undefined : { id: got.value.id };
  },
  async proxies({ proxies }, ref) {
    const got = await proxies.get(ref);
    return got.kind === "refused" ? undefined : { id: got.value.id };
  },
  async vaults({ vaults }, ref) {
    const got = await vaults.get(ref);
    return got.kind === "refused" ? undefined : { id: got.value.id };
  },
};

const targetsAmong = (known: KnownProjects, thingsIn: HttpDeps["thingsIn"]): PolicyTargets => ({
  hasProject: async (id) => (await known.nameOf(id)) !== undefined,
  // A name is no id, though a path may have it in the place of one.
  has: async (project, kind, id) => (await thingsIn(project).find(kind, id))?.id === id,
});
