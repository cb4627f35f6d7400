import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeFindRemoved, type NamedKind, type Removal } from "../../access/first-removals.js";
import { projectOfRequest } from "../../access/principal.js";
import type { ProjectOperations } from "../../access/project.js";
import { done, type Done, type Refusal, refusal } from "../../base/errors.js";
import { tokenOf } from "../../base/crypto/lease-token.js";
import { textOf } from "../../base/log.js";
import type { Stops } from "../../base/stops.js";
import type { Config } from "../../config/config.js";
import type { Gateway } from "../../gateway/gateway.js";
import type { makeDirectMessages } from "../../gateway/relay/direct-messages.js";
import type { HttpDeps, OperationsInProject, UploadLimits } from "../../http/deps.js";
import type { RequestInterceptor } from "../../http/request-interceptor.js";
import { listen, type ListeningApi } from "../../http/server.js";
import { NodeDirectory } from "../../lease/node-directory.js";
import { makeNodeOperations } from "../../pool/node-operations.js";
import type { SilentNodes } from "../../pool/silent-nodes.js";
import { makeTellPlatformCall } from "../../telemetry/platform-calls.js";
import { makeTellHolder } from "../../telemetry/tell-holder.js";
import { openAccess } from "./access.js";
import { openScaling } from "../metrics.js";
import { openProjects } from "./projects.js";
import type { DaemonParts } from "../parts.js";
import { packageRoot } from "../shared.js";
import { whyUnready } from "../stores.js";

interface ApiParts {
  readonly interceptor: RequestInterceptor;
  readonly operationsIn: HttpDeps["operationsIn"];
  readonly audit: HttpDeps["audit"];
  readonly auditLog: HttpDeps["auditLog"];
  readonly destinations: HttpDeps["destinations"];
  readonly silentNodes: Pick<SilentNodes, "lastKnown">;
  unready?(): string | undefined;
}

/** Opens the API's server. */
export async function listenAsApi(
  shared: DaemonParts,
  { interceptor, operationsIn, audit, auditLog, destinations, silentNodes, unready }: ApiParts,
  stops: Stops,
): Promise<ListeningApi> {
  const { config, clock, log, stopping, stores, metrics, archives } = shared;
  const projects = openProjects(shared);
  const listening = await listen(httpOptions(config), {
    operationsIn,
    audit,
    auditLog,
    destinations,
    ...openAccess(shared, operationsIn),
    projects,
    findRemoved: makeFindRemoved({ notes: stores.removals, findId: idFinder(operationsIn, projects) }),
    clock,
    log,
    interceptor,
    wireNames: config.vault.names,
    metrics,
    readScaling: openScaling(stores, config.node.overcommit),
    staging: archives.staging,
    tellPlatformCall: makeTellPlatformCall(makeTellHolder(shared.recorder)),
    nodes: makeNodeOperations(stores),
    drainsUntil: (node) => silentNodes.lastKnown(node)?.drainsUntil,
    links: makeLinks(shared, openDirectory(shared, stops)),
    readiness: {
      unready: () => whyUnready(stopping, stores) ?? unready?.(),
      hasStore: stores.isConnected,
      vaultSafety: () => stores.vaultWrites.knownSafety(),
    },
  });
  stops.add("http", () => listening.close());
  return listening;
}

type FindNamed = (operations: OperationsInProject, ref: string) => Promise<Done<string> | Refusal>;
const idIn = (got: Done<{ readonly id: string }> | Refusal): Done<string> | Refusal =>
  got.kind === "done" ? done(got.value.id) : got;
const named: Readonly<Record<Exclude<NamedKind, "projects">, FindNamed>> = {
  pools: async ({ pools }, ref) => idIn(await pools.get(ref)),
  extensions: async ({ extensions }, ref) => idIn(await extensions.get(ref)),
  profiles: async ({ profiles }, ref) => idIn(await profiles.get(ref)),
  otlpDestinations: async ({ otlpDestinations }, ref) => idIn(await otlpDestinations.get(ref)),
  vaults: async ({ vaults }, ref) => idIn(await vaults.get(ref)),
  vaultItems({ vaultItems }, ref) {
    const end = ref.indexOf("/");
    return vaultItems.identify(ref.slice(0, end), ref.slice(end + 1));
  },
  async browsers({ sessions }, ref) {
    const got = await sessions.get(ref, { includeDeleted: false });
    if (got.kind === "refused" || got.value.kind !== "session") return refusal("browser_not_found");
    return done(got.value.session.browser.id);
  },
};

const idFinder =
  (operationsIn: ApiParts["operationsIn"], projects: ProjectOperations | undefined) =>
  async ({ kind, ref, principal }: Removal): Promise<string | undefined> => {
    const found =
      kind === "projects"
        ? projects && idIn(await projects.get(ref, principal))
        : await named[kind](operationsIn(projectOfRequest(principal)), ref);
    return found?.kind === "done" ? found.value : undefined;
  };

/** Browsers' own URLs, and messages to the node in this process where there is one, come before the API. */
export const interceptorOf = (
  gateway: Gateway,
  direct?: ReturnType<typeof makeDirectMessages>,
): RequestInterceptor => ({
  request: (request, response) => direct?.request(request, response) || gateway.request(request, response),
  upgrade: (request, socket, head) => {
    gateway.upgrade(request, socket, head);
    return true;
  },
});

/** Opens a directory only where URLs are to name nodes themselves. */
function openDirectory(
  { config: { node }, clock, log, stores }: DaemonParts,
  stops: Stops,
): NodeDirectory | undefined {
  if (!node.handOutOwnAddress) return undefined;
  const onFault = (error: unknown): void => log.warn({ error: textOf(error) }, "nodes could not be read");
  const directory = new NodeDirectory(stores.nodes, { clock, periodMs: node.beatPeriodMs, onFault });
  stops.add("directory", () => directory.close());
  return directory;
}

const makeLinks =
  ({ keys, url }: DaemonParts, directory: NodeDirectory | undefined): HttpDeps["links"] =>
  (browser, lease, node) => {
    const own = node && directory?.find(node);
    const at = `${(own ?? url.of()).replace(/^http/, "ws")}/browsers/${browser}`;
    const token = tokenOf(keys.cluster, browser, lease);
    return {
      cdp_ws_url: `${at}/cdp?token=${token}`,
      webdriver_ws_url: `${at}/webdriver/session?token=${token}`,
    };
  };

const httpOptions = ({
  server,
  node,
  region,
  acquire,
  extensions,
  log,
}: Config): Parameters<typeof listen>[0] => ({
  host: server.host,
  port: server.port,
  region,
  trustedProxies: server.trustedProxies,
  version: ownVersion(),
  bodyLimitBytes: server.bodyLimitBytes,
  uploads: uploadLimits(extensions),
  ...(server.publicUrl === null ? {} : { publicUrl: server.publicUrl }),
  ...(node.address === null ? {} : { nodeUrl: node.address }),
  headersTimeoutMs: server.requestTimeoutMs,
  requestTimeoutMs: server.requestTimeoutMs,
  keepAliveTimeoutMs: server.keepAliveMs,
  silenceTimeoutMs: acquire.maxWaitMs + 30_000,
  maxConnections: server.maxConnections,
  closeLimitMs: server.closeLimitMs,
  logsRequests: log.level === "debug",
});

/** What one upload of an archive may send, and how long it may take. */
const uploadLimits = ({ maxBytes, uploadStallMs, uploadLimitMs }: Config["extensions"]): UploadLimits => ({
  maxFileBytes: maxBytes,
  stallMs: uploadStallMs,
  limitMs: uploadLimitMs,
});

const ownVersion = (): string =>
  (JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { version: string }).version;
