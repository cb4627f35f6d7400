import { ConflictError, NotFoundError, PermissionDeniedError } from "@onkernel/sdk";
import { expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";
import type { DaemonClient } from "../support/daemon/daemon.js";
import { failed, type Got } from "../support/http/http-server.js";
import { readDocument } from "../support/http/openapi-document.js";

const bed = sharedAccessBed(2, { projects: { enabled: true, max_projects: 40 } });
const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
const root = (): DaemonClient => bed.root;
const listIn = (project: string, client = root()): Promise<Got> =>
  client.call("GET /browser_pools", undefined, { "x-kernel-project-id": project });
const disabledPool = { size: 1, headless: true, fill_rate_per_minute: 0 };

test("the official client creates, reads by id and name, renames, archives, lists and deletes", async () => {
  const { projects } = bed.kernel;
  const made = await projects.create({ name: "  Stäging " });
  expect(made).toEqual({
    id: expect.stringMatching(/^[0-9a-z]{12}$/),
    name: "Stäging",
    status: "active",
    created_at: instant,
    updated_at: instant,
  });
  expect([await projects.retrieve(made.id), await projects.retrieve("Stäging")]).toEqual([made, made]);
  expect(await projects.update(made.id, { name: "renamed" })).toEqual({
    ...made,
    name: "renamed",
    updated_at: instant,
  });
  expect(await failed(projects.retrieve("Stäging"))).toBeInstanceOf(NotFoundError);
  const listed = [];
  for await (const one of projects.list({ limit: 1 })) listed.push(one.name);
  expect(listed).toEqual(["renamed", "Default"]);
  const found = async (query: object): Promise<string[]> =>
    (await projects.list(query)).getPaginatedItems().map(({ name }) => name);
  expect([
    await found({ name: "RÉNAMED" }),
    await found({ query: "nam" }),
    await found({ name: "ren" }),
  ]).toEqual([["renamed"], ["renamed"], []]);
  expect(await projects.update("renamed", { status: "archived" })).toMatchObject({ status: "archived" });
  expect(await projects.update("renamed", { status: "active" })).toMatchObject({ status: "active" });
  expect(await projects.delete("renamed")).toBeNull();
  expect(await failed(projects.delete(made.id))).toBeInstanceOf(NotFoundError);
  expect(await found({})).toEqual(["Default"]);
});

test("names are unique, and ids win over them", async () => {
  const { projects } = bed.kernel;
  const [one, other] = [await projects.create({ name: "one" }), await projects.create({ name: "other" })];
  expect(await failed(projects.create({ name: "one" }))).toBeInstanceOf(ConflictError);
  expect(await failed(projects.update(other.id, { name: "one" }))).toBeInstanceOf(ConflictError);
  expect(await projects.update(one.id, { name: "one" })).toMatchObject({ id: one.id, name: "one" });
  const twisted = await projects.create({ name: one.id });
  expect(await projects.retrieve(one.id)).toMatchObject({ id: one.id, name: "one" });
  for (const { id } of [one, other, twisted]) await projects.delete(id);
  for (const name of ["", "   ", "a\nb", "x".repeat(256)])
    expect(await root().call("POST /org/projects", { name })).toMatchObject({ status: 400 });
  const longest = await projects.create({ name: "😀".repeat(255) });
  await projects.delete(longest.id);
});

test.each([
  ["an empty name", { name: "" }],
  ["a blank name", { name: "  " }],
  ["a name with a line break", { name: "a\nb" }],
  ["a long name", { name: "x".repeat(256) }],
  ["no text for a name", { name: null }],
  ["an unknown status", { status: "deleted" }],
  ["no status", { status: null }],
  ["an id", { id: "default" }],
])("a change of a project with %s is refused, and changes nothing", async (_, body) => {
  const { projects } = bed.kernel;
  const made = await projects.create({ name: "kept" });
  expect(await root().call(`PATCH /org/projects/${made.id}`, body)).toMatchObject({
    status: 400,
    body: { code: "bad_request" },
  });
  expect(await projects.retrieve(made.id)).toEqual(made);
  await projects.delete(made.id);
});

test("a list of projects is found by id too, has archived ones, and at most 100 to a page", async () => {
  const { projects } = bed.kernel;
  const [early, late] = [await projects.create({ name: "early" }), await projects.create({ name: "late" })];
  await projects.update(early.id, { status: "archived" });
  const idsOf = ({ body }: Got): string[] => (body as { id: string }[]).map(({ id }) => id);
  expect(idsOf(await root().call("GET /org/projects"))).toEqual([late.id, early.id, "default"]);
  expect(idsOf(await root().call(`GET /org/projects?query=${early.id}`))).toEqual([early.id]);
  const page = await root().call("GET /org/projects?limit=1&offset=1");
  expect([idsOf(page), page.headers.get("x-has-more"), page.headers.get("x-next-offset")]).toEqual([
    [early.id],
    "true",
    "2",
  ]);
  for (const query of ["limit=101", "limit=0", "offset=-1"])
    expect(await root().call(`GET /org/projects?${query}`)).toMatchObject({ status: 400 });
  for (const { id } of [early, late]) await projects.delete(id);
});

test("the default project may be renamed, and is neither archived nor deleted", async () => {
  const { projects } = bed.kernel;
  expect(await projects.retrieve("default")).toMatchObject({ id: "default", name: "Default" });
  for (const refused of [
    await root().call("DELETE /org/projects/default"),
    await root().call("PATCH /org/projects/Default", { status: "archived" }),
  ])
    expect(refused).toMatchObject({ status: 409, body: { code: "last_active_project" } });
  expect(await projects.update("default", { name: "Main" })).toMatchObject({ id: "default", name: "Main" });
  const scoped = await bed.make({ project_id: "default" });
  expect((await root().call(`GET /org/api_keys/${scoped.id}`)).body).toMatchObject({ project_name: "Main" });
  await projects.update("default", { name: "Default" });
});

test("a request names an active project by its id; at every control from the next request on", async () => {
  const { projects } = bed.kernel;
  const { id } = await projects.create({ name: "named" });
  const second = bed.controls[1];
  if (!second) throw new Error("there are two controls");
  const unknown = {
    status: 404,
    body: { code: "project_not_found", message: "X-Kernel-Project-Id is the id of no active project" },
  };
  for (const client of [root(), second])
    expect(await listIn(id, client)).toMatchObject({ status: 200, body: [] });
  for (const text of ["named", "blueblueblue", "", "Default", `${id} `.toUpperCase()])
    expect(await listIn(text), text).toMatchObject(unknown);
  await projects.update(id, { status: "archived" });
  for (const client of [root(), second]) expect(await listIn(id, client)).toMatchObject(unknown);
  await projects.update(id, { status: "active" });
  expect(await listIn(id, second)).toMatchObject({ status: 200 });
  await projects.delete(id);
  for (const client of [root(), second]) expect(await listIn(id, client)).toMatchObject(unknown);
  expect(await listIn("default")).toMatchObject({ status: 200 });
});

test("a project that has something is not deleted; one that has a pool is not archived", async () => {
  const { projects } = bed.kernel;
  const made = await projects.create({ name: "full" });
  const { id } = made;
  const inIt = { "x-kernel-project-id": id };
  const refused = { status: 409, body: { code: "project_not_empty" } };
  const pool = (await root().call("POST /browser_pools", disabledPool, inIt)).body;
  expect(await root().call(`DELETE /org/projects/${id}`)).toMatchObject(refused);
  expect(await root().call(`PATCH /org/projects/${id}`, { status: "archived", name: "x" })).toMatchObject(
    refused,
  );
  expect(await projects.retrieve(id)).toEqual(made);
  expect(await root().call(`DELETE /browser_pools/${pool.id}`, undefined, inIt)).toMatchObject({
    status: 204,
  });
  const registered = [
    ["/profiles", { name: "me" }],
    ["/proxies", { type: "custom", config: { host: "proxy.example.com", port: 8080 } }],
  ] as const;
  for (const [path, body] of registered) {
    const { body: thing } = await root().call(`POST ${path}`, body, inIt);
    expect(await root().call(`DELETE /org/projects/${id}`)).toMatchObject(refused);
    expect(await projects.update(id, { status: "archived" })).toMatchObject({ status: "archived" });
    expect(await root().call(`DELETE /org/projects/${id}`)).toMatchObject(refused);
    expect(await projects.update(id, { status: "active" })).toMatchObject({ status: "active" });
    expect(await root().call(`DELETE ${path}/${thing.id}`, undefined, inIt)).toMatchObject({ status: 204 });
  }
  expect(await root().call(`DELETE /org/projects/${id}`)).toMatchObject({ status: 204 });
});

test("a key of one project sees and renames its own, and no more; it ends with its project", async () => {
  const { projects } = bed.kernel;
  const [mine, theirs] = [await projects.create({ name: "mine" }), await projects.create({ name: "theirs" })];
  const { key } = await bed.make({ project_id: mine.id });
  const client = bed.as(key);
  const kernel = client.kernel({ maxRetries: 0 });
  expect((await kernel.projects.list()).getPaginatedItems().map(({ id }) => id)).toEqual([mine.id]);
  expect(await kernel.projects.update(mine.id, { name: "my own" })).toMatchObject({ name: "my own" });
  expect(await failed(kernel.projects.retrieve(theirs.id))).toBeInstanceOf(NotFoundError);
  expect(await failed(kernel.projects.update("theirs", { name: "x" }))).toBeInstanceOf(NotFoundError);
  for (const work of [
    () => kernel.projects.create({ name: "new" }),
    () => kernel.projects.update(mine.id, { status: "archived" }),
    () => kernel.projects.delete(mine.id),
  ])
    expect(await failed(work())).toBeInstanceOf(PermissionDeniedError);
  expect((await client.call("GET /auth/context")).body.authorization).toEqual({
    credential_scope: { project_id: mine.id },
    effective_scope: { project_id: mine.id },
  });
  const pool = (await client.call("POST /browser_pools", { ...disabledPool, name: "herd" })).body;
  expect((await listIn(mine.id)).body).toMatchObject([{ id: pool.id }]);
  expect((await listIn("default")).body).toEqual([]);
  for (const other of [theirs.id, "default", "blueblueblue", "nonsense"])
    expect(await listIn(other, client), other).toMatchObject({
      status: 403,
      body: { code: "insufficient_scope" },
    });
  await client.call("DELETE /browser_pools/herd");
  for (const { id } of [mine, theirs]) await projects.delete(id);
  expect(await client.call("GET /browser_pools")).toMatchObject({
    status: 404,
    body: { code: "project_not_found" },
  });
});

test("a key with a policy sees the projects whose reading is allowed, and changes none", async () => {
  const { projects } = bed.kernel;
  const [seen, hidden] = [await projects.create({ name: "seen" }), await projects.create({ name: "hidden" })];
  const reads = (resource: string) => ({ policy: { statements: [{ action: "projects:read", resource }] } });
  const { key } = await bed.make(reads(`projects/${seen.id}/*`));
  const kernel = bed.as(key).kernel({ maxRetries: 0 });
  expect((await kernel.projects.list()).getPaginatedItems().map(({ id }) => id)).toEqual([seen.id]);
  expect(await kernel.projects.retrieve("seen")).toMatchObject({ id: seen.id });
  expect(await failed(kernel.projects.retrieve(hidden.id))).toBeInstanceOf(NotFoundError);
  for (const work of [
    () => kernel.projects.create({ name: "new" }),
    () => kernel.projects.update(seen.id, { name: "new" }),
    () => kernel.projects.delete(seen.id),
  ])
    expect(await failed(work())).toBeInstanceOf(PermissionDeniedError);
  const { key: wide } = await bed.make(reads("organizations/default/*"));
  const all = await bed.as(wide).kernel().projects.list();
  expect(all.getPaginatedItems()).toHaveLength(3);
  for (const { id } of [seen, hidden]) await projects.delete(id);
});

test("there are no more projects than the setting allows, however many are asked for at once", async () => {
  const { projects } = bed.kernel;
  const asked = await Promise.all(
    Array.from({ length: 45 }, (_, at) =>
      bed.as(root().apiKey, at % 2).call("POST /org/projects", { name: `p${at}` }),
    ),
  );
  const made = asked.filter(({ status }) => status === 201);
  expect([made.length, asked.filter(({ body }) => body.code === "limit_exceeded").length]).toEqual([39, 6]);
  await Promise.all(made.map(({ body }) => projects.delete(body.id)));
});

test("the paths of older clients do the same", async () => {
  const made = await root().call("POST /projects", { name: "old" });
  expect(made.status).toBe(201);
  expect((await root().call(`GET /projects/${made.body.id}`)).body).toEqual(made.body);
  expect((await root().call("PATCH /projects/old", { name: "older" })).body).toMatchObject({ name: "older" });
  expect((await root().call("GET /projects?query=older")).body).toMatchObject([{ id: made.body.id }]);
  expect(await root().call("DELETE /projects/older")).toMatchObject({ status: 204 });
  expect(await readDocument(root().url)).not.toHaveProperty(["paths", "/projects"]);
});
