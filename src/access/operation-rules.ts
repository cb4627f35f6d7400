import type { Action, GuardedKind } from "./policy.js";

/**
 * What a key with a policy needs for an operation. `everybody`: nothing. `unrestricted`: such a key may not,
 * whatever its policy says. `administration`: neither may a member. `project`: the actions in the project as
 * a whole. `list`: the actions on each thing that is shown. `thing`: the actions on the one that the path
 * names. What a browser's body names (`attaches`) is asked for as well, and so is the use of the browser that
 * the body names (`drives`).
 */
export type OperationRule =
  | { readonly of: "everybody" }
  | { readonly of: "unrestricted" }
  | { readonly of: "administration" }
  | { readonly of: "project"; readonly needs: readonly Action[]; readonly attaches?: true }
  | {
      readonly of: "list" | "thing";
      readonly kind: GuardedKind;
      readonly needs: readonly Action[];
      readonly attaches?: true;
      readonly drives?: true;
    };

const everybody = { of: "everybody" } as const;
const unrestricted = { of: "unrestricted" } as const;
const administration = { of: "administration" } as const;
const inProject = (...needs: Action[]) => ({ of: "project", needs }) as const;
const list = (kind: GuardedKind, ...needs: Action[]) => ({ of: "list", kind, needs }) as const;
const on = (kind: GuardedKind, ...needs: Action[]) => ({ of: "thing", kind, needs }) as const;

/**
 * The one table of what each operation needs, by its operationId (docs/access.md#policies). A daemon with an
 * operation that has no row does not start.
 */
export const operationRules = {
  getHealth: everybody,
  getReadiness: everybody,
  getAuthContext: everybody,
  getMetrics: administration,
  getScaling: administration,

  listBrowsers: list("browsers", "browsers:use"),
  // The answer has the URLs by which the browser is used.
  createBrowser: { ...inProject("browsers:create", "browsers:use"), attaches: true },
  getBrowser: on("browsers", "browsers:use"),
  updateBrowser: { ...on("browsers", "browsers:write", "browsers:use"), attaches: true },
  curlBrowser: on("browsers", "browsers:use"),
  getFlightRecording: on("browsers", "browsers:use"),
  streamBrowserTelemetry: on("browsers", "browsers:use"),
  listBrowserTelemetryEvents: on("browsers", "browsers:use"),
  reportCaptchaSolveResult: on("browsers", "browsers:use"),
  deleteBrowser: on("browsers", "browsers:delete"),
  addBrowserExtensions: unrestricted,

  listProfiles: list("profiles", "profiles:read"),
  createProfile: inProject("profiles:create"),
  getProfile: on("profiles", "profiles:read"),
  updateProfile: on("profiles", "profiles:write"),
  deleteProfile: on("profiles", "profiles:delete"),
  // Its state has the cookies of whoever was logged in.
  downloadProfile: on("profiles", "profiles:read", "profiles:use"),

  listProxies: list("proxies", "proxies:read"),
  createProxy: inProject("proxies:create"),
  getProxy: on("proxies", "proxies:read"),
  updateProxy: on("proxies", "proxies:write"),
  deleteProxy: on("proxies", "proxies:delete"),
  checkProxy: on("proxies", "proxies:use", "proxies:read"),

  // An acquire hands out whatever the pool holds: profile, proxy, extensions.
  listBrowserPools: unrestricted,
  createBrowserPool: unrestricted,
  getBrowserPool: unrestricted,
  updateBrowserPool: unrestricted,
  deleteBrowserPool: unrestricted,
  listPoolBrowsers: unrestricted,
  listPoolFlightRecordings: unrestricted,
  acquireBrowser: unrestricted,
  releaseBrowser: unrestricted,
  flushBrowserPool: unrestricted,

  listExtensions: unrestricted,
  uploadExtension: unrestricted,
  getExtension: unrestricted,
  downloadExtension: unrestricted,
  deleteExtension: unrestricted,
  downloadExtensionFromChromeStore: unrestricted,

  // No policy speaks of them, nor of an export to them.
  listTelemetryDestinations: unrestricted,
  createTelemetryDestination: unrestricted,
  getTelemetryDestination: unrestricted,
  updateTelemetryDestination: unrestricted,
  deleteTelemetryDestination: unrestricted,

  listVaults: list("vaults", "vaults:read"),
  createVault: inProject("vaults:create"),
  getVault: on("vaults", "vaults:read"),
  deleteVault: on("vaults", "vaults:delete"),
  getVaultEncryptionKey: on("vaults", "vaults:read"),
  listVaultItems: on("vaults", "vaults:read"),
  getVaultItem: on("vaults", "vaults:read"),
  listVaultItemEvents: on("vaults", "vaults:read"),
  putVaultItem: on("vaults", "vaults:write"),
  updateVaultItem: on("vaults", "vaults:write"),
  deleteVaultItem: on("vaults", "vaults:write"),
  // Values are written into a page of the browser, or a passkey given to it.
  operateVaultItem: { ...on("vaults", "vaults:use"), drives: true },

  // They show what `projects:read` allows.
  listProjects: everybody,
  getProject: everybody,
  getProjectLimits: everybody,
  createProject: administration,
  updateProject: administration,
  updateProjectLimits: administration,
  deleteProject: administration,

  getOrganizationLimits: inProject("organizations:read"),
  updateOrganizationLimits: administration,
  getEntitlements: inProject("organizations:read"),

  // The log is that of the whole organization.
  listAuditLogs: administration,
  exportAuditLogs: administration,
  listExportDestinations: administration,
  createExportDestination: administration,
  getExportDestination: administration,
  updateExportDestination: administration,
  deleteExportDestination: administration,
  testExportDestination: administration,

  // Machines are the whole organization's.
  listNodes: administration,
  drainNode: administration,
  endNodeDrain: administration,

  listApiKeys: administration,
  createApiKey: administration,
  getApiKey: administration,
  renameApiKey: administration,
  deleteApiKey: administration,
  rotateApiKey: administration,
} as const satisfies Readonly<Record<string, OperationRule>>;

/** Throws where an operation has no row: nobody would know who may do it. */
export function ruleOf(operation: string | undefined): OperationRule {
  if (operation === undefined || !Object.hasOwn(operationRules, operation))
    throw new Error(`operation ${operation} has no row in the table of what operations need`);
  return operationRules[operation as keyof typeof operationRules];
}
