import type { JWTPayload } from "jose";
import { expect, test } from "vitest";
import { ruleOf } from "../../../src/access/operation-rules.js";
import { actions, type Policy } from "../../../src/access/policy.js";
import type { ProjectId } from "../../../src/base/ids.js";
import { askFor, type Listed, listOperations } from "../../support/access/listed-operations.js";
import {
  authenticator,
  blue,
  knownKey,
  otherSigner,
  thingsWith,
  tokenOf,
  unsignedToken,
} from "../../support/access/principals.js";
import { sharedServer } from "../../support/http/http-server.js";

const server = sharedServer({}, { authenticator, thingsIn: () => thingsWith(undefined) });
const calls = () => server().operations.calls;

/** What is answered, and what was done for it. */
async function outcome(operation: Listed, bearer: string, project?: string): Promise<unknown> {
  calls().length = 0;
  const { status, body } = await askFor(server().url, operation, { bearer, project });
  return { status, code: status < 400 ? undefined : body.code, done: calls().map((call) => call.operation) };
}

test("nobody gets to any operation with a token that is bad in any way", async () => {
  const bad = [
    unsignedToken({ roles: "admin" }),
    await tokenOf({ roles: "admin" }, await otherSigner()),
    await tokenOf({ roles: "admin", aud: "urn:another" }),
    await tokenOf({ roles: "admin", iss: "https://another.example" }),
    await tokenOf({ roles: "admin", exp: 1 }),
    await tokenOf({ roles: "admin", nbf: 9_999_999_999 }),
    await tokenOf({ roles: "admin", sub: "" }),
  ];
  for (const operation of await listOperations(server().url))
    for (const bearer of bad)
      expect(await outcome(operation, bearer), operation.operationId).toEqual({
        status: 401,
        code: "unauthorized",
        done: [],
      });
});

test("nobody gets to any operation with a token that names no project of this deployment", async () => {
  for (const project of [undefined, "", "nowhere", 1, ["*"]]) {
    const bearer = await tokenOf({ roles: "admin", project });
    for (const operation of await listOperations(server().url))
      expect(await outcome(operation, bearer)).toEqual({ status: 403, code: "insufficient_scope", done: [] });
  }
  const elsewhere = await tokenOf({ roles: "admin", project: "aaaaaaaaaaaa" });
  for (const operation of await listOperations(server().url))
    expect(await outcome(operation, elsewhere)).toMatchObject({ code: "project_not_found", done: [] });
});

const may = (resource: string, wanted: (action: string) => boolean): Policy => ({
  statements: actions.filter(wanted).map((action) => ({ action, resource })),
});
const whole = "organizations/default/*";
const nothing = { statements: [] };
/** What there is of the organization is not for a reader of one project. */
const ofOneProject = (project: string): Policy =>
  may(`projects/${project}/*`, (action) => action.endsWith(":read") && !action.startsWith("organizations:"));
/** Each person beside the key of which docs/access.md says that it may do the same. */
const rows: readonly (readonly [string, JWTPayload, Parameters<typeof knownKey>[0]])[] = [
  ["an admin", { roles: ["x", "admin"] }, {}],
  ["an admin of a project", { roles: "admin", project: "default" }, { projectId: "default" as ProjectId }],
  ["a reader", { roles: "reader" }, { policy: may(whole, (action) => action.endsWith(":read")) }],
  ["an admin of another project", { roles: "admin", project: blue }, { projectId: blue }],
  [
    "a reader of a project",
    { roles: "reader", project: "default" },
    { projectId: "default" as ProjectId, policy: ofOneProject("default") },
  ],
  [
    "a reader of another project",
    { roles: "reader", project: blue },
    { projectId: blue, policy: ofOneProject(blue) },
  ],
  ["somebody of an unknown role", { roles: ["Admin", "admins", null, 1] }, { policy: nothing }],
  ["somebody whose role is an object", { roles: { admin: true } }, { policy: nothing }],
  ["somebody without a role", {}, { policy: nothing }],
];
test.each(rows)("%s gets to what the key of the same rights gets to, and to nothing else", async (...row) => {
  const [, claims, key] = row;
  const [person, bearer] = [await tokenOf(claims), knownKey(key)];
  for (const operation of await listOperations(server().url))
    expect(await outcome(operation, person), operation.operationId).toEqual(await outcome(operation, bearer));
});

test("nobody of one project gets to any operation by naming another", async () => {
  const roles = ["admin", "member", "reader", "nobody"];
  const people = await Promise.all(roles.map((role) => tokenOf({ roles: role, project: blue })));
  const others = ["default", "aaaaaaaaaaaa", "nonsense"];
  const askers = people.flatMap((bearer) => others.map((other) => [bearer, other] as const));
  for (const operation of await listOperations(server().url))
    for (const asker of askers)
      expect(await outcome(operation, ...asker), operation.operationId).toEqual({
        status: 403,
        code: "insufficient_scope",
        done: [],
      });
});

test.each([
  ["a member", { roles: ["reader", "member"] }, {}],
  ["a member of a project", { roles: "member", project: "default" }, { projectId: "default" as ProjectId }],
])("%s gets to what a key without a policy gets to, but administers nothing", async (_, claims, key) => {
  const [person, bearer] = [await tokenOf(claims), knownKey(key)];
  const refused = { status: 403, code: "insufficient_scope", done: [] };
  const administered = (await listOperations(server().url)).filter(({ operationId }) =>
    isAdministration(operationId),
  );
  expect(administered.length).toBeGreaterThan(15);
  for (const operation of await listOperations(server().url))
    expect(await outcome(operation, person), operation.operationId).toEqual(
      isAdministration(operation.operationId) ? refused : await outcome(operation, bearer),
    );
});
const isAdministration = (operation: string): boolean => ruleOf(operation).of === "administration";
