import { afterAll, beforeAll, expect, test } from "vitest";
import { type FakeChromium, makeFakeChromium, standIn } from "../../support/browser/chromium-fake.js";
import { type Daemon, DaemonClient, startDaemon } from "../../support/daemon/daemon.js";

let fake: FakeChromium;
let daemon: Daemon;
beforeAll(async () => {
  fake = await makeFakeChromium();
  daemon = await startDaemon({
    file: { ...standIn(fake), vault: { form: { port: 0, public_url: "https://form.example" } } },
  });
});
afterAll(async () => {
  await daemon.stop();
  await fake.remove();
});

const login = {
  type: "credential",
  spec: {
    provider: "native",
    description: "Shop",
    fields: [
      { name: "user", type: "email", sensitive: false, value: "me@shop.example" },
      { name: "password", type: "password" },
    ],
  },
};

test("a credential is made, collected for, changed, used up and deleted over the API", async () => {
  const made = await daemon.call("POST /vaults", { name: "logins" });
  expect(made).toMatchObject({ status: 201, body: { id: expect.any(String), name: "logins" } });
  expect(await daemon.call("POST /vaults", { name: "logins" })).toMatchObject({
    status: 200,
    body: made.body,
  });
  const item = await daemon.call("PUT /vaults/logins/items/shop", login);
  expect(item).toMatchObject({
    status: 200,
    body: {
      key: "shop",
      type: "credential",
      version: 1,
      spec: { provider: "native", description: "Shop", fields: [{ name: "user", required: true }, {}] },
      state: {
        provider: "native",
        status: "pending_collection",
        fields: { user: { has_value: true, value: "me@shop.example" }, password: { has_value: false } },
      },
      available_operations: [{ type: "collect", description: expect.any(String) }],
      available_expansions: [],
      action: { name: "collect", url: expect.stringMatching(/^https:\/\/form\.example\/#token=/) },
    },
  });
  const path = "/vaults/logins/items/shop";
  expect((await daemon.call(`GET ${path}?wait=0`)).body).toEqual(item.body);
  expect((await daemon.call("GET /vaults/logins/items")).body).toEqual([item.body]);
  const patch = { type: "credential", version: 1, spec: { fields: { password: { value: "hunter2" } } } };
  const ready = await daemon.call(`PATCH ${path}`, patch);
  expect(ready).toMatchObject({ status: 200, body: { version: 2, state: { status: "ready" } } });
  expect(ready.body).not.toHaveProperty("action");
  expect(ready.text).not.toContain("hunter2");
  expect(await daemon.call(`PATCH ${path}`, patch)).toMatchObject({
    status: 409,
    body: { code: "stale_version" },
  });
  expect(await daemon.call(`POST ${path}/operations`, { type: "collect" })).toMatchObject({
    status: 200,
    body: { version: 2, action: { name: "collect" } },
  });
  expect((await daemon.call(`GET ${path}/events`)).body).toMatchObject([
    { name: "credential.created" },
    { name: "credential.updated" },
    { name: "credential.collect_started" },
  ]);
  expect(await daemon.call(`GET ${path}?expand=payment_methods`)).toMatchObject({ status: 409 });
  expect(await daemon.call(`GET ${path}?wait=61`)).toMatchObject({ status: 400 });
  expect(await daemon.call(`DELETE ${path}`)).toMatchObject({ status: 204 });
  expect(await daemon.call(`GET ${path}`)).toMatchObject({
    status: 404,
    body: { code: "vault_item_not_found" },
  });
  expect(await daemon.call("DELETE /vaults/logins")).toMatchObject({ status: 204 });
  expect(await daemon.call("GET /vaults/logins")).toMatchObject({
    status: 404,
    body: { code: "vault_not_found" },
  });
});

test("the names that public clients know are answered where a setting says so", async () => {
  const other = await startDaemon({ file: { ...standIn(fake), vault: { names: "public" } } });
  try {
    await other.call("POST /vaults", { name: "logins" });
    const spec = { ...login.spec, provider: "kernel" };
    expect(await other.call("PUT /vaults/logins/items/shop", { ...login, spec })).toMatchObject({
      status: 200,
      body: { spec: { provider: "kernel" }, state: { provider: "kernel" } },
    });
  } finally {
    await other.stop();
  }
});

const bodyOf = (...names: string[]) => ({ headless: true, vaults: names.map((name) => ({ name })) });

test("a session has the vaults that it was created with, for as long as it lives", async () => {
  const [one, two] = await Promise.all(
    ["one", "two"].map(async (name) => String((await daemon.call("POST /vaults", { name })).body.id)),
  );
  const session = await daemon.call("POST /browsers", bodyOf("two", "one", "two"));
  expect(session).toMatchObject({ status: 200, body: { vaults: [{ id: two }, { id: one }] } });
  const path = `/browsers/${session.body.session_id}`;
  expect(await daemon.call(`PATCH ${path}`, { vaults: [] })).toMatchObject({ status: 400 });
  expect((await daemon.call(`GET ${path}`)).body.vaults).toEqual([{ id: two }, { id: one }]);
  expect(await daemon.call("POST /browsers", bodyOf("three"))).toMatchObject({
    status: 400,
    body: { details: [{ message: 'vaults[0]: there is no vault named "three"' }] },
  });
  const many = { headless: true, vaults: Array.from({ length: 21 }, () => ({ name: "one" })) };
  expect(await daemon.call("POST /browsers", many)).toMatchObject({ status: 400 });
  // A session keeps no vault: what was deleted fills nothing any more.
  expect(await daemon.call("DELETE /vaults/two")).toMatchObject({ status: 204 });
  expect(await daemon.call(`DELETE ${path}`)).toMatchObject({ status: 204 });
});

test("a key that may use browsers and not their vaults sees and fills none that has some", async () => {
  await daemon.call("POST /vaults", { name: "closed" });
  await daemon.call("PUT /vaults/closed/items/shop", {
    ...login,
    spec: { ...login.spec, fields: login.spec.fields.slice(0, 1) },
  });
  const [having, plain] = [
    (await daemon.call("POST /browsers", bodyOf("closed"))).body,
    (await daemon.call("POST /browsers", bodyOf())).body,
  ];
  const keyWith = async (...actions: string[]): Promise<DaemonClient> => {
    const statements = actions.map((action) => ({ action, resource: "projects/default/*" }));
    const made = await daemon.call("POST /org/api_keys", { name: "narrow", policy: { statements } });
    return new DaemonClient(daemon.url, String(made.body.key));
  };
  const browsing = await keyWith("browsers:use", "browsers:delete");
  const path = `/browsers/${having.session_id}`;
  for (const method of ["GET", "DELETE"])
    expect(await browsing.call(`${method} ${path}`)).toMatchObject({
      status: 403,
      body: { message: expect.stringContaining("vaults:use on its vaults") },
    });
  expect((await browsing.call("GET /browsers")).body).toMatchObject([{ session_id: plain.session_id }]);
  const both = await keyWith("browsers:use", "vaults:use");
  expect((await both.call("GET /browsers")).body).toHaveLength(2);
  const fill = {
    type: "fill",
    browser_id: having.session_id,
    fields: [{ field: "user", selector: "#user" }],
  };
  const filling = await keyWith("vaults:use");
  expect(await filling.call("POST /vaults/closed/items/shop/operations", fill)).toMatchObject({
    status: 404,
    body: { code: "browser_not_found" },
  });
  for (const { session_id: id } of [having, plain]) await daemon.call(`DELETE /browsers/${id}`);
  // Its end takes nothing back: who did not see it while it lived does not see what is kept of it.
  for (const kept of ["?include_deleted=true", "/telemetry/events", "/flight_recording"]) {
    const asked = `GET ${path}${kept}`;
    expect(await browsing.call(asked), kept).toMatchObject({ status: 403 });
    expect((await both.call(asked)).status, kept).not.toBe(403);
  }
  const over = "GET /browsers?status=deleted";
  const ids = async (client: DaemonClient): Promise<readonly unknown[]> => {
    const listed: unknown = (await client.call(over)).body;
    return Array.isArray(listed) ? listed.map(({ session_id: id }: Record<string, unknown>) => id) : [];
  };
  expect(await ids(browsing)).not.toContain(having.session_id);
  expect(await ids(browsing)).toContain(plain.session_id);
  expect(await ids(both)).toContain(having.session_id);
  await daemon.call("DELETE /vaults/closed");
});

test("a vault of which a key's policy does not speak is answered as one that is not there, to the byte", async () => {
  const [mine, theirs] = await Promise.all(
    ["mine", "theirs"].map(async (name) => String((await daemon.call("POST /vaults", { name })).body.id)),
  );
  await daemon.call("PUT /vaults/theirs/items/shop", login);
  const actions = ["vaults:read", "vaults:use", "vaults:write", "vaults:delete"];
  const statements = actions.map((action) => ({ action, resource: `projects/default/vaults/${mine}` }));
  const made = await daemon.call("POST /org/api_keys", { name: "of one vault", policy: { statements } });
  const narrow = new DaemonClient(daemon.url, String(made.body.key));
  expect((await narrow.call("GET /vaults")).body).toMatchObject([{ id: mine }]);
  const fields = [{ field: "user", selector: "#user" }];
  const fill = { type: "fill", browser_id: "b".repeat(24), fields };
  const patch = { type: "credential", version: 1, spec: { description: "" } };
  const unknown = theirs?.replaceAll(/./g, "0") ?? "";
  for (const [operation, body] of [
    ["GET /vaults/{}"],
    ["GET /vaults/{}/encryption_key"],
    ["GET /vaults/{}/items"],
    ["GET /vaults/{}/items/shop"],
    ["GET /vaults/{}/items/shop/events"],
    ["PUT /vaults/{}/items/shop", login],
    ["PATCH /vaults/{}/items/shop", patch],
    ["POST /vaults/{}/items/shop/operations", fill],
    ["DELETE /vaults/{}/items/shop"],
    ["DELETE /vaults/{}"],
  ] as const) {
    const ask = async (ref: string) => {
      const { status, text } = await narrow.call(operation.replace("{}", ref), body);
      return { status, text };
    };
    const told = await Promise.all([theirs ?? "", "theirs", unknown, "nobodys"].map(ask));
    for (const one of told) expect(one, operation).toEqual(told[0]);
    expect(told[0]?.status, operation).toBe(404);
  }
  // Who may make no vault finds out no name by making one.
  for (const name of ["theirs", "nobodys"])
    expect(await narrow.call("POST /vaults", { name })).toMatchObject({ status: 403 });
  expect((await daemon.call("GET /vaults/theirs/items/shop")).status).toBe(200);
  for (const name of ["mine", "theirs"]) await daemon.call(`DELETE /vaults/${name}`);
});

test("a pool's vaults are those of its leases, and it keeps them from being deleted", async () => {
  const vault = String((await daemon.call("POST /vaults", { name: "pooled" })).body.id);
  const pool = await daemon.makePool({ name: "herd", vaults: [{ name: "pooled" }] });
  expect(pool.browser_pool_config).toMatchObject({ vaults: [{ name: "pooled" }] });
  const lease = await daemon.call("POST /browser_pools/herd/acquire", { acquire_timeout_seconds: 30 });
  expect(lease).toMatchObject({ status: 200, body: { vaults: [{ id: vault }] } });
  expect(await daemon.call("DELETE /vaults/pooled")).toMatchObject({
    status: 400,
    body: { code: "resource_in_use" },
  });
  await daemon.call(`DELETE /browsers/${lease.body.session_id}`);
  const kept = `GET /browsers/${lease.body.session_id}?include_deleted=true`;
  expect((await daemon.call(kept)).status).toBe(200);
  const statements = [{ action: "browsers:use", resource: "projects/default/*" }];
  const made = await daemon.call("POST /org/api_keys", { name: "narrow", policy: { statements } });
  expect(await new DaemonClient(daemon.url, String(made.body.key)).call(kept)).toMatchObject({ status: 403 });
  expect(await daemon.call("PATCH /browser_pools/herd", { vaults: [] })).toMatchObject({ status: 200 });
  expect(await daemon.call("DELETE /vaults/pooled")).toMatchObject({ status: 204 });
  await daemon.call("DELETE /browser_pools/herd", { force: true });
});

test("a change of a vault is in the audit log when it is answered", async () => {
  const start = new Date(Date.now() - 60_000).toISOString();
  await daemon.call("POST /vaults", { name: "logged" });
  await daemon.call("PUT /vaults/logged/items/shop", login);
  const end = new Date(Date.now() + 60_000).toISOString();
  const { body } = await daemon.call(`GET /audit-logs?start=${start}&end=${end}`);
  const routes = (body as { method: string; route: string }[]).map(
    ({ method, route }) => `${method} ${route}`,
  );
  expect(routes).toEqual(expect.arrayContaining(["POST /vaults", "PUT /vaults/{id_or_name}/items/{key}"]));
  expect(JSON.stringify(body)).not.toContain("me@shop.example");
});
