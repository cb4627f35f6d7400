import { scalingOf } from "../../../src/pool/scaling.js";
import { afterAll, afterEach, beforeAll } from "vitest";
import type { OrganizationLimits } from "../../../src/access/organization-limits.js";
import { done } from "../../../src/base/errors.js";
import { entitlementsOf } from "../../../src/access/entitlements.js";
import type { CallerStore } from "../../../src/access/admission.js";
import { FailedLogins } from "../../../src/access/failed-logins.js";
import { makeAuthenticator } from "../../../src/access/authenticator.js";
import { systemClock } from "../../../src/base/clock.js";
import type { Log } from "../../../src/base/log.js";
import type { Staging } from "../../../src/archive/archives.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import type { HttpDeps, HttpOptions } from "../../../src/http/deps.js";
import { listen, type ListeningApi } from "../../../src/http/server.js";
import { RecordedOperations } from "./recorded-operations.js";

export const rootPerson = { id: "root", email: "root@remuda.invalid", name: null };
export const key = "rk_test_key_of_this_suite";

export const httpOptions: HttpOptions = {
  host: "127.0.0.1",
  port: 0,
  trustedProxies: [],
  region: "us-east",
  version: "0.1.0",
  bodyLimitBytes: 6 * 1024 * 1024,
  uploads: { maxFileBytes: 50 * 2 ** 20, stallMs: 20_000, limitMs: 300_000 },
  headersTimeoutMs: 15_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 72_000,
  silenceTimeoutMs: 600_000,
  maxConnections: 1000,
  closeLimitMs: 2000,
  logsRequests: true,
};

export interface LogLine {
  readonly level: string;
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

export function makeLogBook(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...fields }, message });
  const log: Log = {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: () => log,
  };
  return { log, lines };
}

export interface TestServer extends ListeningApi {
  readonly url: string;
  readonly operations: RecordedOperations;
  readonly lines: LogLine[];
}

const limits: OrganizationLimits = {
  concurrentSessions: 10,
  ofEachProject: 4,
  usedSessions: 3,
  usedVaults: 1,
};
const fail = async (): Promise<never> => {
  throw new Error("a test that stages files brings a staging");
};
const nowhere: Staging = { take: fail, directory: fail };

/** Whoever needs no look-up has no rate. */
export const unlimited: CallerStore = { isLimited: false, admit: async () => ({ kind: "elsewhere" }) };

export const makeDeps = (operations = new RecordedOperations(), log = makeLogBook().log): HttpDeps => ({
  authenticator: makeAuthenticator({
    rootKey: new Secret(key),
    rootPerson,
    keys: { admit: async () => ({ kind: "unknown" }), recall: () => undefined },
    callers: unlimited,
    hasProjects: false,
  }),
  failedLogins: new FailedLogins(null, systemClock),
  endedAmong: async () => [],
  wireNames: "neutral",
  findRemoved: async ({ ref }) => ref,
  thingsIn: () => ({ find: async () => undefined, choose: async () => undefined }),
  apiKeys: operations.apiKeys,
  projects: operations.projects,
  nodes: operations.nodes,
  drainsUntil: () => undefined,
  limits: { read: async () => limits, update: async () => done(limits) },
  entitlements: entitlementsOf({ concurrentSessions: 10, maxExtensions: 1000, maxVaults: 10 }),
  operationsIn: () => operations,
  staging: nowhere,
  audit: { record() {}, recordNow: async () => {}, async begin() {} },
  auditLog: operations.auditLog,
  destinations: operations.destinations,
  tellPlatformCall: () => {},
  clock: systemClock,
  log,
  links: (browser, lease) => ({
    cdp_ws_url: `ws://here/browsers/${browser}/cdp?token=${lease}`,
    webdriver_ws_url: `ws://here/browsers/${browser}/webdriver?token=${lease}`,
  }),
  readiness: { unready: () => undefined, hasStore: () => true, vaultSafety: () => undefined },
  metrics: { contentType: "text/plain; version=0.0.4; charset=utf-8", text: async () => "remuda_nodes 1\n" },
  readScaling: async () => scalingOf([], []),
  interceptor: { request: () => false, upgrade: () => false },
});

export async function startServer(
  options: Partial<HttpOptions> = {},
  deps: Partial<HttpDeps> = {},
): Promise<TestServer> {
  const operations = new RecordedOperations();
  const { log, lines } = makeLogBook();
  const server = await listen({ ...httpOptions, ...options }, { ...makeDeps(operations, log), ...deps });
  return { ...server, url: `http://127.0.0.1:${server.port}`, operations, lines };
}

/** One server for all tests of a file, its record cleared after each. */
export function sharedServer(
  options: Partial<HttpOptions> = {},
  deps: Partial<HttpDeps> = {},
): () => TestServer {
  let server: TestServer | undefined;
  beforeAll(async () => {
    server = await startServer(options, deps);
  });
  afterEach(() => {
    server?.operations.reset();
    if (server) server.lines.length = 0;
  });
  afterAll(async () => server?.close());
  return () => {
    if (!server) throw new Error("the server is not started");
    return server;
  };
}

/** The error that it ends with. */
export const failed = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "no error",
    (error: unknown) => error,
  );

export interface Sent {
  readonly method?: string;
  readonly body?: unknown;
  /** Sent as it is, whatever it is. */
  readonly text?: string;
  readonly headers?: Record<string, string>;
}
export interface Got {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- replies are looked into, field by field, by the tests
  readonly body: any;
}

export async function send(
  url: string,
  { method = "GET", body, text, headers = {} }: Sent = {},
): Promise<Got> {
  const payload = text ?? (body === undefined ? undefined : JSON.stringify(body));
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const reply = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${key}`, ...type, ...headers },
    ...(payload !== undefined && { body: payload }),
  });
  const got = await reply.text();
  const isJson = reply.headers.get("content-type")?.includes("json") === true;
  return {
    status: reply.status,
    headers: reply.headers,
    text: got,
    body: isJson ? JSON.parse(got) : undefined,
  };
}
