import { RateLimitError } from "@onkernel/sdk";
import { afterEach, expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";
import { failed, type Got } from "../support/http/http-server.js";

const bed = sharedAccessBed(1, {
  projects: { enabled: true },
  limits: {
    pooled_sessions: 3,
    concurrent_sessions: 3,
    max_pools: 2,
    max_profiles: 1,
    max_extensions: 4,
    creation_rate_per_minute: 100,
  },
  access: { max_keys: 3 },
  vault: { max_vaults: 2 },
});
const there = (project: string) => ({ "x-kernel-project-id": project });
const launch = { headless: true };
const post = (path: string, body: object, project = "default"): Promise<Got> =>
  bed.root.call(`POST ${path}`, body, there(project));
const pool = (size: number, project?: string): Promise<Got> =>
  post("/browser_pools", { size, headless: true, fill_rate_per_minute: 0 }, project);

/** What a refusal says of the limit that is reached. */
const toldBy = ({ status, body, headers }: Got) => [
  status,
  body.code,
  headers.get("x-ratelimit-limit"),
  headers.get("x-ratelimit-remaining"),
  headers.get("retry-after"),
];

afterEach(async () => {
  for (const { id } of (await bed.root.call("GET /org/projects")).body) {
    const { body: pools } = await bed.root.call("GET /browser_pools", undefined, there(id));
    for (const one of pools) await bed.root.call(`DELETE /browser_pools/${one.id}`, {}, there(id));
  }
});

test("a pool beyond a limit is told which, whose and how many it allows", async () => {
  expect((await pool(2)).status).toBe(201);
  const pooled = await pool(2);
  expect(toldBy(pooled)).toEqual([403, "limit_exceeded", "3", "0", null]);
  expect(pooled.body.message).toContain("the organization's limit of pooled sessions");

  expect((await pool(1)).status).toBe(201);
  const many = await pool(1);
  expect(toldBy(many)).toEqual([403, "limit_exceeded", "2", "0", null]);
  expect(many.body.message).toMatch(/^The project has as many pools/);
});

test("a pool and a session beyond the project's own limit are told that one", async () => {
  const { id } = await bed.kernel.projects.create({ name: "narrow" });
  await bed.kernel.projects.limits.update(id, { max_concurrent_sessions: 1 });
  expect((await pool(1, id)).status).toBe(201);
  const grown = await bed.root.call("GET /browser_pools", undefined, there(id));
  const refused = await bed.root.call(`PATCH /browser_pools/${grown.body[0].id}`, { size: 2 }, there(id));
  expect(toldBy(refused)).toEqual([403, "limit_exceeded", "1", "0", null]);
  expect(refused.body.message).toContain("the project's limit of concurrent sessions");

  const session = await post("/browsers", launch, id);
  expect(toldBy(session)).toEqual([429, "too_many_sessions", "1", "0", "5"]);
  expect(session.body.message).toMatch(/^The project has/);
  expect((await pool(2)).status).toBe(201);
});

test("a session beyond the default limit of projects is told whose it is, and not what is left of its rate", async () => {
  await bed.kernel.organization.limits.update({ default_project_max_concurrent_sessions: 2 });
  expect((await pool(2)).status).toBe(201);
  const refused = await post("/browsers", launch);
  expect(toldBy(refused)).toEqual([429, "too_many_sessions", "2", "0", "5"]);
  expect(refused.body.message).toMatch(/^The project has/);
  await bed.kernel.organization.limits.update({ default_project_max_concurrent_sessions: 0 });
});

test("whoever may not see the organization's limits is not told that one of them is reached", async () => {
  const browsing = ["browsers:create", "browsers:use"].map((action) => ({
    action,
    resource: "projects/default/*",
  }));
  const seeing = { action: "organizations:read", resource: "organizations/default/*" };
  const blind = await bed.make({ policy: { statements: browsing } });
  const sighted = await bed.make({ policy: { statements: [...browsing, seeing] } });
  expect((await pool(3)).status).toBe(201);
  const { id } = await bed.kernel.projects.create({ name: "beside" });
  const ofProject = await bed.make({ project_id: id });

  const unseen = await bed.as(blind.key).call("POST /browsers", launch);
  expect([unseen.status, unseen.body.code, unseen.headers.get("retry-after")]).toEqual([
    429,
    "too_many_sessions",
    "5",
  ]);
  expect(unseen.body.message).not.toContain("rganization");
  // Those of its rate.
  expect(unseen.headers.get("x-ratelimit-limit")).toBe("100");
  for (const { key } of [sighted, ofProject]) {
    const seen = await bed.as(key).call("POST /browsers", launch);
    expect(toldBy(seen)).toEqual([429, "too_many_sessions", "3", "0", "5"]);
    expect(seen.body.message).toMatch(/^The organization has/);
  }
  expect(await failed(bed.as(blind.key).kernel({ maxRetries: 0 }).browsers.create(launch))).toBeInstanceOf(
    RateLimitError,
  );

  const tooManyKeys = await post("/org/api_keys", { name: "beyond" });
  expect(toldBy(tooManyKeys)).toEqual([403, "limit_exceeded", "3", "0", null]);
  expect(tooManyKeys.body.message).toMatch(/^The organization has as many API keys/);
});

test("what is registered beyond a limit of the project is told that one", async () => {
  expect((await post("/profiles", { name: "one" })).status).toBe(201);
  const refused = await post("/profiles", { name: "two" });
  expect(toldBy(refused)).toEqual([403, "limit_exceeded", "1", "0", null]);
  expect(refused.body.message).toMatch(/^The project has as many profiles/);
});

test("limits and entitlements tell what is configured, and what is used of it", async () => {
  const { body: entitled } = await bed.root.call("GET /org/entitlements");
  expect(entitled).toMatchObject({
    limits: { max_concurrent_browsers: 3, max_vaults: 2 },
    features: { browser_extensions: { enabled: true, max_stored_per_org: 4 } },
  });
  expect((await pool(2)).status).toBe(201);
  await post("/vaults", { name: "counted" });
  // What pools of other tests had is given back by a tick.
  await expect
    .poll(async () => (await bed.root.call("GET /org/limits")).body)
    .toMatchObject({
      max_concurrent_sessions: 3,
      concurrent_sessions_used: 2,
      concurrent_sessions_available: 1,
      vaults_used: 1,
    });
});
