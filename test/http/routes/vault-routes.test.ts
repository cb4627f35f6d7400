import { expect, test } from "vitest";
import { refusal } from "../../../src/base/errors.js";
import { key, send, sharedServer } from "../../support/http/http-server.js";

const server = sharedServer();
const path = "/vaults/logins/items/shop";
const call = (method: string, at: string, body?: object) =>
  send(`${server().url}${at}`, { method, ...(body && { body }) });
const calls = (): readonly string[] => server().operations.calls.map(({ operation }) => operation);

type Update = { readonly spec: object; readonly [field: string]: unknown };
const update = (spec: object, over: object = {}): Update => ({
  type: "credential",
  version: 1,
  spec,
  ...over,
});
const field = (name: string, over: object = {}): object => ({ name, type: "text", ...over });
const many = (count: number): string[] => Array.from({ length: count }, (_, at) => `f${at}`);
const values = (names: readonly string[]): object =>
  Object.fromEntries(names.map((name) => [name, { value: "x" }]));

/** Each rule of an update, with what just keeps it and what just breaks it. */
const rules: readonly (readonly [rule: string, keeps: readonly Update[], breaks: readonly Update[]])[] = [
  [
    "remove_fields has 1 to 32 names",
    [update({ remove_fields: many(1) }), update({ remove_fields: many(32) })],
    [update({ remove_fields: [] }), update({ remove_fields: many(33) })],
  ],
  [
    "a name of remove_fields stands there once, and has 1 to 64 characters",
    [update({ remove_fields: ["f".repeat(64)] })],
    [
      update({ remove_fields: [""] }),
      update({ remove_fields: ["f".repeat(65)] }),
      update({ remove_fields: ["f", "f"] }),
    ],
  ],
  [
    "add_fields has 1 to 32 definitions",
    [update({ add_fields: [field("f")] }), update({ add_fields: many(32).map((name) => field(name)) })],
    [update({ add_fields: [] }), update({ add_fields: many(33).map((name) => field(name)) })],
  ],
  [
    "fields has 1 to 32 entries",
    [update({ fields: values(many(1)) }), update({ fields: values(many(32)) })],
    [update({ fields: {} }), update({ fields: values(many(33)) })],
  ],
  [
    "a field's name is a letter and up to 63 letters, digits and underscores",
    ["f", "F9_", `f${"x".repeat(63)}`].map((name) => update({ add_fields: [field(name)] })),
    ["", "9f", "_f", "a-b", "a b", "é", `f${"x".repeat(64)}`].map((name) =>
      update({ add_fields: [field(name)] }),
    ),
  ],
  [
    "a field's type is one of the five",
    ["text", "email", "password", "totp", "passkey"].map((type) =>
      update({ add_fields: [field("f", { type })] }),
    ),
    ["card", "", null].map((type) => update({ add_fields: [field("f", { type })] })),
  ],
  [
    "a label has 1 to 128 characters",
    [update({ add_fields: [field("f", { label: "l".repeat(128) })] })],
    ["", "l".repeat(129)].map((label) => update({ add_fields: [field("f", { label })] })),
  ],
  [
    "a value is a text of at most 16384 characters, or null",
    ["x".repeat(16_384), "", null].map((value) => update({ fields: { f: { value } } })),
    ["x".repeat(16_385), 1, true].map((value) => update({ fields: { f: { value } } })),
  ],
  [
    "a description has at most 16384 characters",
    [update({ description: "d".repeat(16_384) }), update({ description: "" })],
    [update({ description: "d".repeat(16_385) }), update({ description: null })],
  ],
  [
    "version is a whole number from 1 on",
    [update({ description: "" }, { version: 1 })],
    [0, -1, 1.5, "1", null].map((version) => update({ description: "" }, { version })),
  ],
  [
    "expected_item_id has at least one character",
    [update({ description: "" }, { expected_item_id: "i" })],
    ["", null].map((id) => update({ description: "" }, { expected_item_id: id })),
  ],
  [
    "there are no other properties, and spec is required",
    [update({ description: "" })],
    [
      update({ description: "" }, { key: "other" }),
      { type: "credential", version: 1 } as unknown as Update,
      update({ add_fields: [field("f", { value: "x" })] }),
      update({ fields: { f: { value: "x", label: "l" } } }),
    ],
  ],
];

test.each(rules)("an update: %s", async (_, keeps, breaks) => {
  for (const body of keeps) {
    const got = await call("PATCH", path, body);
    expect(got.status, `${JSON.stringify(body).slice(0, 200)}: ${got.text}`).toBe(200);
  }
  expect(calls()).toEqual(keeps.map(() => "vaultItems.update"));
  for (const body of breaks)
    expect(await call("PATCH", path, body), JSON.stringify(body).slice(0, 200)).toMatchObject({
      status: 400,
      body: { code: "bad_request", details: [{ code: "invalid_input", message: expect.any(String) }] },
    });
  expect(calls()).toHaveLength(keeps.length);
});

test("wallets cannot be updated: no update is of that type, nor of an account", async () => {
  for (const type of ["wallet", "credential_account"])
    expect(await call("PATCH", path, update({ description: "" }, { type }))).toMatchObject({
      status: 400,
      body: { code: "bad_request" },
    });
  expect(calls()).toEqual([]);
});

test("a card's update may leave its type out, and is told what the stored item is", async () => {
  server().operations.answer("vaultItems.update", refusal("item_mismatch"));
  for (const over of [{}, { type: "card" }])
    expect(await call("PATCH", path, { spec: { provider: "issuer_b" }, ...over })).toMatchObject({
      status: 409,
      body: { code: "item_mismatch" },
    });
});

const created = (fields: readonly object[]): object => ({
  type: "credential",
  spec: { provider: "native", fields },
});
/** The bounds of an update's definitions hold where an item is made, too. */
const bounds: readonly (readonly [bound: string, keeps: readonly object[], breaks: readonly object[]])[] = [
  [
    "1 to 32 fields",
    [created(many(1).map((name) => field(name))), created(many(32).map((name) => field(name)))],
    [created([]), created(many(33).map((name) => field(name)))],
  ],
  [
    "names of a letter and up to 63 letters, digits and underscores",
    [created([field(`f${"x".repeat(63)}`)])],
    ["", "9f", "a-b", `f${"x".repeat(64)}`].map((name) => created([field(name)])),
  ],
  [
    "labels of 1 to 128 characters",
    [created([field("f", { label: "l".repeat(128) })])],
    ["", "l".repeat(129)].map((label) => created([field("f", { label })])),
  ],
  [
    "values that are no null, not empty and of at most 16384 characters",
    [created([field("f", { value: "x".repeat(16_384) })])],
    ["", null, "x".repeat(16_385)].map((value) => created([field("f", { value })])),
  ],
];
test.each(bounds)("a new item has %s", async (_, keeps, breaks) => {
  for (const body of keeps) expect((await call("PUT", path, body)).status).toBe(200);
  for (const body of breaks) expect((await call("PUT", path, body)).status).toBe(400);
  expect(calls()).toHaveLength(keeps.length);
});

test("a key may have 255 characters, whichever these are", async () => {
  for (const name of ["k", "k".repeat(255), "é ü/?#%"]) {
    const got = await call("GET", `/vaults/logins/items/${encodeURIComponent(name)}`);
    expect(got.status, name).toBe(200);
    expect(server().operations.calls.at(-1)?.args.slice(0, 2)).toEqual(["logins", name]);
  }
});

test("an update answers the item, whose sensitive values are not in it", async () => {
  const got = await call("PATCH", path, update({ description: "" }));
  expect(got).toMatchObject({ status: 200, body: { key: "shop", type: "credential", version: 3 } });
  expect(got.body.state.fields).toEqual({
    user: { has_value: true, value: "me@shop.example" },
    password: { has_value: false },
  });
  expect(got.text).not.toContain("not to be shown");
});

test("a list is an array of items, with a link only where one holds", async () => {
  const got = await call("GET", "/vaults/logins/items");
  expect(got).toMatchObject({ status: 200, body: [{ key: "shop", action: { name: "collect" } }] });
});

const refusals = [
  ["bad_request", 400],
  ["vault_not_found", 404],
  ["vault_item_not_found", 404],
  ["stale_version", 409],
  ["item_mismatch", 409],
  ["conflict", 409],
  ["secret_unreadable", 422],
] as const;
test.each(refusals)(
  "an update that is refused with %s is answered %i with code and message",
  async (code, status) => {
    server().operations.answer("vaultItems.update", refusal(code));
    const got = await call("PATCH", path, update({ description: "" }));
    expect(got).toMatchObject({ status, body: { code, message: expect.stringMatching(/\w/) } });
  },
);

test("an update that fails is answered 500, and nothing of the failure is told", async () => {
  server().operations.answer("vaultItems.update", new Error("hunter2"));
  const got = await call("PATCH", path, update({ description: "" }));
  expect(got).toMatchObject({ status: 500, body: { code: "internal" } });
  expect(got.text).not.toContain("hunter2");
});

test("without a good token everything of vaults is 401, and reaches no operation", async () => {
  for (const [method, at] of [
    ["GET", "/vaults"],
    ["GET", "/vaults/logins/items"],
    ["GET", path],
    ["PATCH", path],
    ["POST", `${path}/operations`],
  ] as const)
    for (const headers of [{}, { authorization: `Bearer ${key}x` }]) {
      const got = await send(`${server().url}${at}`, { method, headers: { authorization: "", ...headers } });
      expect(got, `${method} ${at}`).toMatchObject({ status: 401, body: { code: expect.any(String) } });
    }
  expect(calls()).toEqual([]);
});

test("a session names at most 20 vaults, and so does a pool", async () => {
  const vaults = (count: number) => many(count).map((name) => ({ name }));
  for (const [at, body] of [
    ["/browsers", { headless: true }],
    ["/browser_pools", { size: 1, headless: true }],
  ] as const) {
    expect((await call("POST", at, { ...body, vaults: vaults(20) })).status).toBeLessThan(300);
    expect(await call("POST", at, { ...body, vaults: vaults(21) })).toMatchObject({ status: 400 });
  }
});
