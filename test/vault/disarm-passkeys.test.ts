import { beforeEach, expect, test } from "vitest";
import { done } from "../../src/base/errors.js";
import { type BrowserId, defaultProject, type LeaseId, newRequestId } from "../../src/base/ids.js";
import { makeLocalProvider } from "../../src/vault/encryption/key-provider.js";
import type { PasskeyOrder } from "../../src/vault/fill.js";
import type { FieldCreate } from "../../src/vault/item-bodies.js";
import { keepPasskey } from "../../src/vault/new-passkey.js";
import type { Vault } from "../../src/vault/vault.js";
import { credentialOf, openRelyingParty } from "../support/vault/relying-party.js";
import { seal, sharedVaultBed, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const [one, two] = ["browser-1", "browser-2"];
let vault: Vault;
let orders: PasskeyOrder[];
/** What happens on the way of an order to its node. */
let onOrder: (order: PasskeyOrder) => Promise<void>;
beforeEach(async () => {
  vault = await bed().vault();
  orders = [];
  onOrder = async () => {};
  for (const id of [one, two]) attach(id, vault);
});

function attach(id: string, ...vaults: readonly Pick<Vault, "id">[]): void {
  const browser = id as BrowserId;
  const session = { browser, lease: `lease of ${id}` as LeaseId, isProtected: false };
  bed().sessions.set(id, { ...session, vaults: vaults.map((each) => each.id) });
}

const filled = (name: string): FieldCreate => ({
  name,
  type: "passkey",
  value: JSON.stringify(openRelyingParty("https://site.example").passkey),
});
const empty = (name: string): FieldCreate => ({ name, type: "passkey", required: false });
const put = (...fields: readonly FieldCreate[]) => bed().put(vault, fields, "site");

function ask(type: "arm_passkey" | "disarm_passkey" | "register_passkey", body: object = {}) {
  const { items } = bed().with({
    fill: {
      isSupported: true,
      fill() {
        throw new Error("nothing is filled here");
      },
      async passkey(order) {
        await onOrder(order);
        orders.push(order);
        return done(null);
      },
    },
  });
  return items.operate(vault.id, "site", { body: { type, ...body }, request: newRequestId() });
}
async function keep(order: PasskeyOrder): Promise<void> {
  const made = credentialOf(openRelyingParty("https://site.example"));
  const ports = { project: defaultProject, provider: makeLocalProvider(seal), store: bed().store };
  valueOf(await keepPasskey(ports, order, made));
}
const ordered = () => orders.map(({ browser, field, forMs }) => `${browser} ${field} ${forMs}`);

test("a disarm that names a browser ends what that one waits for, and leaves another the passkey it has", async () => {
  await put(filled("key"), empty("spare"));
  valueOf(await ask("arm_passkey", { browser_id: one }));
  valueOf(await ask("register_passkey", { browser_id: two }));
  const { item } = valueOf(await bed().items.get(vault.id, "site", {}));
  orders = [];
  expect(await ask("disarm_passkey", { browser_id: two })).toMatchObject({ kind: "done" });
  expect(await ask("disarm_passkey", { browser_id: two, field: "key" })).toMatchObject({ kind: "done" });
  expect(ordered()).toEqual(["browser-2 key 0", "browser-2 spare 0", "browser-2 key 0"]);
  expect(valueOf(await bed().items.get(vault.id, "site", {})).item).toEqual(item);
  expect(await ask("arm_passkey", { browser_id: two })).toMatchObject({ code: "conflict" });
});

test("a disarm that names a browser takes the passkeys from it that it has, whichever they are", async () => {
  await put(filled("key"), filled("second"), filled("third"), empty("spare"));
  // Chromium was restarted between the first two, and so the browser has the second alone.
  for (const field of ["key", "second"]) valueOf(await ask("arm_passkey", { browser_id: one, field }));
  valueOf(await ask("arm_passkey", { browser_id: two, field: "third" }));
  orders = [];
  valueOf(await ask("disarm_passkey", { browser_id: one }));
  expect(ordered()).toEqual([
    "browser-1 third 0",
    "browser-1 spare 0",
    "browser-1 key 0",
    "browser-1 second 0",
  ]);
  for (const field of ["key", "second"])
    expect(await ask("arm_passkey", { browser_id: two, field })).toMatchObject({ kind: "done" });
  expect(await ask("arm_passkey", { browser_id: one, field: "third" })).toMatchObject({ code: "conflict" });
});

test("a disarm that names what is no browser, or one without the vault, is refused and changes nothing", async () => {
  await put(filled("key"), empty("spare"));
  valueOf(await ask("arm_passkey", { browser_id: one }));
  attach("browser-3");
  for (const field of ["key", "spare", undefined]) {
    const named = field === undefined ? {} : { field };
    expect(await ask("disarm_passkey", { ...named, browser_id: "no-such-browser" })).toMatchObject({
      code: "browser_not_found",
    });
    expect(await ask("disarm_passkey", { ...named, browser_id: "browser-3" })).toMatchObject({
      code: "vault_not_attached",
    });
  }
  expect(await ask("disarm_passkey", { field: "none", browser_id: one })).toMatchObject({
    code: "field_unavailable",
  });
  expect(orders).toHaveLength(1);
  expect(await ask("arm_passkey", { browser_id: two })).toMatchObject({ code: "conflict" });
});

test("a browser that waits for a new passkey is told to wait no more, by whoever names the browser", async () => {
  await put(empty("key"), empty("spare"));
  const spare = { browser_id: one, field: "spare" };
  expect(await ask("register_passkey", spare)).toMatchObject({ kind: "done" });
  for (const body of [{}, { field: "spare" }])
    expect(await ask("disarm_passkey", body)).toMatchObject({
      code: "bad_request",
      message: "browser_id: is required",
    });
  expect(await ask("disarm_passkey", spare)).toMatchObject({ kind: "done" });
  expect(await ask("disarm_passkey", { browser_id: one })).toMatchObject({ kind: "done" });
  expect(ordered()).toEqual([
    "browser-1 spare 600000",
    "browser-1 spare 0",
    "browser-1 key 0",
    "browser-1 spare 0",
  ]);
});

test("a browser that waits for a field that another has filled meanwhile is told to wait no more", async () => {
  await put(empty("key"));
  for (const id of [one, two]) valueOf(await ask("register_passkey", { browser_id: id }));
  const [order] = orders;
  if (!order) throw new Error("nothing was ordered");
  await keep(order);
  orders = [];
  valueOf(await ask("disarm_passkey", { browser_id: two }));
  expect(ordered()).toEqual(["browser-2 key 0"]);
  expect(await ask("arm_passkey", { browser_id: two })).toMatchObject({ code: "conflict" });
});

test("a passkey that a page makes just before its browser is told to wait no more is kept, and another may have it", async () => {
  await put(empty("key"));
  valueOf(await ask("register_passkey", { browser_id: one }));
  const [order] = orders;
  if (!order) throw new Error("nothing was ordered");
  onOrder = async () => {
    onOrder = async () => {};
    await keep(order);
  };
  const disarmed = valueOf(await ask("disarm_passkey", { browser_id: one }));
  expect(disarmed).toMatchObject({ item: { fields: [{ name: "key", hasValue: true }] } });
  expect(await ask("arm_passkey", { browser_id: two })).toMatchObject({ kind: "done" });
});
