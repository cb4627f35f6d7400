import { expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";

const bed = sharedAccessBed();
const whole = "projects/default/*";
const policy = (...pairs: readonly (readonly [string, string])[]) => ({
  policy: { statements: pairs.map(([action, resource]) => ({ action, resource })) },
});
const idOf = async (operation: string, body: object): Promise<string> => {
  const got = await bed.root.call(operation, body);
  if (got.status !== 201) throw new Error(got.text);
  return got.body.id as string;
};
const idsIn = (body: readonly { readonly id: string }[]): string[] => body.map(({ id }) => id);

test("a policy is kept and shown as it was sent, and a rotation copies it", async () => {
  const sent = policy(["profiles:read", whole], ["browsers:use", "organizations/default/*"]);
  const made = await bed.root.call("POST /org/api_keys", { name: "narrow", ...sent });
  expect(made).toMatchObject({ status: 201, body: sent });
  const rotated = await bed.root.call(`POST /org/api_keys/${made.body.id}/rotate`, {});
  expect(rotated.body).toMatchObject(sent);
  expect((await bed.root.call(`GET /org/api_keys/${rotated.body.id}`)).body).toMatchObject(sent);
  for (const { key } of [made.body, rotated.body]) {
    expect(await bed.as(key).call("GET /profiles")).toMatchObject({ status: 200 });
    expect(await bed.as(key).call("POST /profiles", {})).toMatchObject({ status: 403 });
    expect(await bed.as(key).call("GET /auth/context")).toMatchObject({ status: 200 });
    expect(await bed.as(key).call("GET /org/projects")).toMatchObject({
      body: { code: "projects_disabled" },
    });
  }
});

test("a key with a policy neither makes, reads, renames, rotates nor deletes a key, itself included", async () => {
  const { id, key } = await bed.make(policy(["profiles:read", "organizations/default/*"]));
  const client = bed.as(key);
  for (const [operation, body] of [
    ["POST /org/api_keys", { name: "strong" }],
    ["GET /org/api_keys", undefined],
    [`GET /org/api_keys/${id}`, undefined],
    [`PATCH /org/api_keys/${id}`, { name: "x" }],
    [`POST /org/api_keys/${id}/rotate`, {}],
    [`DELETE /org/api_keys/${id}`, undefined],
  ] as const)
    expect(await client.call(operation, body), operation).toMatchObject({
      status: 403,
      body: { code: "insufficient_scope" },
    });
});

test("a refusal says what the policy lacks, or that none would do", async () => {
  const { key } = await bed.make(policy(["profiles:read", whole], ["browsers:create", whole]));
  const client = bed.as(key);
  await idOf("POST /profiles", { name: "told" });
  for (const [operation, body, lacking] of [
    ["POST /browsers", {}, "does not allow browsers:use in this project"],
    ["DELETE /profiles/told", undefined, "does not allow profiles:delete here"],
    ["POST /browser_pools/default/acquire", {}, "No API key with a policy may do that"],
  ] as const)
    expect(await client.call(operation, body), operation).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining(lacking) },
    });
  const launching = bed.as((await bed.make(policy(["browsers:create", whole], ["browsers:use", whole]))).key);
  expect(await launching.call("POST /browsers", { profile: { name: "told" } })).toMatchObject({
    body: { message: expect.stringContaining("profiles:use on what the body names as its profile") },
  });
});

test("lists show what the key may see, paged after the rest is left out", async () => {
  for (const [kind, body] of [
    ["profiles", {}],
    ["proxies", { type: "custom", config: { host: "a.example", port: 1 } }],
  ] as const) {
    const ids: string[] = [];
    for (let at = 0; at < 5; at += 1) ids.push(await idOf(`POST /${kind}`, body));
    const [first = "", , third = "", , fifth = ""] = ids;
    const grants = [first, third, fifth].map(
      (id) => [`${kind}:read`, `projects/default/${kind}/${id}`] as const,
    );
    const client = bed.as((await bed.make(policy(...grants))).key);
    expect(idsIn((await client.call(`GET /${kind}`)).body)).toEqual([fifth, third, first]);
    const page = await client.call(`GET /${kind}?limit=2`);
    expect(idsIn(page.body)).toEqual([fifth, third]);
    expect([page.headers.get("x-has-more"), page.headers.get("x-next-offset")]).toEqual(["true", "2"]);
    const last = await client.call(`GET /${kind}?limit=2&offset=2`);
    expect(idsIn(last.body)).toEqual([first]);
    expect(last.headers.get("x-has-more")).toBe("false");
    expect(await client.call(`GET /${kind}/${third}`)).toMatchObject({ status: 200 });
    expect(await client.call(`GET /${kind}/${ids[1]}`)).toMatchObject({ status: 404 });
    expect(await client.call(`DELETE /${kind}/${third}`)).toMatchObject({ status: 403 });
    const none = bed.as((await bed.make(policy(["vaults:read", whole]))).key);
    expect(await none.call(`GET /${kind}`)).toMatchObject({ status: 200, body: [] });
  }
});

test("a grant on a thing is for this thing, however it is called, and for no other that takes its name", async () => {
  const granted = await idOf("POST /profiles", { name: "login" });
  const grant = [`profiles:read`, `projects/default/profiles/${granted}`] as const;
  const write = [`profiles:write`, `projects/default/profiles/${granted}`] as const;
  const client = bed.as((await bed.make(policy(grant, write))).key);
  expect(await client.call("GET /profiles/login")).toMatchObject({ status: 200, body: { id: granted } });
  expect(await client.call("PATCH /profiles/login", { name: "renamed" })).toMatchObject({ status: 200 });
  await idOf("POST /profiles", { name: "login" });
  expect(await client.call("GET /profiles/login")).toMatchObject({ status: 404 });
  expect(await client.call("PATCH /profiles/login", { name: "stolen" })).toMatchObject({ status: 404 });
  expect(await client.call("GET /profiles/renamed")).toMatchObject({ status: 200, body: { id: granted } });
});

test.each([
  ["no statement", { policy: { statements: [] } }],
  ["an unknown action", policy(["browser_pools:use", whole])],
  ["a wildcard for an action", policy(["*", whole])],
  ["a thing that is not there", policy(["profiles:read", `projects/default/profiles/${"a".repeat(24)}`])],
  ["a name in the place of an id", policy(["profiles:read", "projects/default/profiles/kept"])],
  ["a project that is not there", policy(["profiles:read", "projects/other/*"])],
  [
    "more than its project",
    { project_id: "default", ...policy(["profiles:read", "organizations/default/*"]) },
  ],
  ["a field that is not known", { policy: { statements: [], effect: "deny" } }],
  ["too many statements", policy(...Array.from({ length: 101 }, () => ["profiles:read", whole] as const))],
])("a policy with %s is refused", async (_, body) => {
  const { id } = (await bed.root.call("GET /profiles/kept")).body as { id?: string };
  if (id === undefined) await idOf("POST /profiles", { name: "kept" });
  expect(await bed.root.call("POST /org/api_keys", { name: "wrong", ...body })).toMatchObject({
    status: 400,
    body: { code: "bad_request" },
  });
});
