import { makeApiKeyOperations } from "../access/api-key-operations.js";
import { makeAuthenticator } from "../access/authenticator.js";
import type { Person } from "../access/principal.js";
import { defaultProject } from "../base/ids.js";
import type { Config } from "../config/config.js";
import type { HttpDeps } from "../http/deps.js";
import type { DaemonParts } from "./shared.js";

/** Who is let in, and the keys that let them in. */
export const openAccess = ({
  config,
  keys,
  stores: { apiKeys: store },
}: DaemonParts): Pick<HttpDeps, "authenticator" | "apiKeys"> => ({
  authenticator: makeAuthenticator({ rootKey: keys.api, rootPerson: rootPersonOf(config), keys: store }),
  apiKeys: makeApiKeyOperations({ store, projects: onlyDefault, secret: keys.cluster }),
});

/** Who answers for what is done with the key of the configuration, and for what it declares. */
export const rootPersonOf = ({ access }: Config): Person => ({
  id: access.rootId,
  email: access.rootEmail,
  name: access.rootName,
});

const onlyDefault = {
  nameOf: async (id: string): Promise<string | undefined> => (id === defaultProject ? "Default" : undefined),
};
