import { chromium as playwright } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/browser/chromium-until.js";
import { type FillSite, openFillSite } from "../../support/browser/fill/fill-bed.js";
import { login } from "../../support/browser/fill/fill-case.js";
import { type Daemon, startDaemon } from "../../support/daemon/daemon.js";
import { type Got, send } from "../../support/http/http-server.js";
import { startRedis, type TestRedis } from "../../support/store/redis.js";
import { encrypted, formHeader } from "../../support/vault/vault-bed.js";

const path = "/vaults/logins/items/shop";
const file = { vault: { form: { port: 0, public_url: "https://form.example" } } };
const spec = {
  provider: "native",
  fields: [
    { name: "user", type: "text", sensitive: false, value: "somebody" },
    { name: "password", type: "password", value: "secret-1" },
    { name: "note", type: "text" },
  ],
};
const fields = [{ field: "password", selector: "#password" }];

let redis: TestRedis;
let site: FillSite;
let right: Daemon;
let wrong: Daemon;
beforeAll(async () => {
  redis = await startRedis();
  site = await openFillSite();
  site.serve({ body: login });
  right = await startDaemon({ redisUrl: redis.url, file });
  await right.call("POST /vaults", { name: "logins" });
  await right.call(`PUT ${path}`, { type: "credential", spec });
  const encryptionKey = "another-encryption-key-than-the-suites";
  wrong = await startDaemon({ role: "control", redisUrl: redis.url, file, encryptionKey });
}, 120_000);
afterAll(async () => {
  await wrong.stop();
  await right.stop();
  await site.close();
  await redis.stop();
});

/** A question of the form's page. */
const ask = (daemon: Daemon, what: string, body: object): Promise<Got> => {
  const port = /"port":(\d+)[^\n]*"msg":"collection form listening"/.exec(daemon.log)?.[1] ?? "";
  return send(`http://127.0.0.1:${port}/${what}`, { method: "POST", body });
};

test("a control that was started with another encryption key says so, opens no value and changes none", async () => {
  const before = (await right.call(`GET ${path}`)).body;
  const { id } = (await right.call("GET /vaults/logins")).body;
  await until("it says so", () => wrong.log.includes("was wrapped with another encryption key"));
  expect(wrong.log).toContain(`"vault":"${id}"`);
  expect(right.log).not.toContain("another encryption key");
  const patch = { type: "credential", version: 1, spec: { fields: { user: { value: "nobody" } } } };
  for (const [operation, body] of [
    [`GET ${path}`],
    ["GET /vaults/logins/items"],
    [`PATCH ${path}`, patch],
    ["PUT /vaults/logins/items/other", { type: "credential", spec }],
    [`POST ${path}/operations`, { type: "collect" }],
  ] as const) {
    const got = await wrong.call(operation, body);
    expect(got, got.text).toMatchObject({
      status: 422,
      body: {
        code: "secret_unreadable",
        message: `The key of vault ${id} was wrapped with another encryption key (REMUDA_ENCRYPTION_KEY)`,
      },
    });
  }
  expect((await right.call(`GET ${path}`)).body).toEqual(before);
  expect((await right.call("GET /vaults/logins/items")).body).toEqual([before]);
  expect((await right.call(`GET ${path}/events`)).body).toHaveLength(1);
});

test("what it is asked to fill is not written, and the right one fills it afterwards", async () => {
  const note = { version: 1, spec: { fields: { note: { value: "there" } } } };
  expect((await right.call(`PATCH ${path}`, { type: "credential", ...note })).status).toBe(200);
  const session = await right.call("POST /browsers", { headless: true, vaults: [{ name: "logins" }] });
  const connected = await playwright.connectOverCDP(String(session.body.cdp_ws_url));
  const page = connected.contexts()[0]?.pages()[0];
  await page?.goto(`${site.here}/`);
  const fill = { type: "fill", browser_id: session.body.session_id, fields };
  expect(await wrong.call(`POST ${path}/operations`, fill)).toMatchObject({
    status: 422,
    body: { code: "secret_unreadable" },
  });
  expect(await page?.inputValue("#password")).toBe("");
  expect(await right.call(`POST ${path}/operations`, fill)).toMatchObject({
    status: 200,
    body: { status: "completed" },
  });
  expect(await page?.inputValue("#password")).toBe("secret-1");
  await connected.close();
  await right.call(`DELETE /browsers/${session.body.session_id}`);
});

test("a link that it cannot open is used by nobody there, and opens at the right one", async () => {
  const clears = { version: 2, spec: { fields: { note: { value: null } } } };
  const { body: item } = await right.call(`PATCH ${path}`, { type: "credential", ...clears });
  const token = String(item.action.url).split("#token=")[1] ?? "";
  expect(await ask(wrong, "open", { token })).toMatchObject({ status: 503, body: { state: "unavailable" } });
  const { body: form } = await ask(right, "open", { token });
  const value = await encrypted(form.encryption_key, "entered", formHeader(token, "note"));
  const submission = { token, version: form.version, values: { note: value } };
  expect(await ask(wrong, "submit", submission)).toMatchObject({ status: 503 });
  expect((await right.call(`GET ${path}`)).body.version).toBe(3);
  expect(await ask(right, "submit", submission)).toMatchObject({ body: { state: "done" } });
});

test("damage is told as damage, and is undone with what was there", async () => {
  const client = redis.client();
  const { id } = (await right.call("GET /vaults/logins")).body;
  const key = `remuda:{project-default}:vault:${id}`;
  const kept = (await client.hget(key, "keys")) ?? "";
  const { dataKey, transport } = JSON.parse(kept) as { dataKey: { wrapped: string }; transport: object };
  const at = dataKey.wrapped.length - 4;
  const other = dataKey.wrapped[at] === "A" ? "B" : "A";
  const wrapped = dataKey.wrapped.slice(0, at) + other + dataKey.wrapped.slice(at + 1);
  await client.hset(key, "keys", JSON.stringify({ dataKey: { ...dataKey, wrapped }, transport }));
  expect(await right.call(`GET ${path}`)).toMatchObject({
    status: 422,
    body: { code: "secret_unreadable", message: `The key of vault ${id} is damaged` },
  });
  await client.hset(key, "keys", kept);
  client.disconnect();
  expect((await right.call(`GET ${path}`)).body).toMatchObject({ version: 4, state: { status: "ready" } });
});
