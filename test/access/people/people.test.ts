import { expect, test } from "vitest";
import { makePeople, type PeopleSettings } from "../../../src/access/people.js";
import type { Principal } from "../../../src/access/principal.js";
import { done } from "../../../src/base/errors.js";
import { peopleSettings } from "../../support/access/principals.js";
import { makeLogBook } from "../../support/http/http-server.js";

async function identify(
  claims: Record<string, unknown>,
  settings: Partial<PeopleSettings> = {},
): Promise<Principal> {
  const verifier = {
    verify: async () => done({ claims: { sub: "ada", project: "*", ...claims }, until: 7 }),
  };
  const got = await makePeople(verifier, { ...peopleSettings, ...settings }, makeLogBook().log).identify(
    "a.b.c",
  );
  if (got.kind === "refused") throw new Error(got.code);
  return got.value;
}
/** Who has a policy is a reader, or nobody. */
async function roleIn(...asked: Parameters<typeof identify>): Promise<"admin" | "member" | number> {
  const { policy, isMember } = await identify(...asked);
  return policy?.statements.length ?? (isMember ? "member" : "admin");
}

test("a person is who the claims say", async () => {
  expect(await identify({ email: "ada@people.example", name: "Ada", roles: "admin" })).toEqual({
    method: "jwt",
    source: "oauth",
    credentialId: null,
    type: "user",
    id: "ada",
    person: { id: "ada", email: "ada@people.example", name: "Ada" },
    credentialScope: null,
    effectiveScope: null,
    expiresAt: 7,
  });
});

test.each([
  ["no address", {}],
  ["one that is not verified", { email: "root@remuda.invalid", email_verified: false }],
  ["one that is not verified, told as a text", { email: "root@remuda.invalid", email_verified: "false" }],
  ["half of a surrogate pair in it", { email: "a\ud800@people.example", name: "\udc00" }],
  ["one that is no text", { email: ["ada@people.example"] }],
])("who has %s has an unknown one", async (_, claims) => {
  expect((await identify(claims)).person).toEqual({ id: "ada", email: "unknown@remuda.invalid", name: null });
});

test.each([[""], [undefined], [7], ["x".repeat(256)], ["half \ud800"]])(
  "a person with the id %j is nobody",
  async (sub) => {
    await expect(identify({ sub })).rejects.toThrow("unauthorized");
  },
);

test("a claim may stand within others, and may have dots in its name", async () => {
  const roleClaim = "realm.roles";
  expect(await roleIn({ realm: { roles: ["admin"] } }, { roleClaim })).toBe("admin");
  expect(await roleIn({ "realm.roles": ["admin"] }, { roleClaim })).toBe("admin");
  expect(await roleIn({ realm: ["admin"] }, { roleClaim })).toBe(0);
  expect(await roleIn({}, { roleClaim: "constructor.name", admins: ["Object"] })).toBe(0);
});

test("who has no role has what the setting says, which is nothing by default", async () => {
  expect(await roleIn({})).toBe(0);
  const reads = await roleIn({ roles: "reader" });
  expect(reads).toBeGreaterThan(0);
  expect(await roleIn({ roles: "stranger" }, { defaultRole: "reader" })).toBe(reads);
  expect(await roleIn({ roles: "stranger" }, { defaultRole: "member" })).toBe("member");
});

test("tokens of the named clients are sessions of a dashboard", async () => {
  for (const claims of [{ azp: "console" }, { client_id: "console" }])
    expect((await identify(claims)).source).toBe("dashboard");
  for (const claims of [{}, { azp: "another", client_id: "console" }, { azp: ["console"] }])
    expect((await identify(claims)).source).toBe("oauth");
});
