import { AuthenticationError, BadRequestError, NotFoundError } from "@onkernel/sdk";
import { expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";
import { failed } from "../support/http/http-server.js";

const bed = sharedAccessBed(1, {
  access: { root_id: "op-1", root_email: "operator@example.com", root_name: "The Operator" },
});
const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
const day = 24 * 60 * 60 * 1000;
const shape = {
  id: expect.stringMatching(/^[0-9a-z]{24}$/),
  name: "staging",
  created_at: instant,
  created_by: { id: "op-1", email: "operator@example.com", name: "The Operator" },
  expires_at: null,
  deleted_at: null,
  project_id: null,
  project_name: null,
  masked_key: expect.stringMatching(/^rmd_\.\.\.[0-9A-Za-z]{4}$/),
};

test("the official client creates, reads, renames, lists and deletes, with every nullable field explicit", async () => {
  const { key, ...made } = await bed.kernel.apiKeys.create({ name: "  staging " });
  expect(made).toEqual(shape);
  expect(key).toMatch(/^rmd_[0-9A-Za-z]{49}$/);
  expect(made.masked_key.slice(-4)).toBe(key.slice(-4));
  expect(await bed.kernel.apiKeys.retrieve(made.id)).toEqual(made);
  expect(await bed.kernel.apiKeys.update(made.id, { name: "renamed ü" })).toEqual({
    ...made,
    name: "renamed ü",
  });
  const listed = [];
  for await (const one of bed.kernel.apiKeys.list({ limit: 1 })) listed.push(one.id);
  expect(listed).toEqual([made.id]);
  await bed.kernel.apiKeys.delete(made.id);
  expect(await failed(bed.kernel.apiKeys.delete(made.id))).toBeInstanceOf(NotFoundError);
  expect(await failed(bed.kernel.apiKeys.retrieve(made.id))).toBeInstanceOf(NotFoundError);
  expect(await failed(bed.kernel.apiKeys.update(made.id, { name: "x" }))).toBeInstanceOf(NotFoundError);
  expect(await bed.kernel.apiKeys.retrieve(made.id, { include_deleted: true })).toEqual({
    ...made,
    name: "renamed ü",
    deleted_at: instant,
  });
});

test("a key's context is its own; the project appears where the request or the key names it", async () => {
  const { id, key } = await bed.make();
  // This version of the client has no method for it.
  const context = await bed.as(key).kernel().get("/auth/context");
  expect(context).toEqual({
    authentication: { method: "api_key", source: "api_key", credential_id: id },
    principal: { type: "api_key", id },
    organization: { id: "default" },
    authorization: { credential_scope: { project_id: null }, effective_scope: { project_id: null } },
  });
  const named = await bed.as(key).call("GET /auth/context", undefined, { "x-kernel-project-id": "default" });
  expect(named.body.authorization).toEqual({
    credential_scope: { project_id: null },
    effective_scope: { project_id: "default" },
  });
  const scoped = await bed.make({ project_id: "default" });
  expect((await bed.as(scoped.key).call("GET /auth/context")).body.authorization).toEqual({
    credential_scope: { project_id: "default" },
    effective_scope: { project_id: "default" },
  });
});

test("a key of one project reaches no other, makes keys of its project only, and sees no others", async () => {
  const wide = await bed.make();
  const scoped = await bed.make({ project_id: "default", name: "scoped" });
  const client = bed.as(scoped.key);
  expect(await client.call("GET /browsers", undefined, { "x-kernel-project-id": "other" })).toMatchObject({
    status: 403,
    body: { code: "insufficient_scope" },
  });
  expect(await client.call("GET /browsers", undefined, { "x-kernel-project-id": "default" })).toMatchObject({
    status: 200,
  });
  for (const operation of ["GET", "PATCH", "DELETE"])
    expect(
      await client.call(
        `${operation} /org/api_keys/${wide.id}`,
        operation === "PATCH" ? { name: "x" } : undefined,
      ),
    ).toMatchObject({ status: 404 });
  expect(await client.call(`POST /org/api_keys/${wide.id}/rotate`, {})).toMatchObject({ status: 404 });
  const made = await client.call("POST /org/api_keys", { name: "child" });
  expect(made.body).toMatchObject({ project_id: "default", project_name: "Default" });
  expect(await client.call("POST /org/api_keys", { name: "wide", project_id: null })).toMatchObject({
    status: 403,
    body: { code: "insufficient_scope" },
  });
  expect(await client.call("POST /org/api_keys", { name: "off", project_id: "other" })).toMatchObject({
    status: 404,
    body: { code: "project_not_found" },
  });
  const { body } = await client.call("GET /org/api_keys?limit=100");
  const listed = body.map(({ id }: { id: string }) => id);
  expect(listed).toEqual(expect.arrayContaining([scoped.id, made.body.id]));
  expect(listed).not.toContain(wide.id);
});

test("a page of the plain list begins anywhere, that of a search not beyond what is held for it", async () => {
  await bed.make();
  const list = (query: string) => bed.root.call(`GET /org/api_keys?${query}`);
  expect(await list(`offset=${Number.MAX_SAFE_INTEGER}`)).toMatchObject({ status: 200, body: [] });
  for (const search of ["query=made", "name=made", "sort_by=name", "sort_direction=asc", "status=all"]) {
    expect(await list(`${search}&offset=10000`)).toMatchObject({ status: 200, body: [] });
    const refused = await list(`${search}&offset=10001`);
    expect([refused.status, refused.body.details[0].code]).toEqual([400, "invalid_input"]);
  }
});

test("a key cannot delete itself; another can, and nobody finds or deletes the root key", async () => {
  const { id, key } = await bed.make();
  const own = bed.as(key).kernel({ maxRetries: 0 });
  expect(await failed(own.apiKeys.delete(id))).toMatchObject({
    status: 400,
    error: { code: "cannot_delete_current_key" },
  });
  expect(await failed(own.apiKeys.delete(id))).toBeInstanceOf(BadRequestError);
  await bed.kernel.apiKeys.delete(id);
  expect(await failed(own.apiKeys.list())).toBeInstanceOf(AuthenticationError);
  for (const method of ["GET", "DELETE"])
    expect(await bed.root.call(`${method} /org/api_keys/root`)).toMatchObject({ status: 404 });
});

test("rotation gives a new key with name, project and life of the old one, which works until its grace ends", async () => {
  const old = await bed.make({ name: "turning", project_id: "default", days_to_expire: 30 });
  const made = await bed.kernel.apiKeys.rotate(old.id);
  expect(made).toMatchObject({ name: "turning", project_id: "default", project_name: "Default" });
  expect(made.id).not.toBe(old.id);
  expect(Date.parse(made.expires_at ?? "") - Date.parse(made.created_at)).toBe(30 * day);
  const graced = await bed.kernel.apiKeys.retrieve(old.id);
  expect(Date.parse(graced.expires_at ?? "") - Date.parse(made.created_at)).toBe(7 * day);
  expect(graced.deleted_at).toBeNull();
  for (const key of [old.key, made.key])
    expect(await bed.as(key).call("GET /browsers")).toMatchObject({ status: 200 });
  // The old one's end only ever comes nearer.
  await bed.kernel.apiKeys.rotate(old.id, { expire_in_days: 20 });
  expect((await bed.kernel.apiKeys.retrieve(old.id)).expires_at).toBe(graced.expires_at);
  // A key may rotate itself, and without grace is over at once; an expired one is listed and may be rotated.
  const self = bed.as(made.key);
  const last = await self.call(`POST /org/api_keys/${made.id}/rotate`, { expire_in_days: 0 });
  expect(last).toMatchObject({ status: 201 });
  expect(await self.call("GET /browsers")).toMatchObject({ status: 401, body: { code: "unauthorized" } });
  expect((await bed.kernel.apiKeys.list({ name: "turning" })).items.map(({ id }) => id)).toContain(made.id);
  expect(await bed.root.call(`POST /org/api_keys/${made.id}/rotate`)).toMatchObject({ status: 201 });
});

test("a new life that is shorter than the grace is refused, also where it is the old key's", async () => {
  const { id, key } = await bed.make({ days_to_expire: 3 });
  for (const body of [{}, { days_to_expire: 6 }, { expire_in_days: 4 }]) {
    const got = await bed.root.call(`POST /org/api_keys/${id}/rotate`, body);
    expect(got, JSON.stringify(body)).toMatchObject({ status: 400, body: { code: "bad_request" } });
  }
  expect(await bed.as(key).call("GET /browsers")).toMatchObject({ status: 200 });
  expect(await bed.root.call(`POST /org/api_keys/${id}/rotate`, { expire_in_days: 3 })).toMatchObject({
    status: 201,
  });
});

test("a repeat under an idempotency key is told the same key again, and makes no other", async () => {
  const sent = { name: "once", days_to_expire: 5 };
  const once = { "idempotency-key": "order-1" };
  const [first, second] = await Promise.all([
    bed.root.call("POST /org/api_keys", sent, once),
    bed.root.call("POST /org/api_keys", sent, once),
  ]);
  expect(first.status).toBe(201);
  expect(second.body).toEqual(first.body);
  expect(await bed.as(first.body.key).call("GET /browsers")).toMatchObject({ status: 200 });
  expect((await bed.kernel.apiKeys.list({ name: "once" })).items).toHaveLength(1);
  expect(await bed.root.call("POST /org/api_keys", { ...sent, name: "other" }, once)).toMatchObject({
    status: 400,
    body: { code: "idempotency_mismatch" },
  });
  // What another caller was given is not told, whatever it sends.
  const stranger = await bed.make();
  const theirs = await bed.as(stranger.key).call("POST /org/api_keys", sent, once);
  expect(theirs.body.key).not.toBe(first.body.key);
  const path = `POST /org/api_keys/${first.body.id}/rotate`;
  const rotated = await bed.root.call(path, { expire_in_days: 0 }, once);
  expect(rotated.body.key).not.toBe(first.body.key);
  expect((await bed.root.call(path, { expire_in_days: 0 }, once)).body).toEqual(rotated.body);
});

test("a key that would end itself at once has no repeat that could be answered, and is told so beforehand", async () => {
  const { id, key } = await bed.make();
  const own = bed.as(key);
  const path = `POST /org/api_keys/${id}/rotate`;
  const once = { "idempotency-key": "last-order" };
  expect(await own.call(path, { expire_in_days: 0 }, once)).toMatchObject({
    status: 400,
    body: { code: "bad_request", details: [{ message: expect.stringMatching(/^expire_in_days: /) }] },
  });
  // Nothing was made, and the key goes on.
  const rotated = await own.call(path, { expire_in_days: 1 }, once);
  expect(rotated.status).toBe(201);
  expect((await own.call(path, { expire_in_days: 1 }, once)).body).toEqual(rotated.body);
  // Who counts on no repeat may end it.
  expect(await own.call(path, { expire_in_days: 0 })).toMatchObject({ status: 201 });
  expect(await own.call(path, { expire_in_days: 0 })).toMatchObject({ status: 401 });
});

test("a list takes every filter, sort and page", async () => {
  const tag = "Filter-É";
  for (const [name, days] of [
    ["b", 5],
    ["A", null],
    ["c", 2],
  ] as const)
    await bed.make({ name: `${tag} ${name}`, days_to_expire: days });
  const names = async (query: object): Promise<string[]> =>
    (await bed.kernel.apiKeys.list({ query: "filter-e", ...query })).items.map(({ name }) => name.slice(-1));
  expect(await names({})).toEqual(["c", "A", "b"]);
  expect(await names({ sort_direction: "asc" })).toEqual(["b", "A", "c"]);
  expect(await names({ sort_by: "name", sort_direction: "asc" })).toEqual(["A", "b", "c"]);
  expect(await names({ sort_by: "expires_at", sort_direction: "asc" })).toEqual(["c", "b", "A"]);
  expect(await names({ sort_by: "name", limit: 1, offset: 1 })).toEqual(["b"]);
  expect(await names({ name: "filter-e a" })).toEqual(["A"]);
  const [only] = (await bed.kernel.apiKeys.list({ name: `${tag} b` })).items;
  if (!only) throw new Error("it is not listed");
  await bed.kernel.apiKeys.delete(only.id);
  expect(await names({})).toEqual(["c", "A"]);
  expect(await names({ status: "deleted" })).toEqual(["b"]);
  expect(await names({ status: "all" })).toEqual(["c", "A", "b"]);
  expect(await names({ include_deleted: true })).toEqual(["c", "A", "b"]);
  for (const query of [only.id, only.id.slice(0, 10), only.masked_key])
    expect(await names({ query, status: "deleted" })).toEqual(["b"]);
  const page = await bed.root.call("GET /org/api_keys?limit=2");
  expect(page.headers.get("x-has-more")).toBe("true");
  expect(page.headers.get("x-next-offset")).toBe("2");
});

test.each([
  ["no name", {}],
  ["an empty name", { name: "" }],
  ["a blank name", { name: "  " }],
  ["a name with a line break", { name: "a\nb" }],
  ["a long name", { name: "x".repeat(256) }],
  ["no day", { name: "x", days_to_expire: 0 }],
  ["too many days", { name: "x", days_to_expire: 3651 }],
  ["an empty project", { name: "x", project_id: "" }],
  ["an unknown field", { name: "x", role: "admin" }],
])("a create with %s is refused", async (_, body) => {
  expect(await bed.root.call("POST /org/api_keys", body)).toMatchObject({
    status: 400,
    body: { code: "bad_request" },
  });
});

test("the use of a key is told on its read, and nothing of a key's text is kept or logged", async () => {
  const { id, key } = await bed.make();
  expect((await bed.root.call(`GET /org/api_keys/${id}`)).headers.get("x-remuda-last-used-at")).toBeNull();
  await bed.as(key).call("GET /browsers");
  const read = await bed.root.call(`GET /org/api_keys/${id}`);
  expect(read.headers.get("x-remuda-last-used-at")).toMatch(/^\d{4}-/);
  const rotated = await bed.root.call(`POST /org/api_keys/${id}/rotate`, {}, { "idempotency-key": "kept" });
  await bed.as(`${key.slice(0, -1)}!`).call("GET /browsers");
  const metrics = await bed.root.call("GET /metrics");
  const kept = (await bed.everythingKept()) + metrics.text + read.text;
  expect(kept).toContain(id);
  for (const text of [key, rotated.body.key]) expect(kept).not.toContain(text.slice(0, -5));
});
