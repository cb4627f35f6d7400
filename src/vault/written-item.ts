import { offerLink } from "./collection-links.js";
import { refusal, type Refusal } from "../base/errors.js";
import { statusOf } from "./credentials/credential.js";
import type { DataKey } from "./encryption/data-key.js";
import type { VaultItem } from "./item.js";
import type { VaultPorts } from "./ports.js";
import { mayCollect, type ShownItem, showItem } from "./shown-item.js";
import type { OfferedLink, Vault } from "./vault.js";

interface VaultWithKey {
  readonly vault: Vault;
  readonly dataKey: DataKey;
}
/** A link for an item that waits for a form. */
export function linkFor(
  ports: VaultPorts,
  { vault, dataKey }: VaultWithKey,
  item: Pick<VaultItem, "id" | "version" | "spec" | "values">,
): OfferedLink | undefined {
  if (!mayCollect(ports, item.spec) || statusOf(item.spec, item.values) === "ready") return undefined;
  return offerLink({ project: ports.project, vault: vault.id, item, dataKey }, item.version);
}

type WrittenFields = Pick<VaultItem, "id" | "key" | "version" | "spec" | "createdAs" | "values"> &
  Partial<Pick<VaultItem, "createdAt">>;

/** As it was written, so that what somebody else has changed since is not told as the answer to this. */
export async function showWritten(
  ports: VaultPorts,
  reading: VaultWithKey,
  write: WrittenFields,
): Promise<ShownItem> {
  const now = await ports.store.findItem(reading.vault.id, write.key);
  const isOwn = now?.id === write.id && now.version === write.version;
  if (isOwn) return showItem(ports, reading, { item: now, link: now.link });
  const updatedAt = await ports.store.now();
  const item = { createdAt: updatedAt, ...write, updatedAt, link: undefined };
  return showItem(ports, reading, { item, link: undefined });
}

export const refuseFull = (): Refusal =>
  refusal("limit_exceeded", {
    message: "The vault, or all of the project's together, would keep too many bytes",
  });
