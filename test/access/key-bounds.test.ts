import { expect, test } from "vitest";
import { sharedAccessBed } from "../support/access/access-bed.js";
import type { DaemonClient } from "../support/daemon/daemon.js";
import type { Got } from "../support/http/http-server.js";

const bed = sharedAccessBed(1, {
  access: { root_id: "op-1", root_email: "operator@example.com", root_name: "The Operator" },
  projects: { enabled: true },
});
const day = 24 * 60 * 60 * 1000;
const create = (body: object): Promise<Got> => bed.root.call("POST /org/api_keys", body);
const read = async (id: string): Promise<Got["body"]> =>
  (await bed.root.call(`GET /org/api_keys/${id}`)).body;
const list = (query: string, client: DaemonClient = bed.root): Promise<Got> =>
  client.call(`GET /org/api_keys?${query}`);
const idsIn = ({ body }: Got): string[] => (body as { id: string }[]).map(({ id }) => id);
const lifeOf = ({ created_at, expires_at }: { created_at: string; expires_at: string }): number =>
  (Date.parse(expires_at) - Date.parse(created_at)) / day;
const refused = { status: 400, body: { code: "bad_request", details: [{ code: "invalid_input" }] } };

test.each([
  ["no name", {}],
  ["an empty name", { name: "" }],
  ["a blank name", { name: " \t " }],
  ["a name with a line break", { name: "a\nb" }],
  ["a long name", { name: "x".repeat(256) }],
  ["no text for a name", { name: null }],
  ["a number for a name", { name: 7 }],
  ["another project", { name: "x", project_id: "default" }],
  ["a policy", { name: "x", policy: { statements: [] } }],
  ["another end", { name: "x", expires_at: null }],
])("a change of a key with %s is refused, and changes nothing", async (_, body) => {
  const { id } = await bed.make({ name: "kept" });
  const before = await read(id);
  expect(await bed.root.call(`PATCH /org/api_keys/${id}`, body)).toMatchObject(refused);
  expect(await read(id)).toEqual(before);
});

test("a name has 255 characters, however many bytes those are, and no white space around it", async () => {
  const longest = "😀".repeat(255);
  const made = await create({ name: longest });
  expect([made.status, made.body.name]).toEqual([201, longest]);
  const renamed = await bed.root.call(`PATCH /org/api_keys/${made.body.id}`, { name: "  turned round \t" });
  expect([renamed.status, renamed.body.name]).toEqual([200, "turned round"]);
  expect(await bed.root.call(`PATCH /org/api_keys/${made.body.id}`, { name: longest })).toMatchObject({
    status: 200,
    body: { name: longest },
  });
});

test.each([
  [{ days_to_expire: 0 }],
  [{ days_to_expire: 3651 }],
  [{ days_to_expire: 1.5 }],
  [{ days_to_expire: "7" }],
  [{ expire_in_days: -1 }],
  [{ expire_in_days: 3651 }],
  [{ expire_in_days: 0.5 }],
  [{ name: "other" }],
  [{ project_id: null }],
])("a rotation with %j is refused: there is no other key, and the old one is as it was", async (body) => {
  const name = `of ${JSON.stringify(body)}`;
  const { id } = await bed.make({ name });
  const before = await read(id);
  expect(await bed.root.call(`POST /org/api_keys/${id}/rotate`, body)).toMatchObject(refused);
  expect((await list(`name=${encodeURIComponent(name)}&status=all`)).body).toEqual([before]);
});

test("null is as nothing: no end and no project at a creation, the old life and 7 days of grace at a rotation", async () => {
  const endless = await create({ name: "endless", days_to_expire: null, project_id: null });
  expect(endless.body).toMatchObject({ expires_at: null, project_id: null, project_name: null });
  const next = await bed.root.call(`POST /org/api_keys/${endless.body.id}/rotate`, {
    days_to_expire: null,
    expire_in_days: null,
  });
  expect(next.body.expires_at).toBeNull();
  const graced = await read(endless.body.id);
  expect(Date.parse(graced.expires_at) - Date.parse(next.body.created_at)).toBe(7 * day);

  // One that has an end is made endless by no rotation.
  const finite = await create({ name: "finite", days_to_expire: 30 });
  for (const body of [{}, { days_to_expire: null }])
    expect(lifeOf((await bed.root.call(`POST /org/api_keys/${finite.body.id}/rotate`, body)).body)).toBe(30);
});

test("a life has 1 to 3650 days, and a grace up to as many", async () => {
  for (const days of [1, 3650])
    expect(lifeOf((await create({ name: "bounds", days_to_expire: days })).body)).toBe(days);
  const { id } = await bed.make({ name: "long grace" });
  const widest = { days_to_expire: 3650, expire_in_days: 3650 };
  const next = await bed.root.call(`POST /org/api_keys/${id}/rotate`, widest);
  expect([next.status, lifeOf(next.body)]).toEqual([201, 3650]);
  expect((await read(id)).expires_at).toBe(next.body.expires_at);
});

test("a key that has expired gets a successor, and no life of its own by that", async () => {
  const old = await bed.make({ name: "over" });
  await bed.root.call(`POST /org/api_keys/${old.id}/rotate`, { expire_in_days: 0 });
  const over = await read(old.id);
  const next = await bed.root.call(`POST /org/api_keys/${old.id}/rotate`, { expire_in_days: 30 });
  expect(next.status).toBe(201);
  expect(await read(old.id)).toEqual(over);
  expect(await bed.as(old.key).call("GET /browsers")).toMatchObject({ status: 401 });
  expect(await bed.as(next.body.key).call("GET /browsers")).toMatchObject({ status: 200 });
});

test("a key that was deleted has no successor", async () => {
  const { id } = await bed.make({ name: "deleted for good" });
  await bed.kernel.apiKeys.delete(id);
  expect(await bed.root.call(`POST /org/api_keys/${id}/rotate`, {})).toMatchObject({
    status: 404,
    body: { code: "not_found" },
  });
  expect((await list("name=deleted+for+good&status=all")).body).toMatchObject([{ id }]);
});

test("a key that another has made is of whoever has made that one, and so is what came of a rotation", async () => {
  const person = { id: "op-1", email: "operator@example.com", name: "The Operator" };
  const parent = await bed.make();
  const child = await bed.make({ name: "child" }, bed.as(parent.key));
  const grandchild = await bed.as(child.key).call("POST /org/api_keys", { name: "grandchild" });
  const rotated = await bed.as(child.key).call(`POST /org/api_keys/${parent.id}/rotate`, {});
  for (const { body } of [grandchild, rotated]) expect(body.created_by).toEqual(person);
  expect((await read(child.id)).created_by).toEqual(person);
});

test("a list has 20 keys to a page unless asked for others, and at most 100", async () => {
  for (let at = 0; at < 21; at += 1) await bed.make({ name: "one of many" });
  const usual = await list("");
  expect(usual.body).toHaveLength(20);
  expect([usual.headers.get("x-has-more"), usual.headers.get("x-next-offset")]).toEqual(["true", "20"]);
  expect((await list("limit=100&name=one+of+many")).body).toHaveLength(21);
  for (const query of [
    "limit=101",
    "limit=0",
    "limit=many",
    "offset=-1",
    "sort_by=policy",
    "sort_direction=up",
    "status=expired",
    "include_deleted=perhaps",
    `query=${"x".repeat(256)}`,
  ])
    expect(await list(query), query).toMatchObject(refused);
});

test("a search finds keys by who has made them, and by their project's name and id", async () => {
  const project = await bed.kernel.projects.create({ name: "Sömmer house" });
  const there = await bed.make({ name: "there", project_id: project.id });
  const ofNone = await bed.make({ name: "elsewhere" });
  for (const query of ["SOMMER", project.id, project.id.slice(2, 9)])
    expect(idsIn(await list(`query=${query}`)), query).toEqual([there.id]);
  for (const query of ["OPERATOR%40example", "op-1", "the+oper"])
    expect(idsIn(await list(`query=${query}`)), query).toEqual(expect.arrayContaining([there.id, ofNone.id]));
  expect(idsIn(await list("query=nobody%40example"))).toEqual([]);
});

test("a key outlives its project on the lists, where that has no name any more", async () => {
  const { id: project } = await bed.kernel.projects.create({ name: "short-lived" });
  const { id } = await bed.make({ project_id: project });
  expect(await read(id)).toMatchObject({ project_id: project, project_name: "short-lived" });
  await bed.kernel.projects.delete(project);
  expect(await read(id)).toMatchObject({ project_id: project, project_name: null, deleted_at: null });
  await bed.kernel.apiKeys.delete(id);
});

test("a key of one project manages the keys of that project", async () => {
  const { id: project } = await bed.kernel.projects.create({ name: "self-governed" });
  const chief = bed.as((await bed.make({ project_id: project })).key);
  const made = await chief.call("POST /org/api_keys", { name: "sibling", project_id: project });
  expect(made).toMatchObject({ status: 201, body: { project_id: project } });
  const path = `/org/api_keys/${made.body.id}`;
  expect(await chief.call(`GET ${path}`)).toMatchObject({ status: 200, body: { name: "sibling" } });
  expect(await chief.call(`PATCH ${path}`, { name: "renamed" })).toMatchObject({ status: 200 });
  const rotated = await chief.call(`POST ${path}/rotate`, {});
  expect(rotated).toMatchObject({ status: 201, body: { name: "renamed", project_id: project } });
  expect(await chief.call(`DELETE ${path}`)).toMatchObject({ status: 204 });
  expect(idsIn(await list("status=all", chief))).toEqual(
    expect.arrayContaining([made.body.id, rotated.body.id]),
  );
});
