import { expect, test } from "vitest";
import { done, RemudaError } from "../../src/base/errors.js";
import { type BrowserId, defaultProject, type LeaseId, newRequestId } from "../../src/base/ids.js";
import { makeLocalProvider } from "../../src/vault/encryption/key-provider.js";
import type { PasskeyOrder } from "../../src/vault/fill.js";
import { keepPasskey } from "../../src/vault/new-passkey.js";
import { credentialOf, openRelyingParty } from "../support/vault/relying-party.js";
import { seal, sharedVaultBed, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();
const newCredential = () => credentialOf(openRelyingParty("https://site.example"));

/** The order by which a node keeps what a page makes. */
async function ordered(): Promise<PasskeyOrder> {
  const browser = "browser-1" as BrowserId;
  const vault = await bed().vault();
  await bed().put(vault, [{ name: "key", type: "passkey", required: false }], "site");
  bed().sessions.set(browser, {
    browser,
    lease: "lease-1" as LeaseId,
    vaults: [vault.id],
    isProtected: false,
  });
  const orders: PasskeyOrder[] = [];
  const { items } = bed().with({
    fill: {
      isSupported: true,
      fill() {
        throw new Error("nothing is filled here");
      },
      async passkey(order) {
        orders.push(order);
        return done(null);
      },
    },
  });
  const body = { type: "register_passkey", browser_id: browser };
  valueOf(await items.operate(vault.id, "site", { body, request: newRequestId() }));
  const [order] = orders;
  if (!order) throw new Error("nothing was ordered");
  return order;
}

test("a new passkey whose first answer was lost is kept once, and answered once it is synced; another is refused", async () => {
  const order = await ordered();
  const made = newCredential();
  const { store } = bed();
  let isSynced = false;
  const lossy: Pick<typeof store, "find" | "findItem" | "changeItem" | "settle"> = {
    find: (id) => store.find(id),
    findItem: (vault, key) => store.findItem(vault, key),
    async changeItem(vault, item) {
      await store.changeItem(vault, item);
      throw new RemudaError("store_unavailable");
    },
    async settle() {
      if (!isSynced) throw new RemudaError("store_unavailable");
    },
  };
  const keep = (passkey: typeof made) =>
    keepPasskey(
      { project: defaultProject, provider: makeLocalProvider(seal), store: lossy as typeof store },
      order,
      passkey,
    );
  const away = { code: "store_unavailable" };
  await expect(keep(made)).rejects.toMatchObject(away);
  await expect(keep(made)).rejects.toMatchObject(away);
  isSynced = true;
  expect(await keep(made)).toMatchObject({ kind: "done" });
  expect(await keep(newCredential())).toMatchObject({ kind: "refused", code: "field_unavailable" });

  const { item } = valueOf(await bed().items.get(order.vault, order.key, {}));
  expect(item.version).toBe(2);
  expect((await store.events(item.id, undefined)).map(({ name }) => name)).toEqual([
    "credential.created",
    "credential.passkey_registered",
  ]);
});

test("a new passkey counts as its browser's for ten minutes from the order, however late it is kept", async () => {
  const ports = { project: defaultProject, provider: makeLocalProvider(seal), store: bed().store };
  const armOther = async (minutes: number) => {
    const order = await ordered();
    const browser = "browser-2" as BrowserId;
    const lease = "lease-2" as LeaseId;
    bed().sessions.set(browser, { browser, lease, vaults: [order.vault], isProtected: false });
    valueOf(await keepPasskey(ports, { ...order, until: order.until - minutes * 60_000 }, newCredential()));
    const body = { type: "arm_passkey", browser_id: browser };
    return await bed().items.operate(order.vault, "site", { body, request: newRequestId() });
  };
  expect(await armOther(9)).toMatchObject({ kind: "refused", code: "conflict" });
  expect(await armOther(11)).toMatchObject({ kind: "done" });
});
