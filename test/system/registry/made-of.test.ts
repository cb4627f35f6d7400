import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type Daemon, type Lease, startDaemon } from "../../support/daemon/daemon.js";
import { marks } from "../../support/archive/extension-files.js";
import { key } from "../../support/http/http-server.js";
import { type LoginSite, lookAround, moveIn, openLoginSite } from "../../support/browser/sites/login-site.js";
import { connectRaw, type RawCdp } from "../../support/gateway/raw-cdp.js";
import { extensionZip } from "../../support/archive/zip-bytes.js";

let daemon: Daemon;
let site: LoginSite;
beforeAll(async () => {
  [daemon, site] = await Promise.all([startDaemon(), openLoginSite()]);
});
afterAll(async () => {
  await daemon.stop();
  await site.close();
});

const created = async (body: object): Promise<Lease> =>
  (await daemon.call("POST /browsers", { headless: true, timeout_seconds: 600, ...body })).body as Lease;
const acquire = async (pool: string): Promise<Lease> =>
  (await daemon.call(`POST /browser_pools/${pool}/acquire`, { acquire_timeout_seconds: 50 })).body as Lease;
const end = async (lease: Lease): Promise<void> =>
  expect((await daemon.call(`DELETE /browsers/${lease.session_id}`)).status).toBe(204);
const release = async (pool: string, lease: Lease): Promise<void> =>
  expect(
    (await daemon.call(`POST /browser_pools/${pool}/release`, { session_id: lease.session_id })).status,
  ).toBe(204);
const idleIds = async (pool: string): Promise<readonly string[]> =>
  (await daemon.browsersOf(pool)).filter(({ state }) => state === "idle").map(({ session_id }) => session_id);

async function addExtension(name: string): Promise<string> {
  const form = new FormData();
  const script = {
    name: "content.js",
    content: `document.documentElement.setAttribute("data-${name}", "here")`,
  };
  const archive = extensionZip([script], {
    content_scripts: [{ matches: ["<all_urls>"], js: ["content.js"], run_at: "document_start" }],
  });
  form.append("name", name);
  form.append("file", new Blob([archive]), `${name}.zip`);
  const reply = await fetch(`${daemon.url}/extensions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: form,
  });
  expect(reply.status).toBe(201);
  return ((await reply.json()) as { id: string }).id;
}
async function addProfile(name: string): Promise<string> {
  const { status, body } = await daemon.call("POST /profiles", { name });
  expect(status).toBe(201);
  return body.id as string;
}

/** What is seen on the page of the site once it has loaded. */
async function see(lease: Lease, path: string, expression: string): Promise<unknown> {
  const client: RawCdp = await connectRaw(lease.cdp_ws_url);
  const page = await client.attach();
  await client.send("Page.navigate", { url: `${site.origin}${path}` }, page);
  await until(
    `${path} loaded`,
    async () =>
      (await client.evaluate(`document.readyState === "complete" && location.href`, page)) ===
      `${site.origin}${path}`,
  );
  const seen = await client.evaluate(expression, page);
  await client.close();
  return seen;
}
const title = (lease: Lease): Promise<unknown> => see(lease, "/", "document.title");
/** A session that logs in and whose end saves its profile. */
async function logIn(profile: string, more: object = {}): Promise<void> {
  const lease = await created({ profile: { name: profile, save_changes: true }, ...more });
  await see(lease, "/login", moveIn);
  await end(lease);
}

test("what one session with a profile leaves, the next has, and so has a pool; a session that does not save leaves nothing", async () => {
  const id = await addProfile("login");
  const first = await created({ profile: { name: "login" } });
  expect(first).toMatchObject({ profile: { id, name: "login" }, profile_save_changes: false });
  await see(first, "/login", moveIn);
  await end(first);
  const second = await created({ profile: { id, save_changes: true } });
  expect(second).toMatchObject({ profile: { id }, profile_save_changes: true });
  expect(await title(second)).toBe("who are you");
  await see(second, "/login", moveIn);
  await end(second);
  expect((await daemon.call("GET /profiles/login")).body.updated_at).toBeDefined();
  const third = await created({ profile: { name: "login" } });
  expect(await see(third, "/", lookAround)).toBe("welcome back, stored, kept");
  await end(third);
  const pool = await daemon.makePool({ name: "logged-in", profile: { name: "login" } });
  expect(pool).toMatchObject({
    profile_id: id,
    browser_pool_config: { profile: { name: "login" }, refresh_on_profile_update: true },
  });
  const lease = await acquire("logged-in");
  expect(lease).toMatchObject({ profile: { id, name: "login" }, profile_save_changes: false });
  expect(await title(lease)).toBe("welcome back");
  await end(lease);
});

test.each([
  ["headless-shell", "chromium"],
  ["chromium", "headless-shell"],
])("a profile that %s has left is the same in %s", async (leaver, finder) => {
  const name = `from-${leaver}`;
  await addProfile(name);
  await logIn(name, { engine: leaver });
  const lease = await created({ profile: { name }, engine: finder });
  expect(await see(lease, "/", lookAround)).toBe("welcome back, stored, kept");
  await end(lease);
});

test("a save that was answered has flushed the idle browsers of pools that ask for it, and no others; what follows starts from it", async () => {
  await addProfile("fresh");
  const asking = await daemon.makePool({ name: "asking", profile: { name: "fresh" } });
  await daemon.makePool({ name: "silent", profile: { name: "fresh" }, refresh_on_profile_update: false });
  const [before, kept] = [await idleIds("asking"), await idleIds("silent")];
  await logIn("fresh");
  expect((await idleIds("asking")).filter((id) => before.includes(id))).toEqual([]);
  expect(await idleIds("silent")).toEqual(kept);
  await daemon.poolWhen(asking.id, ({ available_count }) => available_count === 1);
  const [fresh, stale] = [await acquire("asking"), await acquire("silent")];
  expect([await title(fresh), await title(stale)]).toEqual(["welcome back", "who are you"]);
  await Promise.all([end(fresh), end(stale)]);
});

test("a pooled browser is given a profile: it is there at the reply, saved at the release, and the browser goes to nobody else", async () => {
  await addProfile("given");
  await daemon.makePool({ name: "plain" });
  const lease = await acquire("plain");
  const attach = (profile: object) => daemon.call(`PATCH /browsers/${lease.session_id}`, { profile });
  expect((await attach({ name: "given", save_changes: true })).body).toMatchObject({
    session_id: lease.session_id,
    profile: { name: "given" },
    profile_save_changes: true,
  });
  expect(await attach({ name: "given" })).toMatchObject({ status: 409, body: { code: "profile_loaded" } });
  await see(lease, "/login", moveIn);
  await release("plain", lease);
  expect(await daemon.call(`GET /browsers/${lease.session_id}`)).toMatchObject({ status: 404 });
  const next = await acquire("plain");
  expect(next.session_id).not.toBe(lease.session_id);
  expect(await title(next)).toBe("who are you");
  expect(
    (await daemon.call(`PATCH /browsers/${next.session_id}`, { profile: { name: "given" } })).status,
  ).toBe(200);
  expect(await title(next)).toBe("welcome back");
  await release("plain", next);
});

test("two profiles at once: one is attached, the other refused, and the session shows the one it has", async () => {
  for (const name of ["left", "right"]) await addProfile(name);
  await logIn("left");
  const lease = await created({});
  const replies = await Promise.all(
    ["left", "right"].map((name) =>
      daemon.call(`PATCH /browsers/${lease.session_id}`, { profile: { name } }),
    ),
  );
  expect(replies.map(({ status }) => status).toSorted()).toEqual([200, 409]);
  const attached = replies.find(({ status }) => status === 200)?.body.profile.name;
  expect((await daemon.call(`GET /browsers/${lease.session_id}`)).body.profile.name).toBe(attached);
  expect(await title(lease)).toBe(attached === "left" ? "welcome back" : "who are you");
  await end(lease);
});

test("a profile that was deleted is refused, and a session that has it ends all the same", async () => {
  const id = await addProfile("doomed");
  const lease = await created({ profile: { id, save_changes: true } });
  expect((await daemon.call("DELETE /profiles/doomed")).status).toBe(204);
  expect((await daemon.call(`GET /browsers/${lease.session_id}`)).body).toMatchObject({
    profile: { id },
    profile_save_changes: true,
  });
  await end(lease);
  expect(await daemon.call("POST /browsers", { headless: true, profile: { id } })).toMatchObject({
    status: 400,
    body: { code: "bad_request" },
  });
  expect((await daemon.call("GET /profiles/doomed")).status).toBe(404);
});

test("the browsers of a pool and of a session have the extensions that they name, whatever they are called by", async () => {
  const [one, two] = [await addExtension("one"), await addExtension("two")];
  const pool = await daemon.makePool({ name: "extended", extensions: [{ name: "two" }, { id: one }] });
  expect(pool).toMatchObject({
    extension_ids: [two, one],
    browser_pool_config: { extensions: [{ name: "two" }, { id: one }] },
  });
  const [lease, session] = [await acquire("extended"), await created({ extensions: [{ name: "one" }] })];
  expect([await see(lease, "/", marks), await see(session, "/", marks)]).toEqual(["one,two", "one"]);
  await Promise.all([release("extended", lease), end(session)]);
  expect(await daemon.call("DELETE /extensions/two")).toMatchObject({
    status: 400,
    body: { code: "resource_in_use", details: [{ message: expect.stringContaining("extended") }] },
  });
});

test("a PATCH replaces the extensions of a pool; another name for the same is no new launch", async () => {
  const [three, four] = [await addExtension("three"), await addExtension("four")];
  await daemon.makePool({ name: "changing", extensions: [{ name: "three" }] });
  const first = await idleIds("changing");
  await daemon.call("PATCH /browser_pools/changing", {
    extensions: [{ id: three }],
    discard_all_idle: false,
  });
  expect(await daemon.browsersOf("changing")).toMatchObject([{ session_id: first[0], stale: false }]);
  expect(
    (
      await daemon.call("PATCH /browser_pools/changing", {
        extensions: [{ name: "four" }],
        discard_all_idle: true,
      })
    ).body.extension_ids,
  ).toEqual([four]);
  await until("another browser", async () => (await idleIds("changing")).some((id) => !first.includes(id)));
  const lease = await acquire("changing");
  expect(await see(lease, "/", marks)).toBe("four");
  await release("changing", lease);
  expect((await daemon.call("PATCH /browser_pools/changing", { extensions: [] })).body.extension_ids).toEqual(
    [],
  );
  expect((await daemon.call("DELETE /extensions/four")).status).toBe(204);
});
