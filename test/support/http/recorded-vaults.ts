import { done } from "../../../src/base/errors.js";
import type { VaultId, VaultItemId } from "../../../src/base/ids.js";
import type { ItemOperations } from "../../../src/vault/items.js";
import type { ShownItem } from "../../../src/vault/shown-item.js";
import type { Vault, VaultOperations } from "../../../src/vault/vault.js";

export const vault: Vault = {
  id: "vaultvaultvaultvault0001" as VaultId,
  name: "logins",
  createdAt: 1_700_000_000_000,
  updatedAt: 1_700_000_001_000,
  dataKey: { id: "k1", wrapped: "not to be shown" },
  transport: { kid: "kid-1", jwk: { kty: "EC", crv: "P-256", x: "x", y: "y" }, sealed: "not to be shown" },
};

export const shownItem: ShownItem = {
  item: {
    id: "itemitemitemitemitem0001" as VaultItemId,
    key: "shop",
    version: 3,
    createdAt: 1_700_000_000_000,
    updatedAt: 1_700_000_001_000,
    createdAs: "d",
    spec: {
      description: "Shop",
      allowedOrigins: [],
      fields: [
        { name: "user", type: "email", required: true, sensitive: false },
        { name: "password", type: "password", required: true, sensitive: true, label: "Your password" },
      ],
    },
  },
  status: "pending_collection",
  fields: [
    { name: "user", hasValue: true, value: "me@shop.example" },
    { name: "password", hasValue: false },
  ],
  operations: [{ type: "collect", description: "Get a link" }],
  collect: { url: "https://form.example/#token=t", expiresAt: 1_700_000_002_000 },
};

type Run = <Result>(operation: string, args: readonly unknown[], usual: Result) => Promise<Result>;

export const recordedVaults = (run: Run): VaultOperations => ({
  upsert: (...args) => run("vaults.upsert", args, done({ vault, isNew: true })),
  list: (...args) => run("vaults.list", args, { items: [vault], hasMore: false, nextOffset: 1 }),
  get: (...args) => run("vaults.get", args, done(vault)),
  encryptionKey: (...args) =>
    run(
      "vaults.encryptionKey",
      args,
      done({ alg: "ECDH-ES", enc: "A256GCM", kid: vault.transport.kid, jwk: vault.transport.jwk } as const),
    ),
  remove: (...args) => run("vaults.remove", args, done(null)),
});

export const recordedVaultItems = (run: Run): ItemOperations => ({
  put: (...args) => run("vaultItems.put", args, done(shownItem)),
  list: (...args) => run("vaultItems.list", args, done([shownItem])),
  get: (...args) => run("vaultItems.get", args, done(shownItem)),
  update: (...args) => run("vaultItems.update", args, done(shownItem)),
  identify: (...args) => run("vaultItems.identify", args, done(shownItem.item.id)),
  remove: (...args) => run("vaultItems.remove", args, done(null)),
  events: (...args) =>
    run(
      "vaultItems.events",
      args,
      done([{ id: "1700000000000-0", createdAt: 1_700_000_000_000, name: "credential.created" } as const]),
    ),
  operate: (...args) => run("vaultItems.operate", args, done({ kind: "item", item: shownItem } as const)),
});
