import { type Done, done, refusal, type Refusal, RemudaError } from "../base/errors.js";
import type { PageFill } from "../spec/page-fill.js";
import { type FillOrder, refuseLate } from "./fill.js";
import { withDataKey } from "./encryption/key-provider.js";
import type { VaultPorts } from "./ports.js";
import { openValue } from "./credentials/sent-values.js";

/**
 * What an order asks for, with the values that it names opened, for whoever writes them into the page;
 * refused where the item has changed.
 */
export async function openFill(
  { project, provider, store }: Pick<VaultPorts, "project" | "provider" | "store">,
  order: FillOrder,
): Promise<Done<PageFill> | Refusal> {
  const { vault: id, item: itemId, key, version, bindings, pageUrl, timeoutMs, allowedOrigins } = order;
  const { protectFilled } = order;
  const [vault, item] = await Promise.all([store.find(id), store.findItem(id, key)]);
  if (!vault || item?.id !== itemId) return refusal("vault_item_not_found");
  if (item.version !== version) return refusal("stale_version");
  return await withDataKey({ project, provider }, vault, async (dataKey) => {
    const fields: PageFill["fields"][number][] = [];
    for (const { field: name, selector } of bindings) {
      const type = item.spec.fields.find((field) => field.name === name)?.type;
      const stored = item.values.get(name);
      if (!type || !stored || type === "passkey") return refusal("field_unavailable");
      const opened = openValue({ project, vault, dataKey }, item, { name, stored });
      if (!opened)
        throw new RemudaError("secret_unreadable", { message: `A value of item ${item.id} is damaged` });
      const text = opened.reveal();
      fields.push({
        selector,
        value: type === "totp" ? { kind: "totp", seed: text } : { kind: "text", text },
      });
    }
    const fill: PageFill = {
      fields,
      timeout_ms: timeoutMs,
      ...(pageUrl !== undefined && { page_url: pageUrl }),
      ...(allowedOrigins.length > 0 && { allowed_origins: allowedOrigins }),
      ...(protectFilled && { protect_filled: protectFilled }),
    };
    // Whoever keeps the vault's key may have taken its time.
    return (await refuseLate({ store }, order)) ?? done(fill);
  });
}
