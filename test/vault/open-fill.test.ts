import { expect, test } from "vitest";
import { newBrowserId, newLeaseId, onDemandPartition } from "../../src/base/ids.js";
import { defaultProject, newRequestId } from "../../src/base/ids.js";
import { fillOrderParser, type FillOrder } from "../../src/vault/fill.js";
import { type KeyProvider, makeLocalProvider } from "../../src/vault/encryption/key-provider.js";
import { openFill } from "../../src/vault/open-fill.js";
import { openPasskey } from "../../src/vault/passkeys.js";
import type { ShownItem } from "../../src/vault/shown-item.js";
import type { Vault } from "../../src/vault/vault.js";
import { openRelyingParty } from "../support/vault/relying-party.js";
import { seal, sharedVaultBed, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const open = (order: FillOrder): ReturnType<typeof openFill> =>
  openFill({ project: defaultProject, provider: makeLocalProvider(seal), store: bed().store }, order);

const seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

/** What a fill of an item orders, as a node reads it. */
async function ordered(): Promise<{ order: FillOrder; vault: Vault; item: ShownItem }> {
  const { sessions, items, orders } = bed();
  const vault = await bed().vault();
  const item = await bed().put(vault, [
    { name: "user", type: "text", value: "secret-1" },
    { name: "password", type: "password", value: "secret-2" },
    { name: "code", type: "totp", value: seed },
  ]);
  const browser = newBrowserId(onDemandPartition);
  sessions.set(browser, { browser, lease: newLeaseId(), vaults: [vault.id], isProtected: false });
  const fields = [
    { field: "code", selector: "#code" },
    { field: "password", selector: "#password" },
  ];
  valueOf(
    await items.operate(vault.id, "shop", {
      request: newRequestId(),
      body: { type: "fill", browser_id: browser, fields, page_url: "https://shop.example/", timeout_ms: 500 },
    }),
  );
  const order = orders.at(-1);
  if (!order) throw new Error("nothing was ordered");
  return { order: fillOrderParser.json(JSON.stringify(order)), vault, item };
}

test("an order has names only; what a node makes of it has the values it names, in their order, and the seed of a code", async () => {
  const { order } = await ordered();
  expect(JSON.stringify(order)).not.toMatch(/secret-|GEZD/);
  expect(await open(order)).toEqual({
    kind: "done",
    value: {
      page_url: "https://shop.example/",
      timeout_ms: 500,
      fields: [
        { selector: "#code", value: { kind: "totp", seed } },
        { selector: "#password", value: { kind: "text", text: "secret-2" } },
      ],
    },
  });
});

test("a page that is filled for a protected session is not to be read back", async () => {
  const { order } = await ordered();
  expect(await open({ ...order, protectFilled: true })).toMatchObject({ value: { protect_filled: true } });
  expect(JSON.stringify(await open(order))).not.toContain("protect_filled");
});

test("origins that an item names go with its values; without any the fill names none", async () => {
  const { order } = await ordered();
  const allowedOrigins = ["https://shop.example"];
  expect(await open({ ...order, allowedOrigins })).toMatchObject({
    value: { allowed_origins: allowedOrigins },
  });
  expect(JSON.stringify(await open(order))).not.toContain("allowed_origins");
});

test("an order of another version, of an item that was replaced or has gone, or for a field without a value is refused", async () => {
  const { order, vault, item } = await ordered();
  expect(await open({ ...order, bindings: [{ field: "none", selector: "#a" }] })).toMatchObject({
    code: "field_unavailable",
  });
  valueOf(await bed().patch(vault, item, { fields: { password: { value: "secret-3" } } }));
  expect(await open(order)).toMatchObject({ code: "stale_version" });
  await bed().items.remove(vault.id, "shop");
  expect(await open(order)).toMatchObject({ code: "vault_item_not_found" });
  await bed().put(vault, [{ name: "password", type: "password", value: "secret-4" }]);
  expect(await open(order)).toMatchObject({ code: "vault_item_not_found" });
});

test("an order that was long on its way, or is sent once more later, is refused", async () => {
  const { order } = await ordered();
  expect(order.until - (await bed().store.now())).toBeLessThanOrEqual(5000);
  expect(await open(order)).toMatchObject({ kind: "done" });
  const late = { ...order, until: (await bed().store.now()) - 1 };
  expect(await open(late)).toMatchObject({ kind: "refused", code: "node_silent" });
});

/** One that takes its time to unwrap: by then it is later than the order says. */
function slowKeys(until: number): KeyProvider {
  const provider = makeLocalProvider(seal);
  return {
    ...provider,
    async unwrap(wrapped, context) {
      await expect.poll(() => bed().store.now(), { interval: 5 }).toBeGreaterThan(until);
      return await provider.unwrap(wrapped, context);
    },
  };
}

test("an order that comes too late while its values are opened is refused", async () => {
  const { order, vault } = await ordered();
  const until = (await bed().store.now()) + 20;
  const ports = { project: defaultProject, provider: slowKeys(until), store: bed().store };
  const late = { kind: "refused", code: "node_silent" };
  expect(await openFill(ports, { ...order, until })).toMatchObject(late);
  const { passkey } = openRelyingParty("https://site.example");
  const { item } = await bed().put(
    vault,
    [{ name: "key", type: "passkey", value: JSON.stringify(passkey) }],
    "site",
  );
  const { project, browser, lease } = order;
  const of = { project, browser, lease, vault: vault.id, item: item.id, key: "site", version: item.version };
  const given = { ...of, field: "key", forMs: 1000 };
  const soon = (await bed().store.now()) + 20;
  const slow = { ...ports, provider: slowKeys(soon) };
  expect(await openPasskey(slow, { ...given, until: soon })).toMatchObject(late);
  expect(await openPasskey(slow, { ...given, until: soon + 60_000 })).toMatchObject({ kind: "done" });
});
