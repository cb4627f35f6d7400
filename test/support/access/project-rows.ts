import { multipartBody, multipartType, field, file } from "../http/multipart-body.js";
import { extensionZip } from "../archive/zip-bytes.js";

/** What a project of a test has: one of each, called `same` in every project, and some that only it has. */
export interface FilledProject {
  readonly project: string;
  /** A key of the project, without a policy. */
  readonly key: string;
  readonly pool: string;
  /** A leased browser of the pool. */
  readonly session: string;
  readonly profile: string;
  readonly proxy: string;
  readonly extension: string;
  readonly destination: string;
  readonly vault: string;
  /** The ids of all of them. */
  readonly ids: ReadonlySet<string>;
}
type Kind = Exclude<keyof FilledProject, "project" | "key" | "ids">;

interface Body {
  readonly json?: unknown;
  readonly bytes?: Buffer;
}
/** What an operation is asked in one project with ids of another. */
export type Row =
  /** Its path names something of the other project. */
  | { readonly kind: "named"; readonly of: Kind; body?(other: FilledProject): Body }
  /** It shows things of its own project only. */
  | { readonly kind: "list"; readonly of: Kind }
  /** Its body names something of the other project. */
  | { readonly kind: "refers"; readonly bodies: readonly ((other: FilledProject) => unknown)[] }
  /** It names nothing that belongs to a project. */
  | { readonly kind: "unbound" };

/** An item whose key is the id of its vault, as a path that names both by one text has it. */
export const oneItem = {
  type: "credential",
  spec: { provider: "native", fields: [{ name: "user", type: "text" }] },
};

const json = (value: unknown) => (): Body => ({ json: value });
const unbound: Row = { kind: "unbound" };
const pool = (body?: (other: FilledProject) => Body): Row => ({
  kind: "named",
  of: "pool",
  ...(body && { body }),
});
const session = (body?: (other: FilledProject) => Body): Row => ({
  kind: "named",
  of: "session",
  ...(body && { body }),
});
const references: readonly ((other: FilledProject) => object)[] = [
  ({ profile }) => ({ profile: { id: profile } }),
  ({ extension }) => ({ extensions: [{ id: extension }] }),
  ({ proxy }) => ({ proxy_id: proxy }),
  ({ destination }) => ({ telemetry: { export: { otlp: { destination: { id: destination } } } } }),
  ({ vault }) => ({ vaults: [{ id: vault }] }),
];
/** The same by the names of things that there are in the other project only. */
const namedReferences: readonly ((name: string) => object)[] = [
  (name) => ({ profile: { name } }),
  (name) => ({ extensions: [{ name }] }),
  (name) => ({ network: { proxy_routes: [{ hosts: ["a.example"], proxy: { name } }] } }),
  (name) => ({ telemetry: { export: { otlp: { destination: { name } } } } }),
  (name) => ({ vaults: [{ name }] }),
];
export const nameOnlyIn = (project: string): string => `only-${project}`;
const everyReference: readonly ((other: FilledProject) => object)[] = [
  ...references,
  ...namedReferences.map(
    (refers) =>
      ({ project }: FilledProject) =>
        refers(nameOnlyIn(project)),
  ),
];
/** A pool names its proxies otherwise. */
const ofSessions: readonly ((other: FilledProject) => object)[] = [
  ({ proxy }) => ({ proxy: { id: proxy } }),
  ({ project }) => ({ proxy: { name: nameOnlyIn(project) } }),
];
const oneExtension = (): Body => ({
  bytes: multipartBody([field("extensions.name", "sent"), file("extensions.zip_file", extensionZip())]),
});

/** A row for each operation of the OpenAPI document; one without a row fails the test. */
export const rows: Readonly<Record<string, Row>> = {
  listBrowserPools: { kind: "list", of: "pool" },
  createBrowserPool: {
    kind: "refers",
    bodies: everyReference.map((refers) => (other) => ({ size: 1, headless: true, ...refers(other) })),
  },
  getBrowserPool: pool(),
  updateBrowserPool: pool(json({ size: 3 })),
  deleteBrowserPool: pool(json({ force: true })),
  listPoolBrowsers: pool(),
  listPoolFlightRecordings: pool(),
  acquireBrowser: pool(json({ acquire_timeout_seconds: 0 })),
  releaseBrowser: pool(({ session: id }) => ({ json: { session_id: id } })),
  flushBrowserPool: pool(json({})),
  listBrowsers: { kind: "list", of: "session" },
  createBrowser: {
    kind: "refers",
    bodies: [...everyReference, ...ofSessions].map((refers) => (other) => ({
      headless: true,
      ...refers(other),
    })),
  },
  getBrowser: session(),
  updateBrowser: session(json({ tags: { team: "other" } })),
  deleteBrowser: session(),
  getFlightRecording: session(),
  curlBrowser: session(json({ url: "http://localhost/" })),
  addBrowserExtensions: session(oneExtension),
  streamBrowserTelemetry: session(),
  listBrowserTelemetryEvents: session(),
  reportCaptchaSolveResult: session(json({ captcha_type: "other", status: "success", duration_ms: 1 })),
  listProfiles: { kind: "list", of: "profile" },
  createProfile: unbound,
  getProfile: { kind: "named", of: "profile" },
  updateProfile: { kind: "named", of: "profile", body: json({ name: "other" }) },
  deleteProfile: { kind: "named", of: "profile" },
  downloadProfile: { kind: "named", of: "profile" },
  listProxies: { kind: "list", of: "proxy" },
  createProxy: unbound,
  getProxy: { kind: "named", of: "proxy" },
  updateProxy: { kind: "named", of: "proxy", body: json({ name: "other" }) },
  deleteProxy: { kind: "named", of: "proxy" },
  checkProxy: { kind: "named", of: "proxy", body: json({}) },
  listExtensions: { kind: "list", of: "extension" },
  uploadExtension: unbound,
  getExtension: { kind: "named", of: "extension" },
  downloadExtension: { kind: "named", of: "extension" },
  deleteExtension: { kind: "named", of: "extension" },
  downloadExtensionFromChromeStore: unbound,
  listTelemetryDestinations: { kind: "list", of: "destination" },
  createTelemetryDestination: unbound,
  getTelemetryDestination: { kind: "named", of: "destination" },
  updateTelemetryDestination: { kind: "named", of: "destination", body: json({ name: "other" }) },
  deleteTelemetryDestination: { kind: "named", of: "destination" },
  listVaults: { kind: "list", of: "vault" },
  createVault: unbound,
  getVault: { kind: "named", of: "vault" },
  deleteVault: { kind: "named", of: "vault" },
  getVaultEncryptionKey: { kind: "named", of: "vault" },
  listVaultItems: { kind: "named", of: "vault" },
  getVaultItem: { kind: "named", of: "vault" },
  listVaultItemEvents: { kind: "named", of: "vault" },
  putVaultItem: { kind: "named", of: "vault", body: json(oneItem) },
  updateVaultItem: {
    kind: "named",
    of: "vault",
    body: json({ type: "credential", version: 1, spec: { description: "x" } }),
  },
  deleteVaultItem: { kind: "named", of: "vault" },
  operateVaultItem: { kind: "named", of: "vault", body: json({ type: "collect" }) },
  // What follows belongs to the organization.
  listProjects: unbound,
  createProject: unbound,
  getProject: unbound,
  updateProject: unbound,
  getProjectLimits: unbound,
  updateProjectLimits: unbound,
  deleteProject: unbound,
  listApiKeys: unbound,
  createApiKey: unbound,
  getApiKey: unbound,
  renameApiKey: unbound,
  deleteApiKey: unbound,
  rotateApiKey: unbound,
  getAuthContext: unbound,
  getOrganizationLimits: unbound,
  updateOrganizationLimits: unbound,
  getEntitlements: unbound,
  listNodes: unbound,
  drainNode: unbound,
  endNodeDrain: unbound,
  listAuditLogs: unbound,
  exportAuditLogs: unbound,
  listExportDestinations: unbound,
  createExportDestination: unbound,
  getExportDestination: unbound,
  updateExportDestination: unbound,
  deleteExportDestination: unbound,
  testExportDestination: unbound,
  getHealth: unbound,
  getReadiness: unbound,
  getMetrics: unbound,
  getScaling: unbound,
};

export const partsOf = (
  body: Body | undefined,
): { readonly headers: Record<string, string>; readonly payload?: string | Buffer } => {
  if (body?.bytes) return { headers: { "content-type": multipartType }, payload: body.bytes };
  if (body?.json === undefined) return { headers: {} };
  return { headers: { "content-type": "application/json" }, payload: JSON.stringify(body.json) };
};
