import { expect, test } from "vitest";
import type { ExtensionId } from "../../src/base/ids.js";
import { done, refusal } from "../../src/base/errors.js";
import type { Session } from "../../src/pool/session.js";
import { send, type Sent, sharedServer } from "../support/http/http-server.js";
import { extension, pool, profile, session } from "../support/http/recorded-operations.js";

const server = sharedServer();
const ask = (path: string, sent: Sent = {}) => send(`${server().url}${path}`, sent);
const one = "1".repeat(24) as ExtensionId;

test("a pool tells what its selectors mean, and echoes them as they were sent; one without has no profile and no extensions", async () => {
  const named = {
    extensions: [{ name: "ads" }, { id: one }],
    profile: { name: "me" },
    refresh_on_profile_update: true,
  };
  const spec = { ...pool.spec, ...named, extension_ids: [extension.id, one], profile_id: profile.id };
  server().operations.answer("pools.get", done({ ...pool, spec }));
  const { body } = await ask("/browser_pools/herd");
  expect(body).toMatchObject({
    extension_ids: [extension.id, one],
    profile_id: profile.id,
    browser_pool_config: named,
  });
  for (const field of ["extension_ids", "profile_id"])
    expect(body.browser_pool_config).not.toHaveProperty(field);
  server().operations.answer("pools.get", done(pool));
  const bare = (await ask("/browser_pools/herd")).body;
  expect(bare.extension_ids).toEqual([]);
  expect(bare).not.toHaveProperty("profile_id");
});

async function shown(over: Partial<Session>) {
  server().operations.answer("sessions.get", done({ kind: "session", session: { ...session, ...over } }));
  return (await ask(`/browsers/${session.browser.id}`)).body;
}

test.each([true, false])(
  "a session shows its profile as the registry does, whether it saves (%s), and its policy",
  async (save) => {
    const launch = {
      ...session.launch,
      profile: { name: "called otherwise" },
      profile_id: profile.id,
      browser_policy: { HomepageLocation: "https://a.example" },
    };
    expect(await shown({ launch, profile: { id: profile.id, save, facts: profile } })).toMatchObject({
      profile: {
        id: profile.id,
        name: "me",
        created_at: "2023-11-14T22:13:20.000Z",
        updated_at: "2023-11-14T22:13:21.000Z",
        last_used_at: "2023-11-14T22:13:22.000Z",
      },
      profile_save_changes: save,
      browser_policy: { HomepageLocation: "https://a.example" },
    });
  },
);

test("of a profile that was deleted since a session shows the id; without one it shows neither", async () => {
  expect(await shown({ profile: { id: profile.id, save: true } })).toMatchObject({
    profile: { id: profile.id },
    profile_save_changes: true,
  });
  const bare = await shown({});
  for (const field of ["profile", "profile_save_changes"]) expect(bare).not.toHaveProperty(field);
});

test("a profile where one is loaded is a conflict that the official client does not try again", async () => {
  server().operations.answer("sessions.update", refusal("profile_loaded"));
  const got = await ask(`/browsers/${session.browser.id}`, {
    method: "PATCH",
    body: { profile: { name: "me", save_changes: true } },
  });
  expect([got.status, got.body.code, got.headers.get("x-should-retry")]).toEqual([
    409,
    "profile_loaded",
    "false",
  ]);
});

test("more than twenty extensions are refused before anything is asked", async () => {
  const extensions = Array.from({ length: 21 }, (_, at) => ({ name: `e${at}` }));
  for (const [method, path] of [
    ["POST", "/browser_pools"],
    ["PATCH", "/browser_pools/herd"],
    ["POST", "/browsers"],
  ] as const) {
    expect(
      (await ask(path, { method, body: { ...(path === "/browser_pools" && { size: 1 }), extensions } }))
        .status,
    ).toBe(400);
  }
  expect(server().operations.calls).toEqual([]);
});
