import { generateKeyPairSync } from "node:crypto";
import type { ErrorCode } from "../../../src/base/errors.js";
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
  /** A session that was created, which no pool lends. */
  readonly onDemand: string;
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
type Reference = (other: FilledProject) => object;
/** What an operation is asked in one project with ids of another. */
export type Row =
  /** Its path names something of the other project. */
  | { readonly kind: "named"; readonly of: Kind; body?(other: FilledProject): Body }
  /** It shows things of its own project only. */
  | { readonly kind: "list"; readonly of: Kind }
  /** Its body names something of the other project; what its path names is its own project's. */
  | {
      readonly kind: "refers";
      readonly of?: Kind;
      readonly bodies: readonly Reference[];
      /** What is told of something that is not there. */
      readonly told: RegExp;
    }
  /** It names nothing that belongs to a project. */
  | { readonly kind: "unbound" };

/** What is told where a path names something that is not there. */
export const missing: Readonly<Record<Kind, ErrorCode>> = {
  pool: "pool_not_found",
  session: "browser_not_found",
  onDemand: "browser_not_found",
  profile: "profile_not_found",
  proxy: "proxy_not_found",
  extension: "extension_not_found",
  destination: "otlp_destination_not_found",
  vault: "vault_not_found",
};

const passkey = {
  type: "passkey",
  credentialId: "Y3JlZA",
  rpId: "shop.example",
  username: "me",
  userDisplayName: "Me",
  userHandle: "aGFuZGxl",
  key: generateKeyPairSync("ec", { namedCurve: "P-256" })
    .privateKey.export({ format: "der", type: "pkcs8" })
    .toString("base64url"),
};
/** An item whose key is the id of its vault, as a path that names both by one text has it. */
export const oneItem = {
  type: "credential",
  spec: {
    provider: "native",
    // It offers all that is done in a browser.
    fields: [
      { name: "user", type: "text", value: "me" },
      { name: "passkey", type: "passkey", value: JSON.stringify(passkey) },
      { name: "spare", type: "passkey", required: false },
    ],
  },
};

const json = (value: unknown) => (): Body => ({ json: value });
const unbound: Row = { kind: "unbound" };
const named = (of: Kind, body?: (other: FilledProject) => Body): Row => ({
  kind: "named",
  of,
  ...(body && { body }),
});
const pool = (body?: (other: FilledProject) => Body): Row => named("pool", body);
/** A session is lent by a pool, or created on demand. */
const sessionKinds = ["session", "onDemand"] as const;
const session = (body?: (other: FilledProject) => Body): readonly Row[] =>
  sessionKinds.map((of) => named(of, body));
const vault = (body?: (other: FilledProject) => Body): Row => named("vault", body);

const isUnknown = /^400 .*: there is no (such proxy|profile|extension|OTLP destination|vault)/;
const refers = (
  bodies: readonly Reference[],
  { of, told = isUnknown }: { readonly of?: Kind; readonly told?: RegExp } = {},
): Row => ({ kind: "refers", bodies, told, ...(of && { of }) });

const references = {
  profile: ({ profile }) => ({ profile: { id: profile } }),
  extension: ({ extension }) => ({ extensions: [{ id: extension }] }),
  proxy: ({ proxy }) => ({ proxy_id: proxy }),
  destination: ({ destination }) => ({
    telemetry: { export: { otlp: { destination: { id: destination } } } },
  }),
  vault: ({ vault: id }) => ({ vaults: [{ id }] }),
} satisfies Record<string, Reference>;
export const nameOnlyIn = (project: string): string => `only-${project}`;
const onlyIn = ({ project }: FilledProject): { readonly name: string } => ({ name: nameOnlyIn(project) });
/** The same by the names of things that there are in the other project only. */
const namedReferences = {
  profile: (other) => ({ profile: onlyIn(other) }),
  extension: (other) => ({ extensions: [onlyIn(other)] }),
  proxy: (other) => ({ network: { proxy_routes: [{ hosts: ["a.example"], proxy: onlyIn(other) }] } }),
  destination: (other) => ({ telemetry: { export: { otlp: { destination: onlyIn(other) } } } }),
  vault: (other) => ({ vaults: [onlyIn(other)] }),
} satisfies Record<string, Reference>;
const everyReference = [references, namedReferences].flatMap((all): Reference[] => Object.values(all));
const either = (kind: keyof typeof references): readonly Reference[] => [
  references[kind],
  namedReferences[kind],
];
/** A pool names its proxies otherwise. */
const ofSessions: readonly Reference[] = [
  ({ proxy }) => ({ proxy: { id: proxy } }),
  (other) => ({ proxy: onlyIn(other) }),
];
/** What a session that runs already may be given. */
const ofRunning = [...either("profile"), references.proxy, ...ofSessions, ...either("destination")];
const beside = (rest: object, all: readonly Reference[]): readonly Reference[] =>
  all.map((one) => (other) => ({ ...rest, ...one(other) }));

/** What is done with an item in a browser. */
const inBrowser = [
  { type: "fill", fields: [{ field: "user", selector: "#user" }] },
  { type: "arm_passkey", field: "passkey" },
  { type: "register_passkey", field: "spare" },
].flatMap((operation) =>
  beside(
    operation,
    sessionKinds.map((kind) => (other) => ({ browser_id: other[kind] })),
  ),
);
const oneExtension = (): Body => ({
  bytes: multipartBody([field("extensions.name", "sent"), file("extensions.zip_file", extensionZip())]),
});

const atOnce = { acquire_timeout_seconds: 0 };

/** The rows of each operation of the OpenAPI document; one without a row fails the test. */
export const rows: Readonly<Record<string, Row | readonly Row[]>> = {
  listBrowserPools: { kind: "list", of: "pool" },
  createBrowserPool: refers(beside({ size: 1, headless: true }, everyReference)),
  getBrowserPool: pool(),
  updateBrowserPool: [pool(json({ size: 3 })), refers(everyReference, { of: "pool" })],
  deleteBrowserPool: pool(json({ force: true })),
  listPoolBrowsers: pool(),
  listPoolFlightRecordings: pool(),
  acquireBrowser: [
    pool(json(atOnce)),
    refers(beside(atOnce, either("destination")), { of: "pool" }),
    // No acquire takes one yet, whosever it is.
    refers(beside(atOnce, either("profile")), { of: "pool", told: /^400 .*"not_supported"/ }),
  ],
  releaseBrowser: pool(({ session: id }) => ({ json: { session_id: id } })),
  flushBrowserPool: pool(json({})),
  listBrowsers: sessionKinds.map((of) => ({ kind: "list", of })),
  createBrowser: refers(beside({ headless: true }, [...everyReference, ...ofSessions])),
  getBrowser: session(),
  updateBrowser: [
    ...session(json({ tags: { team: "other" } })),
    ...sessionKinds.map((of) => refers(ofRunning, { of })),
  ],
  deleteBrowser: session(),
  getFlightRecording: session(),
  curlBrowser: session(json({ url: "http://localhost/" })),
  addBrowserExtensions: session(oneExtension),
  streamBrowserTelemetry: session(),
  listBrowserTelemetryEvents: session(),
  reportCaptchaSolveResult: session(json({ captcha_type: "other", status: "success", duration_ms: 1 })),
  listProfiles: { kind: "list", of: "profile" },
  createProfile: unbound,
  getProfile: named("profile"),
  updateProfile: named("profile", json({ name: "other" })),
  deleteProfile: named("profile"),
  downloadProfile: named("profile"),
  listProxies: { kind: "list", of: "proxy" },
  createProxy: unbound,
  getProxy: named("proxy"),
  updateProxy: named("proxy", json({ name: "other" })),
  deleteProxy: named("proxy"),
  checkProxy: named("proxy", json({})),
  listExtensions: { kind: "list", of: "extension" },
  uploadExtension: unbound,
  getExtension: named("extension"),
  downloadExtension: named("extension"),
  deleteExtension: named("extension"),
  downloadExtensionFromChromeStore: unbound,
  listTelemetryDestinations: { kind: "list", of: "destination" },
  createTelemetryDestination: unbound,
  getTelemetryDestination: named("destination"),
  updateTelemetryDestination: named("destination", json({ name: "other" })),
  deleteTelemetryDestination: named("destination"),
  listVaults: { kind: "list", of: "vault" },
  createVault: unbound,
  getVault: vault(),
  deleteVault: vault(),
  getVaultEncryptionKey: vault(),
  listVaultItems: vault(),
  getVaultItem: vault(),
  listVaultItemEvents: vault(),
  putVaultItem: vault(json(oneItem)),
  updateVaultItem: vault(json({ type: "credential", version: 1, spec: { description: "x" } })),
  deleteVaultItem: vault(),
  operateVaultItem: [
    vault(json({ type: "collect" })),
    refers(inBrowser, { of: "vault", told: /^404 .*"browser_not_found"/ }),
  ],
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

const nobody = "0".repeat(24);
/** Names what no project has. */
export const nowhere: FilledProject = {
  project: "nowhere",
  key: nobody,
  pool: nobody,
  session: nobody,
  onDemand: nobody,
  profile: nobody,
  proxy: nobody,
  extension: nobody,
  destination: nobody,
  vault: nobody,
  ids: new Set([nobody]),
};

export const partsOf = (
  body: Body | undefined,
): { readonly headers: Record<string, string>; readonly payload?: string | Buffer } => {
  if (body?.bytes) return { headers: { "content-type": multipartType }, payload: body.bytes };
  if (body?.json === undefined) return { headers: {} };
  return { headers: { "content-type": "application/json" }, payload: JSON.stringify(body.json) };
};
