export type Kind = "browsers" | "profiles" | "vaults" | "proxies";
/**
 * What each operation needs, as docs/access.md tells it: written once more, so that a slip in the table
 * shows.
 */
export const needs: Readonly<
  Record<string, readonly [of: "project" | "list" | "thing", Kind, ...string[]] | "nothing">
> = {
  getAuthContext: "nothing",
  // They show no project but those that `projects:read` allows.
  listProjects: "nothing",
  getProject: "nothing",
  getProjectLimits: "nothing",
  listBrowsers: ["list", "browsers", "browsers:use"],
  createBrowser: ["project", "browsers", "browsers:create", "browsers:use"],
  getBrowser: ["thing", "browsers", "browsers:use"],
  updateBrowser: ["thing", "browsers", "browsers:write", "browsers:use"],
  curlBrowser: ["thing", "browsers", "browsers:use"],
  getFlightRecording: ["thing", "browsers", "browsers:use"],
  streamBrowserTelemetry: ["thing", "browsers", "browsers:use"],
  listBrowserTelemetryEvents: ["thing", "browsers", "browsers:use"],
  reportCaptchaSolveResult: ["thing", "browsers", "browsers:use"],
  deleteBrowser: ["thing", "browsers", "browsers:delete"],
  listProfiles: ["list", "profiles", "profiles:read"],
  createProfile: ["project", "profiles", "profiles:create"],
  getProfile: ["thing", "profiles", "profiles:read"],
  updateProfile: ["thing", "profiles", "profiles:write"],
  deleteProfile: ["thing", "profiles", "profiles:delete"],
  downloadProfile: ["thing", "profiles", "profiles:read", "profiles:use"],
  listProxies: ["list", "proxies", "proxies:read"],
  createProxy: ["project", "proxies", "proxies:create"],
  getProxy: ["thing", "proxies", "proxies:read"],
  updateProxy: ["thing", "proxies", "proxies:write"],
  deleteProxy: ["thing", "proxies", "proxies:delete"],
  checkProxy: ["thing", "proxies", "proxies:use", "proxies:read"],
  listVaults: ["list", "vaults", "vaults:read"],
  createVault: ["project", "vaults", "vaults:create"],
  getVault: ["thing", "vaults", "vaults:read"],
  deleteVault: ["thing", "vaults", "vaults:delete"],
  getVaultEncryptionKey: ["thing", "vaults", "vaults:read"],
  listVaultItems: ["thing", "vaults", "vaults:read"],
  getVaultItem: ["thing", "vaults", "vaults:read"],
  listVaultItemEvents: ["thing", "vaults", "vaults:read"],
  putVaultItem: ["thing", "vaults", "vaults:write"],
  updateVaultItem: ["thing", "vaults", "vaults:write"],
  deleteVaultItem: ["thing", "vaults", "vaults:write"],
  operateVaultItem: ["thing", "vaults", "vaults:use"],
  getOrganizationLimits: ["project", "browsers", "organizations:read"],
  getEntitlements: ["project", "browsers", "organizations:read"],
};
export const everyAction = ["browsers", "profiles", "vaults", "proxies"].flatMap((kind) =>
  ["create", "read", "use", "write", "delete"].map((verb) => `${kind}:${verb}`),
);
export const anything = [...everyAction, "projects:read", "organizations:read"];

/** What no key of one project gets to, whatever it may do there: it is the whole organization's. */
export const ofOrganization: ReadonlySet<string> = new Set([
  "getMetrics",
  "getScaling",
  "createProject",
  "deleteProject",
  "updateProjectLimits",
  "updateOrganizationLimits",
  "listAuditLogs",
  "exportAuditLogs",
  "listExportDestinations",
  "createExportDestination",
  "getExportDestination",
  "updateExportDestination",
  "deleteExportDestination",
  "testExportDestination",
  "listNodes",
  "drainNode",
  "endNodeDrain",
]);
