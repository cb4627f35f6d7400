import { afterAll, beforeAll, expect, test } from "vitest";
import { AccessBed } from "../../support/access/access-bed.js";
import { OidcIssuer } from "../../support/access/oidc-issuer.js";
import { type DaemonClient, startDaemon } from "../../support/daemon/daemon.js";

let issuer: OidcIssuer;
const bed = new AccessBed();
/** A busy machine may take long over a fetch that is answered. */
const settings = (fetchLimitMs = 30_000) => ({
  access: {
    oidc: {
      issuer: issuer.url,
      audience: "urn:remuda",
      dashboard_clients: ["console"],
      fetch_limit_ms: fetchLimitMs,
    },
  },
  projects: { enabled: true },
});
beforeAll(async () => {
  issuer = await OidcIssuer.start();
  await bed.start(2, settings());
});
afterAll(async () => {
  await bed.stop();
  await issuer.stop();
});
const person = async (client: string, control = 0): Promise<DaemonClient> =>
  bed.as(await issuer.tokenOf(client), control);

test("who shows a token of the issuer is told who they are and how far they reach", async () => {
  const ada = await person("ada");
  expect((await ada.call("GET /auth/context")).body).toEqual({
    authentication: { method: "jwt", source: "oauth", credential_id: null },
    principal: { type: "user", id: "ada" },
    organization: { id: "default" },
    authorization: { credential_scope: { project_id: null }, effective_scope: { project_id: null } },
  });
  const made = await ada.kernel().projects.create({ name: "people's" });
  const there = await ada.call("GET /auth/context", undefined, { "x-kernel-project-id": made.id });
  expect(there.body.authorization).toEqual({
    credential_scope: { project_id: null },
    effective_scope: { project_id: made.id },
  });
  const elsewhere = { "x-kernel-project-id": "aaaaaaaaaaaa" };
  expect(await ada.call("GET /browsers", undefined, elsewhere)).toMatchObject({
    status: 404,
    body: { code: "project_not_found" },
  });
  const { body } = await (await person("console", 1)).call("GET /auth/context");
  expect(body.authentication).toMatchObject({ method: "jwt", source: "dashboard" });
});

test("an admin manages keys, and answers for them; whoever has less makes none", async () => {
  const ada = await person("ada");
  const made = await ada.call("POST /org/api_keys", { name: "ada's" });
  expect(made).toMatchObject({
    status: 201,
    body: { created_by: { id: "ada", email: "ada@people.example", name: "Ada" } },
  });
  for (const client of ["max", "rea", "nil"])
    expect(await (await person(client)).call("POST /org/api_keys", { name: "more" })).toMatchObject({
      status: 403,
      body: { code: "insufficient_scope", message: "Only an admin may do that" },
    });
});

test("a member works with browsers, pools and profiles, a reader only looks, and who has no role does nothing", async () => {
  const [max, rea, nil] = [await person("max"), await person("rea"), await person("nil")];
  const profile = (who: DaemonClient, name: string) => who.call("POST /profiles", { name });
  expect((await profile(max, "of-max")).status).toBe(201);
  expect(await profile(rea, "of-rea")).toMatchObject({
    status: 403,
    body: { message: "Your role does not allow profiles:create in this project" },
  });
  expect((await profile(nil, "of-nil")).status).toBe(403);
  const seenBy = async (who: DaemonClient) => (await who.call("GET /profiles")).body;
  expect(await seenBy(rea)).toMatchObject([{ name: "of-max" }]);
  expect(await seenBy(nil)).toEqual([]);
  expect((await rea.call("DELETE /profiles/of-max")).status).toBe(403);
  expect((await max.call("POST /browser_pools", { name: "of-max", size: 1 })).status).toBe(201);
  expect(await rea.call("GET /browser_pools")).toMatchObject({
    status: 403,
    body: { message: "Only a member or an admin may do that" },
  });
  expect((await nil.call("GET /auth/context")).status).toBe(200);
});

test("the audit log says who it was", async () => {
  const max = await person("max");
  const start = new Date(Date.now() - 3_600_000).toISOString();
  expect((await max.call("GET /profiles?limit=7")).status).toBe(200);
  const end = new Date(Date.now() + 3_600_000).toISOString();
  await expect
    .poll(async () => (await bed.root.call(`GET /audit-logs?start=${start}&end=${end}&search=max@`)).body)
    .toContainEqual(
      expect.objectContaining({
        auth_strategy: "oauth",
        user_id: "max",
        email: "max@people.example",
        path: "/profiles",
        status: 200,
      }),
    );
});

test("a token for somebody else is refused, and nobody is told why", async () => {
  const got = await bed.as(await issuer.tokenOf("ada", "urn:another")).call("GET /auth/context");
  expect(got).toMatchObject({ status: 401, body: { code: "unauthorized" } });
  expect(got.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
  expect(got.text).not.toMatch(/audience|aud|signature|expired/);
});

// It comes last: the issuer does not come back.
test("where the issuer stands still or is gone, keys work as ever, and so do tokens where its keys are known", async () => {
  const { key } = await bed.make();
  const ada = await person("ada");
  const token = ada.apiKey;
  expect((await ada.call("GET /auth/context")).status).toBe(200);
  // This control has never asked for the issuer's keys.
  const late = await startDaemon({ role: "control", redisUrl: bed.redisUrl, file: settings(1000) });
  const lateAs = (bearer: string): DaemonClient => bed.at(late.url, bearer);
  const check = async () => {
    expect((await bed.as(key).call("GET /auth/context")).status).toBe(200);
    expect((await lateAs(key).call("GET /auth/context")).status).toBe(200);
    expect((await bed.as(token).call("GET /auth/context")).status).toBe(200);
    const waiting = lateAs(token).call("GET /auth/context");
    // Keys go on while a person waits.
    expect((await lateAs(key).call("GET /auth/context")).status).toBe(200);
    expect(await waiting).toMatchObject({ status: 503, body: { code: "unavailable" } });
  };
  try {
    issuer.freeze();
    await check();
    await issuer.stop();
    await check();
  } finally {
    await late.stop();
  }
});
