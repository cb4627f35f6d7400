import { join } from "node:path";
import { Redis } from "ioredis";
import { chromium as playwright } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeBase32, totpCodeOf } from "../../../src/base/crypto/totp.js";
import { until } from "../../support/browser/chromium-until.js";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import { login } from "../../support/browser/fill/fill-case.js";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";
import { openVaultSession } from "../../support/vault/vault-session.js";

const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
const path = "/vaults/logins/items/shop";
const fields = [
  { field: "user", selector: "#user" },
  { field: "password", selector: "#password" },
];

let daemon: Daemon;
let site: FillSite;
beforeAll(async () => {
  site = await openFillSite();
  site.serve({ body: `${login}<input id="code">`, others: { "/submitted": "welcome" } });
  daemon = await startDaemon();
  await daemon.call("POST /vaults", { name: "logins" });
  await daemon.call(`PUT ${path}`, {
    type: "credential",
    spec: {
      provider: "native",
      allowed_origins: [site.here],
      fields: [
        { name: "user", type: "text", value: "secret-1" },
        { name: "password", type: "password", value: "secret-2" },
        { name: "code", type: "totp", value: seed },
      ],
    },
  });
});
afterAll(async () => {
  await daemon.stop();
  await site.close();
});

/** A session's page, open on the site. */
const opened = (body: object = {}) => openVaultSession(daemon, `${site.here}/`, body);

const fill = (id: string, over: object = {}) =>
  daemon.call(`POST ${path}/operations`, { type: "fill", browser_id: id, fields, ...over });

test("a credential is filled into a page of a session that has its vault, and no answer has a value", async () => {
  const { id, page, close } = await opened();
  const all = [...fields, { field: "code", selector: "#code" }];
  const before = Date.now();
  const filled = await fill(id, { fields: all, page_url: `${site.here}/`, timeout_ms: 20_000 });
  expect(filled).toMatchObject({
    status: 200,
    body: { type: "fill", status: "completed", fields: all.map((_, index) => ({ index, status: "filled" })) },
  });
  expect(filled.text).not.toMatch(/secret-/);
  expect(await page.inputValue("#user")).toBe("secret-1");
  expect(await page.inputValue("#password")).toBe("secret-2");
  const key = decodeBase32(seed) ?? Buffer.alloc(0);
  const codes = [before, before + 30_000].map((at) => totpCodeOf(key, at));
  expect(codes).toContain(await page.inputValue("#code"));
  expect((await daemon.call(`GET ${path}/events`)).text).not.toMatch(/secret-/);
  expect(site.requests.filter((url) => url.includes("submitted"))).toEqual([]);
  await close();
});

test("a page elsewhere is denied, one of another address is not found, and a session without the vault has none of it", async () => {
  const { id, page, close } = await opened();
  await page.goto(`${site.other}/`);
  expect(await fill(id)).toMatchObject({ status: 403, body: { code: "destination_denied" } });
  expect(await page.inputValue("#user")).toBe("");
  expect(await fill(id, { page_url: `${site.here}/elsewhere` })).toMatchObject({
    status: 400,
    body: { code: "bad_request" },
  });
  expect(await fill(id, { fields: [{ field: "user", selector: "[" }] })).toMatchObject({ status: 400 });
  await close();
  const other = await opened({ vaults: [] });
  expect(await fill(other.id)).toMatchObject({ status: 409, body: { code: "vault_not_attached" } });
  await other.close();
  expect(await fill(id)).toMatchObject({ status: 404 });
});

test("a value that is damaged in Redis is told as such, and nothing is written", async () => {
  const damaged = "/vaults/logins/items/damaged";
  const values = ["user", "password"].map((name) => ({ name, type: "password", value: "secret-3" }));
  const spec = { provider: "native", fields: values };
  const item = await daemon.call(`PUT ${damaged}`, { type: "credential", spec });
  const redis = new Redis(join(daemon.place.dataDir, "redis", "redis.sock"));
  const [kept = ""] = await redis.keys("*:vaultValues*");
  const sealed = (await redis.hget(kept, String(item.body.id))) ?? "";
  expect(sealed).toContain('"password"');
  // The last value loses a byte of its tag.
  const at = sealed.lastIndexOf('","version"') - 4;
  const other = sealed[at] === "A" ? "B" : "A";
  await redis.hset(kept, String(item.body.id), sealed.slice(0, at) + other + sealed.slice(at + 1));
  redis.disconnect();
  const { id, page, close } = await opened();
  const filled = await daemon.call(`POST ${damaged}/operations`, { type: "fill", browser_id: id, fields });
  expect(filled).toMatchObject({ status: 422, body: { code: "secret_unreadable" } });
  expect(await page.inputValue("#user")).toBe("");
  await close();
});

test("with protect_filled the page is filled and not read back, until it shows another document", async () => {
  const { id, page, close } = await opened({ protect_filled: true });
  await page.locator("#password").focus();
  expect(await page.inputValue("#user")).toBe("");
  expect(await fill(id)).toMatchObject({ status: 200, body: { status: "completed" } });
  await expect(page.evaluate("password.value")).rejects.toThrow("protect_filled");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/submitted/);
  expect(await page.textContent("body")).toContain("welcome");
  expect((await daemon.call(`GET /browsers/${id}`)).body.protect_filled).toBe(true);
  await close();
});

test("an acquire may ask for protect_filled of a pool that has it not, for its lease alone", async () => {
  await daemon.makePool({ name: "logins", vaults: [{ name: "logins" }] });
  const acquired = async (body: object): Promise<unknown> => {
    const asked = { acquire_timeout_seconds: 30, ...body };
    const lease = await daemon.call("POST /browser_pools/logins/acquire", asked);
    expect(lease).toMatchObject({ status: 200 });
    const connected = await playwright.connectOverCDP(String(lease.body.cdp_ws_url));
    const page = connected.contexts()[0]?.pages()[0];
    await page?.goto(`${site.here}/`);
    expect(await fill(String(lease.body.session_id))).toMatchObject({ body: { status: "completed" } });
    const read = await page?.evaluate("password.value").catch((error: Error) => error.message);
    await connected.close();
    const { session_id, lease_id } = lease.body;
    await daemon.call("POST /browser_pools/logins/release", { session_id, lease_id });
    return { read, told: lease.body.protect_filled };
  };
  expect(await acquired({ protect_filled: true })).toEqual({
    read: expect.stringContaining("protect_filled"),
    told: true,
  });
  expect(await acquired({})).toEqual({ read: "secret-2", told: undefined });
});

test("what a fill has left is reset for the next holder, though no client came under its lease", async () => {
  const name = "unopened";
  const start_url = `${site.here}/`;
  const pool = { name, start_url, reset_on_release: "state", vaults: [{ name: "logins" }] };
  await daemon.makePool(pool);
  const acquire = async () => {
    const { body } = await daemon.call(`POST /browser_pools/${name}/acquire`, {
      acquire_timeout_seconds: 30,
    });
    return body;
  };
  const { session_id, lease_id } = await acquire();
  // Its start page may still be on its way.
  await until("it filled", async () => {
    const got = await fill(String(session_id));
    expect(got.status, got.text).toBeLessThan(500);
    expect(got.body.status).not.toBe("unknown");
    return got.body.status === "completed";
  });
  await daemon.call(`POST /browser_pools/${name}/release`, { session_id, lease_id });
  const next = await acquire();
  expect(next.session_id).toBe(session_id);
  const connected = await playwright.connectOverCDP(String(next.cdp_ws_url));
  const pages = connected.contexts()[0]?.pages() ?? [];
  expect(pages).toHaveLength(1);
  await pages[0]?.waitForURL(start_url);
  expect(await pages[0]?.inputValue("#password")).toBe("");
  await connected.close();
});
