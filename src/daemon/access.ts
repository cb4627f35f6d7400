import type { GuardedThings } from "../access/authorize.js";
import { makeApiKeyOperations } from "../access/api-key-operations.js";
import { makeAuthenticator } from "../access/authenticator.js";
import type { PolicyTargets } from "../access/policy.js";
import type { Person } from "../access/principal.js";
import { defaultProject, type ProjectId } from "../base/ids.js";
import type { Config } from "../config/config.js";
import type { HttpDeps, ProjectOperations } from "../http/deps.js";
import { resolveProfile } from "../registry/profiles/selectors.js";
import type { ProjectStores } from "../store/projects.js";
import type { DaemonParts } from "./shared.js";

/** Who is let in, the keys that let them in, and what policies speak of. */
export function openAccess(
  { config, keys, stores }: DaemonParts,
  operationsIn: HttpDeps["operationsIn"],
): Pick<HttpDeps, "authenticator" | "apiKeys" | "thingsIn"> {
  const { apiKeys: store } = stores;
  const thingsIn = (project: ProjectId): GuardedThings =>
    makeThings(stores.projects.of(project), operationsIn(project));
  return {
    authenticator: makeAuthenticator({ rootKey: keys.api, rootPerson: rootPersonOf(config), keys: store }),
    apiKeys: makeApiKeyOperations({
      store,
      projects: onlyDefault,
      secret: keys.cluster,
      targets: targetsAmong(thingsIn),
    }),
    thingsIn,
  };
}

/** Who answers for what is done with the key of the configuration, and for what it declares. */
export const rootPersonOf = ({ access }: Config): Person => ({
  id: access.rootId,
  email: access.rootEmail,
  name: access.rootName,
});

const onlyDefault = {
  nameOf: async (id: string): Promise<string | undefined> => (id === defaultProject ? "Default" : undefined),
};

function makeThings({ profiles, proxies }: ProjectStores, operations: ProjectOperations): GuardedThings {
  return {
    find: (kind, ref) => finders[kind](operations, ref),
    async choose(kind, selector) {
      if (kind === "profiles") return (await resolveProfile(profiles, selector)).id;
      const found = await proxies.resolve(selector);
      return found.kind === "found" ? found.id : undefined;
    },
  };
}

type Find = (operations: ProjectOperations, ref: string) => ReturnType<GuardedThings["find"]>;
const finders: Readonly<Record<Parameters<GuardedThings["find"]>[0], Find>> = {
  async browsers({ sessions }, ref) {
    const got = await sessions.get(ref, { includeDeleted: true });
    if (got.kind === "refused") return undefined;
    if (got.value.kind === "session") {
      const { browser, profile } = got.value.session;
      return { id: browser.id, ...(profile && { profile }) };
    }
    const { id, profileId } = got.value.tombstone;
    return { id, ...(profileId && { profile: { id: profileId, save: false } }) };
  },
  async profiles({ profiles }, ref) {
    const got = await profiles.get(ref);
    return got.kind === "refused" ? undefined : { id: got.value.id };
  },
  async proxies({ proxies }, ref) {
    const got = await proxies.get(ref);
    return got.kind === "refused" ? undefined : { id: got.value.id };
  },
  // Vaults are not built yet.
  vaults: async () => undefined,
};

const targetsAmong = (thingsIn: HttpDeps["thingsIn"]): PolicyTargets => ({
  hasProject: async (id) => (await onlyDefault.nameOf(id)) !== undefined,
  // A name is no id, though a path may have it in the place of one.
  has: async (project, kind, id) => (await thingsIn(project).find(kind, id))?.id === id,
});
