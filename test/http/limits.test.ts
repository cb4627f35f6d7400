import Kernel, { RateLimitError } from "@onkernel/sdk";
import { expect, test } from "vitest";
import { entitlementsOf } from "../../src/access/entitlements.js";
import type { LimitStore } from "../../src/access/organization-limits.js";
import { makeLimitOperations } from "../../src/access/organization-limits.js";
import { rootPrincipal } from "../../src/access/principal.js";
import type { RateLimiter } from "../../src/access/rate-limiter.js";
import { defaultProject } from "../../src/base/ids.js";
import { authenticator, blue, keyOf, keyWith, tokenOf } from "../support/access/principals.js";
import { failed, key, rootPerson, send, sharedServer } from "../support/http/http-server.js";
import { readDocument } from "../support/http/openapi-document.js";

let left = 3;
let leftAfterRefusal = 0;
const creations: RateLimiter = {
  async take() {
    left -= 1;
    if (left >= 0) return { perMinute: 3, remaining: left };
    left = leftAfterRefusal;
    return { perMinute: 3, remaining: 0, retryAfterMs: 1234 };
  },
};
/** As Redis keeps it: one value, set where it is what it was. */
let kept: number | null = null;
let isRaced = false;
const store: LimitStore = {
  read: async () => ({ ofEachProject: kept, reserved: 3, isAnySet: kept !== null }),
  async setOfEachProject(before, after) {
    if (isRaced) kept = 1;
    isRaced = false;
    if (kept !== before) return "changed";
    kept = after;
    return "set";
  },
};
const limits = makeLimitOperations({
  store,
  concurrentSessions: 10,
  countVaults: async (scope) => (scope === null ? 5 : 2),
});
const server = sharedServer({}, { authenticator, creations, limits, projects: undefined });
const client = () => new Kernel({ apiKey: key, baseURL: server().url, maxRetries: 0 });
const patch = (body: unknown) => send(`${server().url}/org/limits`, { method: "PATCH", body });

test("the official client reads and sets the organization's limits", async () => {
  const { limits: org } = client().organization;
  expect(await org.retrieve()).toEqual({
    max_concurrent_sessions: 10,
    default_project_max_concurrent_sessions: null,
    concurrent_sessions_used: 3,
    concurrent_sessions_available: 7,
    // Managed logins are not built, and each project has a limit of vaults of its own.
    auth_connections_used: 0,
    max_auth_connections: 0,
    min_health_check_interval_seconds: 0,
    vaults_used: 5,
    max_vaults: null,
  });
  isRaced = true;
  expect(await org.update({ default_project_max_concurrent_sessions: 2 })).toMatchObject({
    default_project_max_concurrent_sessions: 2,
  });
  expect(await org.update({})).toMatchObject({ default_project_max_concurrent_sessions: 2 });
  const unchanged = await patch({ default_project_max_concurrent_sessions: null });
  expect(unchanged.body).toMatchObject({ default_project_max_concurrent_sessions: 2 });
  expect(await org.update({ default_project_max_concurrent_sessions: 0 })).toMatchObject({
    default_project_max_concurrent_sessions: null,
  });
});

test.each([
  [{ default_project_max_concurrent_sessions: -1 }],
  [{ default_project_max_concurrent_sessions: 1.5 }],
  [{ default_project_max_concurrent_sessions: 11 }],
  [{ default_project_max_concurrent_sessions: "2" }],
  [{ max_concurrent_sessions: 20 }],
])("%j is refused with what is wrong, and changes nothing", async (body) => {
  const [field] = Object.keys(body);
  const got = await patch(body);
  expect(got).toMatchObject({
    status: 400,
    body: { code: "bad_request", details: [{ code: "invalid_input" }] },
  });
  expect(got.body.details[0].message).toContain(field);
  expect(kept).toBeNull();
});

test("a key of one project cannot change limits", async () => {
  const principal = { ...rootPrincipal(rootPerson), credentialScope: defaultProject };
  expect(await limits.update({ default_project_max_concurrent_sessions: 2 }, principal)).toMatchObject({
    code: "insufficient_scope",
  });
});

/** Where the operations of a feature begin; those without are fields of other operations. */
const featurePaths = {
  browser_extensions: "/extensions",
  browser_pools: "/browser_pools",
  browser_replays: "/browsers/{id_or_name}/replays",
  credential_providers: "/org/credential_providers",
  credentials: "/credentials",
  custom_proxies: "/proxies",
  file_io: "/browsers/{id_or_name}/fs",
  gpu: undefined,
  managed_auth: "/auth/connections",
  managed_proxies: undefined,
  profiles: "/profiles",
  proxy_bypass_hosts: undefined,
  search: "/search",
  vaults: "/vaults",
} as const;

test("entitlements name every feature, and what is not built is not enabled", async () => {
  const { status, body } = await send(`${server().url}/org/entitlements`);
  expect(status).toBe(200);
  expect(body).toMatchObject({
    plan: {
      id: "ENTERPRISE",
      effective_id: "ENTERPRISE",
      status: null,
      is_trialing: false,
      trial_ends_at: null,
    },
    limits: {
      max_concurrent_browsers: 10,
      max_concurrent_invocations: 0,
      default_max_concurrent_invocations_per_app: 0,
      max_vaults: 10,
    },
    features: {
      browser_extensions: { enabled: true, max_stored_per_org: 1000 },
      browser_replays: { retention_days: 0 },
      gpu: { enabled: false },
      managed_proxies: { enabled: false },
      managed_auth: {
        health_check_interval_default_seconds: 0,
        health_check_interval_max_seconds: 0,
        health_check_interval_min_seconds: 0,
        max_connections: 0,
      },
      proxy_bypass_hosts: { enabled: true },
    },
  });
  expect(Object.keys(body.features).toSorted()).toEqual(Object.keys(featurePaths));
  const { paths } = await readDocument<{ paths: Record<string, unknown> }>(server().url);
  for (const [feature, path] of Object.entries(featurePaths)) {
    const isBuilt = path !== undefined && Object.keys(paths).some((one) => one.startsWith(path));
    if (path !== undefined) expect([feature, body.features[feature].enabled]).toEqual([feature, isBuilt]);
  }
});

test("what has no limit is null among the entitlements", () => {
  const { limits: unlimited } = entitlementsOf({ concurrentSessions: null, maxExtensions: 0, maxVaults: 0 });
  expect(unlimited).toMatchObject({ max_concurrent_browsers: null, max_vaults: 0 });
});

test("limits of a project are as its other operations while there are no projects", async () => {
  const got = await send(`${server().url}/org/projects/default/limits`);
  expect(got).toMatchObject({ status: 404, body: { code: "projects_disabled" } });
});

test("every answer to POST /browsers says what is left of its rate; beyond it is 429", async () => {
  const post = (body: unknown) => send(`${server().url}/browsers`, { method: "POST", body });
  const leftIn = ({ headers }: { headers: Headers }) => [
    headers.get("x-ratelimit-limit"),
    headers.get("x-ratelimit-remaining"),
  ];
  expect(leftIn(await post({}))).toEqual(["3", "2"]);
  const malformed = await post({ headless: "yes" });
  expect([malformed.status, ...leftIn(malformed)]).toEqual([400, "3", "1"]);
  await post({});
  const refused = await post({});
  expect(refused).toMatchObject({ status: 429, body: { code: "rate_limit_exceeded" } });
  expect([...leftIn(refused), refused.headers.get("retry-after")]).toEqual(["3", "0", "2"]);
  expect(await failed(client().browsers.create())).toBeInstanceOf(RateLimitError);
  const read = await send(`${server().url}/browsers`);
  expect(leftIn(read)).toEqual([null, null]);
});

test("who may not create at all takes nothing of the rate, and is told nothing of it", async () => {
  left = 1;
  const here = `projects/${defaultProject}/*`;
  const uses = ["browsers:use", here] as const;
  const ask = async (bearer: string, more: object = {}, body: unknown = {}) => {
    const headers = { authorization: `Bearer ${bearer}`, ...more };
    const got = await send(`${server().url}/browsers`, { method: "POST", body, headers });
    return [got.status, got.headers.get("x-ratelimit-remaining")];
  };
  const creator = keyWith(["browsers:create", here], uses);
  const reader = await tokenOf({ roles: ["reader"] });
  for (const bearer of [keyWith(["profiles:read", here]), keyWith(uses), reader]) {
    expect(await ask(bearer)).toEqual([403, null]);
    expect(await ask(bearer, {}, { headless: "yes" })).toEqual([400, null]);
  }
  // What counts is the project that the request is about.
  expect(await ask(creator, { "x-kernel-project-id": blue })).toEqual([403, null]);
  expect(await ask(keyOf({ projectId: blue }, [["browsers:create", here], uses]))).toEqual([403, null]);
  expect(await ask(creator)).toEqual([200, "0"]);
  expect(await ask(creator)).toEqual([429, "0"]);
});

test("who may create, and not with what the body names, is held to the rate", async () => {
  left = 1;
  const here = `projects/${defaultProject}/*`;
  const creator = keyWith(["browsers:create", here], ["browsers:use", here]);
  const got = await send(`${server().url}/browsers`, {
    method: "POST",
    body: { profile: { name: "other" } },
    headers: { authorization: `Bearer ${creator}` },
  });
  expect([got.status, got.headers.get("x-ratelimit-remaining")]).toEqual([403, "0"]);
});

test("the official client comes back when it is told to, to the ms", async () => {
  left = 0;
  leftAfterRefusal = 1;
  const before = performance.now();
  const patient = new Kernel({ apiKey: key, baseURL: server().url, maxRetries: 1 });
  await patient.browsers.create();
  // A timer may fire a little early.
  expect(performance.now() - before).toBeGreaterThanOrEqual(1230);
  leftAfterRefusal = 0;
});

test("callers who are refused at once are not told to come back at once", async () => {
  left = 0;
  const refused = await Promise.all(
    Array.from({ length: 8 }, () => send(`${server().url}/browsers`, { method: "POST", body: {} })),
  );
  const waits = refused.map(({ headers }) => Number(headers.get("retry-after-ms")));
  expect(new Set(waits).size).toBeGreaterThan(1);
  for (const ms of waits) {
    expect(ms).toBeGreaterThanOrEqual(1234);
    expect(ms).toBeLessThanOrEqual(2 * 1234 + 1);
  }
});

test("what is used is told where any project has a limit, and nowhere else", async () => {
  const of = (isAnySet: boolean) =>
    makeLimitOperations({
      store: { ...store, read: async () => ({ ofEachProject: null, reserved: 3, isAnySet }) },
      concurrentSessions: null,
      countVaults: async () => 0,
    }).read(rootPrincipal(rootPerson));
  expect(await of(true)).toMatchObject({ usedSessions: 3 });
  expect(await of(false)).toMatchObject({ usedSessions: null });
});

test("a key of one project is told the limits, and not how much the others use", async () => {
  const root = rootPrincipal(rootPerson);
  expect(await limits.read(root)).toMatchObject({ concurrentSessions: 10, usedSessions: 3, usedVaults: 5 });
  const ofOne = { ...root, credentialScope: defaultProject, effectiveScope: defaultProject };
  expect(await limits.read(ofOne)).toMatchObject({
    concurrentSessions: 10,
    usedSessions: null,
    usedVaults: 2,
  });
});
