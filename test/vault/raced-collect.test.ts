import { expect, test } from "vitest";
import { newRequestId } from "../../src/base/ids.js";
import type { VaultPorts } from "../../src/vault/ports.js";
import { sharedVaultBed, valueOf } from "../support/vault/vault-bed.js";

const bed = sharedVaultBed();

test("an item that has lost its form while collect was under way offers none, and has no link", async () => {
  const vault = await bed().vault();
  const item = await bed().put(vault, [
    { name: "password", type: "password" },
    { name: "code", type: "totp", value: "JBSWY3DPEHPK3PXP" },
  ]);
  const { store } = bed();
  let isFirst = true;
  const renewLink: VaultPorts["store"]["renewLink"] = async (...args) => {
    if (isFirst) valueOf(await bed().patch(vault, item, { remove_fields: ["password"] }));
    isFirst = false;
    return await store.renewLink(...args);
  };
  const raced = new Proxy(store, {
    get: (kept, name) => (name === "renewLink" ? renewLink : Reflect.get(kept, name).bind(kept)),
  });
  const asked = { body: { type: "collect" as const }, request: newRequestId() };
  expect(await bed().with({ store: raced }).items.operate(vault.id, "shop", asked)).toMatchObject({
    kind: "refused",
    code: "operation_unavailable",
  });
  expect(valueOf(await bed().items.list(vault.id))[0]?.collect).toBeUndefined();
});
