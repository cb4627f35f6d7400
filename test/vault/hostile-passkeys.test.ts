import { expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { Seal } from "../../src/base/crypto/seal.js";
import { Secret } from "../../src/base/crypto/secret.js";
import { done, refusal } from "../../src/base/errors.js";
import { newRequestId, type BrowserId, type LeaseId } from "../../src/base/ids.js";
import { mostSignCount } from "../../src/vault/credentials/field-values.js";
import { makeLocalProvider } from "../../src/vault/encryption/key-provider.js";
import type { PasskeyOrder } from "../../src/vault/fill.js";
import type { ItemPatch } from "../../src/vault/item-bodies.js";
import type { ItemOperations } from "../../src/vault/items.js";
import type { LinkedSession, VaultPorts } from "../../src/vault/ports.js";
import type { ShownItem } from "../../src/vault/shown-item.js";
import type { Vault, VaultOperations } from "../../src/vault/vault.js";
import { openRelyingParty } from "../support/vault/relying-party.js";
import { sharedVaultBed, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const { passkey } = openRelyingParty("https://site.example");
const browser = "browser-1";

/** A vault with an item of this passkey, and a session that has the vault. */
async function imported(fields: object): Promise<Vault> {
  const vault = await bed().vault();
  const value = JSON.stringify({ ...passkey, ...fields });
  await bed().put(vault, [{ name: "key", type: "passkey", value }], "site");
  bed().sessions.set(browser, sessionOf(vault));
  return vault;
}
const sessionOf = ({ id }: Vault): LinkedSession => ({
  browser: browser as BrowserId,
  lease: "lease-1" as LeaseId,
  vaults: [id],
  isProtected: false,
});
const operate = (vault: Vault, type: "arm_passkey" | "disarm_passkey") => {
  const body = type === "arm_passkey" ? { type, browser_id: browser } : { type };
  return bed().items.operate(vault.id, "site", { body, request: newRequestId() });
};

test.each([
  ["somewhere for ever", { browser: "elsewhere", until: 2 ** 50 }],
  ["in this browser", { browser, lease: "lease-1", until: 2 ** 50, from: 7 }],
])("a passkey that says of itself that it is armed %s is armed nowhere", async (_, armed) => {
  const vault = await imported({ armed });
  expect(await operate(vault, "disarm_passkey")).toMatchObject({
    kind: "done",
    value: { item: { item: { version: 1 } } },
  });
  expect(await operate(vault, "arm_passkey")).toMatchObject({ kind: "done" });
  expect(await operate(vault, "disarm_passkey")).toMatchObject({ kind: "done" });
});

test("a counter is moved on as far as Chromium takes it; after that the passkey is armed no more, and stays whole", async () => {
  const vault = await imported({ signCount: mostSignCount - 10_000 });
  expect(await operate(vault, "arm_passkey")).toMatchObject({ kind: "done" });
  expect(await operate(vault, "disarm_passkey")).toMatchObject({ kind: "done" });
  const over = { kind: "refused", code: "conflict", message: "The passkey's counter has come to its end" };
  expect(await operate(vault, "arm_passkey")).toMatchObject(over);
  expect(valueOf(await bed().items.get(vault.id, "site", {})).item.version).toBe(3);
});

test("a counter that Chromium takes from nobody is 400", async () => {
  await expect(imported({ signCount: mostSignCount + 1 })).rejects.toThrow("a counter up to 2147483647");
});

test.each(["conflict", "browser_gone", "browser_not_found"] as const)(
  "a passkey that a node has refused with %s may be armed elsewhere at once, with its counter moved on",
  async (code) => {
    const vault = await imported({ signCount: 5 });
    const other = "browser-2" as BrowserId;
    const { browser: first, ...session } = bed().sessions.get(browser) ?? never();
    bed().sessions.set(other, { ...session, browser: other, lease: "lease-2" as LeaseId });
    const orders: PasskeyOrder[] = [];
    const { items } = bed().with({
      fill: {
        isSupported: true,
        fill: never,
        async passkey(order) {
          orders.push(order);
          return order.browser === first ? refusal(code) : done(null);
        },
      },
    });
    const arm = (id: string) =>
      items.operate(vault.id, "site", {
        body: { type: "arm_passkey", browser_id: id },
        request: newRequestId(),
      });
    expect(await arm(browser)).toMatchObject({ kind: "refused", code });
    expect(await arm(other)).toMatchObject({ kind: "done" });
    expect(orders.map(({ browser: of, version }) => [of, version])).toEqual([
      [first, 2],
      [other, 4],
    ]);
    // It is the other's now.
    expect(await arm(browser)).toMatchObject({
      kind: "refused",
      code: "conflict",
      message: expect.stringContaining("Another browser"),
    });
  },
);

test("a passkey of which a node has said nothing may be there: no other browser has it", async () => {
  const vault = await imported({});
  const other = "browser-2" as BrowserId;
  const session = bed().sessions.get(browser) ?? never();
  bed().sessions.set(other, { ...session, browser: other, lease: "lease-2" as LeaseId });
  const silent = async () => refusal("node_silent");
  const { items } = bed().with({ fill: { isSupported: true, fill: never, passkey: silent } });
  const arm = (id: string) =>
    items.operate(vault.id, "site", {
      body: { type: "arm_passkey", browser_id: id },
      request: newRequestId(),
    });
  expect(await arm(browser)).toMatchObject({ code: "node_silent" });
  expect(await arm(other)).toMatchObject({ code: "conflict" });
});

/** What is ordered for browsers. */
function following(): { items: ItemOperations; vaults: VaultOperations; orders: PasskeyOrder[] } {
  const orders: PasskeyOrder[] = [];
  const follow = async (order: PasskeyOrder) => {
    orders.push(order);
    return done(null);
  };
  return { ...bed().with({ fill: { isSupported: true, fill: never, passkey: follow } }), orders };
}
const read = async (vault: Vault): Promise<ShownItem> => valueOf(await bed().items.get(vault.id, "site", {}));
const other = JSON.stringify(openRelyingParty("https://site.example").passkey);

const changes: readonly (readonly [how: string, spec: ItemPatch["spec"]])[] = [
  ["replaced", { fields: { key: { value: other } } }],
  ["removed", { remove_fields: ["key"], add_fields: [{ name: "note", type: "text" }] }],
  [
    "put anew",
    {
      remove_fields: ["key"],
      add_fields: [{ name: "key", type: "passkey" }],
      fields: { key: { value: other } },
    },
  ],
];
test.each(changes)("a passkey that a browser has cannot be %s, until it is taken away", async (_, spec) => {
  const vault = await imported({});
  expect(await operate(vault, "arm_passkey")).toMatchObject({ kind: "done" });
  const armed = await read(vault);
  expect(await bed().patch(vault, armed, spec)).toMatchObject({
    kind: "refused",
    code: "conflict",
    message: "A browser has the passkey; disarm_passkey takes it away",
  });
  expect(await read(vault)).toEqual(armed);
  // What else the item has may be changed.
  const changed = valueOf(await bed().patch(vault, armed, { description: "Site" }));
  expect(await operate(vault, "disarm_passkey")).toMatchObject({ kind: "done" });
  expect(changed.item.version).toBe(3);
  expect(await bed().patch(vault, await read(vault), spec)).toMatchObject({ kind: "done" });
});

test("a passkey that is not required and that a browser has is not cleared, until it is taken away", async () => {
  const vault = await bed().vault();
  const value = JSON.stringify(passkey);
  await bed().put(vault, [{ name: "key", type: "passkey", required: false, value }], "site");
  bed().sessions.set(browser, sessionOf(vault));
  expect(await operate(vault, "arm_passkey")).toMatchObject({ kind: "done" });
  const cleared = async (): ReturnType<ItemOperations["update"]> =>
    await bed().patch(vault, await read(vault), { fields: { key: { value: null } } });
  expect(await cleared()).toMatchObject({ kind: "refused", code: "conflict" });
  expect(await operate(vault, "disarm_passkey")).toMatchObject({ kind: "done" });
  expect(await cleared()).toMatchObject({ kind: "done" });
});

const ends: readonly (readonly [how: string, end: () => unknown, over: Partial<VaultPorts>])[] = [
  ["its lease is over", () => bed().sessions.delete(browser), {}],
  ["its time is over", () => {}, { clock: { ...systemClock, now: () => Date.now() + 600_001 } }],
];
test.each(ends)("a passkey that a browser had is replaced once %s", async (_, end, over) => {
  const vault = await imported({});
  expect(await operate(vault, "arm_passkey")).toMatchObject({ kind: "done" });
  end();
  const { item } = await read(vault);
  const body: ItemPatch = {
    type: "credential",
    version: item.version,
    spec: { fields: { key: { value: other } } },
  };
  const { items } = bed().with(over);
  expect(await items.update(vault.id, "site", { body, request: newRequestId() })).toMatchObject({
    kind: "done",
  });
});

test.each(["the item", "the vault"])(
  "a passkey is taken from its browser where %s is deleted",
  async (what) => {
    const vault = await imported({});
    const { items, vaults, orders } = following();
    const body = { type: "arm_passkey", browser_id: browser };
    valueOf(await items.operate(vault.id, "site", { body, request: newRequestId() }));
    const { item } = await read(vault);
    expect(await items.remove(vault.id, "site", "another item")).toMatchObject({ code: "item_mismatch" });
    expect(orders).toHaveLength(1);
    const removed =
      what === "the item" ? await items.remove(vault.id, "site") : await vaults.remove(vault.id);
    expect(removed).toMatchObject({ kind: "done" });
    expect(orders.slice(1)).toMatchObject([
      { item: item.id, field: "key", browser, lease: "lease-1", forMs: 0 },
    ]);
  },
);

test.each(["is silent", "throws"])(
  "an item is deleted also where the node of its passkey's browser %s",
  async (how) => {
    const vault = await imported({});
    expect(await operate(vault, "arm_passkey")).toMatchObject({ kind: "done" });
    const fail = async () => (how === "throws" ? never() : refusal("node_silent"));
    const { items } = bed().with({ fill: { isSupported: true, fill: never, passkey: fail } });
    expect(await items.remove(vault.id, "site")).toMatchObject({ kind: "done" });
    expect(await items.get(vault.id, "site", {})).toMatchObject({ code: "vault_item_not_found" });
  },
);

test("a vault is deleted also where its key does not open", async () => {
  const vault = await imported({});
  const provider = makeLocalProvider(new Seal(new Secret("the encryption key of somebody else")));
  const { vaults } = bed().with({ provider });
  expect(await vaults.remove(vault.id)).toMatchObject({ kind: "done" });
});

function never(): never {
  throw new Error("nothing is filled here");
}
