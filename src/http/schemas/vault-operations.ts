import { noContent, onePage, type Operation, reply } from "./operation.js";

const vaults = "Vaults";
const item = (status: 200 | 201, description: string) => reply(status, "VaultItem", description);
const ofItem = ["vault_not_found", "vault_item_not_found"] as const;

/** Vaults and their items (docs/vault.md). */
export const vaultOperations = {
  listVaults: { tag: vaults, summary: "List vaults, newest first", success: onePage("Vault") },
  createVault: {
    tag: vaults,
    summary: "Make a vault, or find the one of that name",
    takesBody: true,
    success: [
      { status: 201, description: "The new vault", component: "Vault" },
      { status: 200, description: "The vault that there was", component: "Vault" },
    ],
    failures: ["limit_exceeded", "conflict", "audit_unavailable"],
  },
  getVault: {
    tag: vaults,
    summary: "Read a vault",
    success: reply(200, "Vault", "The vault"),
    failures: ["vault_not_found"],
  },
  deleteVault: {
    tag: vaults,
    summary: "Delete a vault with its items, and destroy the key that opens them",
    takesBody: true,
    success: noContent("It is deleted"),
    failures: ["vault_not_found", "resource_in_use", "audit_unavailable"],
  },
  getVaultEncryptionKey: {
    tag: vaults,
    summary: "Read the key that values may be encrypted for on their way",
    success: reply(200, "VaultEncryptionKey", "The key; it stays the same for as long as the vault is there"),
    failures: ["vault_not_found"],
  },
  listVaultItems: {
    tag: vaults,
    summary: "List all items of a vault; gives no link to a form, nor renews one",
    success: [{ status: 200, description: "All items", component: "VaultItem", isList: true }],
    failures: ["vault_not_found", "secret_unreadable"],
  },
  putVaultItem: {
    tag: vaults,
    summary: "Make an item; a repeat answers the item as it is",
    takesBody: true,
    success: item(200, "The item"),
    failures: [
      ...ofItem,
      "not_supported",
      "item_exists",
      "limit_exceeded",
      "encryption_key_mismatch",
      "invalid_request",
      "secret_unreadable",
      "conflict",
      "audit_unavailable",
    ],
  },
  getVaultItem: {
    tag: vaults,
    summary: "Read an item, and wait for it to be ready; renews its link to a form",
    success: item(200, "The item"),
    failures: [...ofItem, "operation_unavailable", "too_many_requests", "secret_unreadable", "conflict"],
  },
  updateVaultItem: {
    tag: vaults,
    summary: "Change an item that is still of the version that was read",
    takesBody: true,
    success: item(200, "The item as it is now"),
    failures: [
      ...ofItem,
      "stale_version",
      "item_mismatch",
      "encryption_key_mismatch",
      "invalid_request",
      "secret_unreadable",
      "audit_unavailable",
    ],
  },
  deleteVaultItem: {
    tag: vaults,
    summary: "Delete an item and its values",
    takesBody: true,
    success: noContent("It is deleted"),
    failures: [...ofItem, "item_mismatch", "audit_unavailable"],
  },
  listVaultItemEvents: {
    tag: vaults,
    summary: "Read what has happened to an item, and wait for something to",
    success: [
      { status: 200, description: "The events, the oldest first", component: "VaultItemEvent", isList: true },
    ],
    failures: [...ofItem, "too_many_requests"],
  },
  operateVaultItem: {
    tag: vaults,
    summary: "Do what an item offers now: see its available_operations",
    takesBody: true,
    success: reply(200, "VaultOperated", "The item, or what filling has come to"),
    failures: [
      ...ofItem,
      "operation_unavailable",
      "field_unavailable",
      "browser_not_found",
      "browser_gone",
      "destination_denied",
      "vault_not_attached",
      "stale_version",
      "not_supported",
      "secret_unreadable",
      "conflict",
      "node_silent",
      "audit_unavailable",
    ],
  },
} as const satisfies Record<string, Operation>;
