import { extensionZip } from "../archive/zip-bytes.js";
import { destinationBody } from "../http/recorded-audit.js";
import { field, file, multipartBody, multipartType } from "../http/multipart-body.js";
import { type Asked, type FilledProjects, proxyConfig, upload } from "./filled-projects.js";
import { oneItem } from "./project-rows.js";
import { queries } from "./listed-operations.js";

const thingKinds = ["pool", "session", "profile", "proxy", "extension", "destination", "vault"] as const;
/** What belongs to a project, and what to the organization. */
export type Subject = (typeof thingKinds)[number] | "key" | "project" | "export";

/** How an operation is asked for, so that it does what it is for where it lets somebody in. */
interface ScopeRow {
  /** What its path names. */
  readonly of?: Subject;
  readonly sent?: (id: string, world: FilledProjects) => Asked;
  /** What it answers to whom it lets in; nothing: any of 200 to 299. */
  readonly answers?: number;
}
const json = (body: object) => (): Asked => ({ body });
const on = (of: Subject, body?: object): ScopeRow => ({ of, ...(body && { sent: json(body) }) });
const pool = { size: 1, headless: true, fill_rate_per_minute: 0 };
const oneExtension = (): Asked => ({
  payload: multipartBody([field("extensions.name", "sent"), file("extensions.zip_file", extensionZip())]),
  headers: { "content-type": multipartType },
});

/** A row for each operation of the document that needs a credential. */
export const scopeRows: Readonly<Record<string, ScopeRow>> = {
  getAuthContext: {},
  listBrowserPools: {},
  createBrowserPool: { sent: json(pool) },
  getBrowserPool: on("pool"),
  updateBrowserPool: on("pool", { size: 2 }),
  deleteBrowserPool: on("pool", {}),
  listPoolBrowsers: on("pool"),
  listPoolFlightRecordings: on("pool"),
  acquireBrowser: on("pool", { acquire_timeout_seconds: 0 }),
  // The pool never lent it; whoever is refused is not told so.
  releaseBrowser: { ...on("pool", { session_id: "nothing" }), answers: 404 },
  flushBrowserPool: on("pool", {}),
  listBrowsers: {},
  createBrowser: { sent: json({ headless: true, timeout_seconds: 3600 }) },
  getBrowser: on("session"),
  updateBrowser: on("session", { tags: { team: "a" } }),
  deleteBrowser: on("session"),
  getFlightRecording: on("session"),
  // Nothing listens there.
  curlBrowser: { ...on("session", { url: "http://127.0.0.1:9/" }), answers: 502 },
  // The browser of the test has none.
  addBrowserExtensions: { of: "session", sent: oneExtension, answers: 400 },
  streamBrowserTelemetry: on("session"),
  listBrowserTelemetryEvents: on("session"),
  reportCaptchaSolveResult: on("session", { captcha_type: "other", status: "success", duration_ms: 1 }),
  listProfiles: {},
  createProfile: { sent: json({}) },
  getProfile: on("profile"),
  updateProfile: { of: "profile", sent: () => ({ body: { name: `renamed-${Math.random()}` } }) },
  deleteProfile: on("profile"),
  downloadProfile: on("profile"),
  listProxies: {},
  createProxy: { sent: json({ type: "custom", config: proxyConfig }) },
  getProxy: on("proxy"),
  updateProxy: on("proxy", { name: "renamed" }),
  deleteProxy: on("proxy"),
  checkProxy: on("proxy", {}),
  listExtensions: {},
  uploadExtension: { sent: () => upload(`uploaded-${Math.random()}`) },
  getExtension: on("extension"),
  downloadExtension: on("extension"),
  deleteExtension: on("extension"),
  downloadExtensionFromChromeStore: { answers: 400 },
  listTelemetryDestinations: {},
  createTelemetryDestination: {
    sent: () => ({ body: { name: `made-${Math.random()}`, endpoint: "http://127.0.0.1:9" } }),
  },
  getTelemetryDestination: on("destination"),
  updateTelemetryDestination: on("destination", { description: "changed" }),
  deleteTelemetryDestination: on("destination"),
  listVaults: {},
  createVault: { sent: () => ({ body: { name: `made-${Math.random()}` } }) },
  getVault: on("vault"),
  deleteVault: on("vault"),
  getVaultEncryptionKey: on("vault"),
  // Every vault has an item whose key is the vault's id.
  listVaultItems: on("vault"),
  getVaultItem: on("vault"),
  listVaultItemEvents: on("vault"),
  putVaultItem: on("vault", oneItem),
  updateVaultItem: on("vault", { type: "credential", version: 1, spec: { description: "changed" } }),
  deleteVaultItem: on("vault"),
  // The daemon of the test collects nothing.
  operateVaultItem: { ...on("vault", { type: "collect" }), answers: 409 },
  listProjects: {},
  createProject: { sent: () => ({ body: { name: `made-${Math.random()}` } }) },
  getProject: on("project"),
  updateProject: { of: "project", sent: () => ({ body: { name: `renamed-${Math.random()}` } }) },
  deleteProject: on("project"),
  getProjectLimits: on("project"),
  updateProjectLimits: on("project", { max_concurrent_sessions: 1000 }),
  listApiKeys: {},
  createApiKey: { sent: json({ name: "made by another" }) },
  getApiKey: on("key"),
  renameApiKey: on("key", { name: "renamed" }),
  deleteApiKey: on("key"),
  rotateApiKey: on("key", {}),
  getOrganizationLimits: {},
  updateOrganizationLimits: { sent: json({ default_project_max_concurrent_sessions: 1000 }) },
  getEntitlements: {},
  getScaling: {},
  listNodes: {},
  // They name no node: a drain would end the browsers of the test.
  drainNode: { sent: json({}), answers: 404 },
  endNodeDrain: { answers: 404 },
  listAuditLogs: {},
  exportAuditLogs: {},
  listExportDestinations: {},
  createExportDestination: { sent: () => ({ body: destinationBody({ prefix: `p${Math.random()}` }) }) },
  getExportDestination: on("export"),
  updateExportDestination: on("export", { prefix: "changed" }),
  deleteExportDestination: on("export"),
  testExportDestination: on("export", {}),
};

/** How something new is made, for an operation that may end it. */
const makers: Readonly<Record<Exclude<Subject, "project">, readonly [path: string, sent: () => Asked]>> = {
  pool: ["/browser_pools", json(pool)],
  session: ["/browsers", json({ headless: true, timeout_seconds: 3600 })],
  profile: ["/profiles", json({})],
  proxy: ["/proxies", json({ type: "custom", config: proxyConfig })],
  extension: ["/extensions", () => upload(`new-${Math.random()}`)],
  destination: [
    "/telemetry/destinations",
    () => ({ body: { name: `new-${Math.random()}`, endpoint: "http://127.0.0.1:9" } }),
  ],
  vault: ["/vaults", () => ({ body: { name: `new-${Math.random()}` } })],
  key: ["/org/api_keys", json({ name: "new" })],
  export: ["/audit-logs/export/destinations", () => ({ body: destinationBody() })],
};

/** The id of something new, in a project where it belongs to one. */
export async function makeSubject(world: FilledProjects, of: Subject, project: string): Promise<string> {
  const root = world.rootIn(project);
  if (of === "project")
    return await world.make(root, "/org/projects", { body: { name: `p${Math.random()}` } });
  const [path, sent] = makers[of];
  const asked = sent();
  const id = await world.make(
    root,
    path,
    of === "key" ? { body: { name: "new", project_id: project } } : asked,
  );
  if (of === "vault") await world.addItem(root, id);
  return id;
}

export const askedOf = (
  { id, method, path }: { readonly id: string; readonly method: string; readonly path: string },
  named: string,
  world: FilledProjects,
): { readonly path: string; readonly asked: Asked } => ({
  path: path.replaceAll(/\{\w+\}/g, named) + (queries[id] ?? ""),
  asked: { method, ...scopeRows[id]?.sent?.(named, world) },
});
