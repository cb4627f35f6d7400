import { expect, test } from "vitest";
import { ruleOf } from "../../src/access/operation-rules.js";
import { type Action, allows, knowsOf, policyFaults } from "../../src/access/policy.js";
import type { ProjectId } from "../../src/base/ids.js";

const project = "p1" as ProjectId;
const policyOf = (...pairs: readonly (readonly [string, string])[]) => ({
  statements: pairs.map(([action, resource]) => ({ action: action as Action, resource })),
});
const mine = { project, thing: { kind: "browsers", id: "b1" } } as const;

test.each([
  ["organizations/default/*", true],
  ["projects/p1/*", true],
  ["projects/p1/browsers/b1", true],
  ["projects/p1/browsers/b2", false],
  ["projects/p1/profiles/b1", false],
  ["projects/p2/*", false],
  ["projects/p2/browsers/b1", false],
  ["projects/*", false],
  ["projects/p1/browsers/*", false],
  ["organizations/other/*", false],
  ["*", false],
])("browsers:use on %s lets the browser be used: %s", (resource, expected) => {
  expect(allows(policyOf(["browsers:use", resource]), "browsers:use", mine)).toBe(expected);
  expect(allows(policyOf(["browsers:write", resource]), "browsers:use", mine)).toBe(false);
  expect(knowsOf(policyOf(["browsers:write", resource]), project, mine.thing)).toBe(expected);
  expect(knowsOf(policyOf(["profiles:use", resource]), project, mine.thing)).toBe(false);
});

const targets = {
  hasProject: async (id: string) => id === "p1",
  has: async (_project: string, _kind: string, id: string) => id === "there",
};
test.each([
  [null, "browsers:create", "projects/p1/*", undefined],
  [null, "browsers:create", "organizations/default/*", undefined],
  [null, "organizations:read", "organizations/default/*", undefined],
  [null, "profiles:read", "projects/p1/profiles/there", undefined],
  ["p1", "profiles:read", "projects/p1/profiles/there", undefined],
  ["p1", "profiles:read", "organizations/default/*", "wider than the key's project"],
  ["p1", "profiles:read", "projects/p2/*", "outside the key's project"],
  [null, "profiles:read", "projects/p2/*", "names no project"],
  [null, "profiles:read", "organizations/other/*", "must be organizations/default/*"],
  [null, "organizations:read", "projects/p1/*", "only"],
  [null, "profiles:read", "projects/p1/profiles/gone", "none of the project's profiles"],
  [null, "profiles:read", "projects/p1/proxies/there", "not granted on proxies"],
  [null, "profiles:create", "projects/p1/profiles/there", "not on one thing"],
  [null, "profiles:read", "projects/p1/profiles/*", "must be organizations/default/*, projects/{id}/* or"],
  [null, "profiles:read", "projects/*/*", "must be organizations/default/*, projects/{id}/* or"],
  [
    null,
    "profiles:read",
    "projects/p1/browser_pools/there",
    "must be organizations/default/*, projects/{id}/* or",
  ],
  [null, "profiles:read", "*", "must be organizations/default/*, projects/{id}/* or"],
] as const)("for a key of %s, %s on %s: %s", async (...[scope, action, resource, fault]) => {
  const found = await policyFaults(policyOf([action, resource]), scope as ProjectId | null, targets);
  if (fault === undefined) return expect(found).toEqual([]);
  expect(found).toEqual([{ code: "invalid_input", message: expect.stringContaining(fault) }]);
  expect(found[0]?.message).toMatch(/^policy\.statements\[0\]\.resource: /);
});

test("an operation without a row is an error", () => {
  for (const name of [undefined, "", "newOperation", "toString", "__proto__"])
    expect(() => ruleOf(name)).toThrow("no row");
});
