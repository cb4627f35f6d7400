import { beforeEach, expect, test } from "vitest";
import { done, refusal } from "../../src/base/errors.js";
import {
  type BrowserId,
  defaultProject,
  type LeaseId,
  newBrowserId,
  newLeaseId,
  newRequestId,
  onDemandPartition,
} from "../../src/base/ids.js";
import type { ShownItem } from "../../src/vault/shown-item.js";
import type { Vault } from "../../src/vault/vault.js";
import { sharedVaultBed, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
let vault: Vault;
let item: ShownItem;
let browser: BrowserId;
let lease: LeaseId;
beforeEach(async () => {
  bed().orders.length = 0;
  vault = await bed().vault();
  item = await bed().put(vault, [
    { name: "user", type: "text", value: "me" },
    { name: "note", type: "text", required: false },
    { name: "code", type: "totp", value: "JBSWY3DPEHPK3PXP" },
  ]);
  [browser, lease] = [newBrowserId(onDemandPartition), newLeaseId()];
  bed().sessions.set(browser, { browser, lease, vaults: [vault.id], isProtected: false });
});
const target = { field: "user", selector: "#user" };
const fill = (over: object = {}) =>
  bed().items.operate(vault.id, "shop", {
    body: { type: "fill", browser_id: browser, fields: [target], ...over },
    request: newRequestId(),
  });

test("an order names fields and elements, never values", async () => {
  const got = valueOf(await fill({ page_url: "https://a.example/login", timeout_ms: 500 }));
  expect(got).toEqual({
    kind: "fill",
    outcome: { status: "completed", fields: [{ index: 0, status: "filled" }] },
  });
  expect(bed().orders).toEqual([
    {
      project: defaultProject,
      vault: vault.id,
      item: item.item.id,
      key: "shop",
      version: 1,
      browser,
      lease,
      bindings: [target],
      pageUrl: "https://a.example/login",
      timeoutMs: 500,
      allowedOrigins: [],
      until: expect.any(Number),
    },
  ]);
  // This goes by the clock of Redis, which is this machine's.
  const leftMs = (bed().orders[0]?.until ?? 0) - Date.now();
  expect(leftMs).toBeGreaterThan(0);
  expect(leftMs).toBeLessThanOrEqual(5000);
});

test("that a fill began, and what it came to, is among the item's events", async () => {
  await fill();
  const events = valueOf(await bed().items.events(vault.id, "shop", {}));
  expect(events.slice(1)).toMatchObject([
    { name: "credential.fill_started", browserId: browser, data: { fields: ["user"] } },
    { name: "credential.filled", browserId: browser, data: { fields: ["user"], status: "completed" } },
  ]);
});

test("what was written is answered, also where Redis keeps no event of it", async () => {
  const outcome = { status: "completed", fields: [{ index: 0, status: "filled" }] } as const;
  const { items } = bed().with({
    fill: {
      isSupported: true,
      passkey: async () => done(null),
      async fill() {
        const [key = ""] = await bed().scripts.redis.keys(`*:vaultEvents:${item.item.id}`);
        await bed().scripts.redis.set(key, "damaged");
        return done(outcome);
      },
    },
  });
  const body = { type: "fill" as const, browser_id: browser, fields: [target] };
  const filled = await items.operate(vault.id, "shop", { body, request: newRequestId() });
  expect(filled).toEqual({ kind: "done", value: { kind: "fill", outcome } });
});

test("only a session that was created with the vault is filled from it", async () => {
  bed().sessions.set(browser, { browser, lease, vaults: [(await bed().vault()).id], isProtected: false });
  expect(await fill()).toMatchObject({ code: "vault_not_attached" });
  expect(await fill({ browser_id: "nobody" })).toMatchObject({ code: "browser_not_found" });
  expect(bed().orders).toEqual([]);
});

test("a field without a value is 400 field_unavailable, as is one that the item has not", async () => {
  for (const field of ["note", "nobody", "constructor"])
    expect(await fill({ fields: [target, { ...target, field }] })).toMatchObject({
      code: "field_unavailable",
    });
  expect(bed().orders).toEqual([]);
});

test.each([
  ["no browser", { browser_id: undefined }],
  ["no fields", { fields: undefined }],
  ["a page that is no URL", { page_url: "login" }],
  ["the format of a card", { fields: [{ ...target, format: "MM/YY" }] }],
  ["something else", { submit: true }],
])("a fill with %s is 400", async (_, over) => {
  expect(await fill(over)).toMatchObject({ code: "bad_request" });
  expect(bed().orders).toEqual([]);
});

test("what the node refuses is told as it is", async () => {
  const refusing = async () => refusal("stale_version");
  const { items } = bed().with({ fill: { isSupported: true, fill: refusing, passkey: refusing } });
  const body = { type: "fill", browser_id: browser, fields: [target] };
  expect(await items.operate(vault.id, "shop", { body, request: newRequestId() })).toEqual(
    refusal("stale_version"),
  );
});

test("an item that is pending offers no fill", async () => {
  valueOf(await bed().patch(vault, item, { fields: { user: { value: null } } }));
  expect(await fill()).toMatchObject({ code: "operation_unavailable" });
});
