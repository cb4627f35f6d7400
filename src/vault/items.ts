import type { Millis } from "../base/clock.js";
import type { Done, Refusal } from "../base/errors.js";
import type { RequestId, VaultItemId } from "../base/ids.js";
import type { FillOutcome } from "./fill.js";
import type { ItemCreate, ItemOperation, ItemPatch } from "./item-bodies.js";
import type { ItemEvent } from "./item.js";
import type { ShownItem } from "./shown-item.js";

interface WaitOptions {
  /** How long the answer may wait; 0 without it. */
  readonly waitMs?: Millis;
  /** Aborts when nobody waits for the answer any more. */
  readonly gone?: AbortSignal;
}
interface SentBody<Body> {
  readonly body: Body;
  readonly request: RequestId;
}
export type Operated =
  | { readonly kind: "item"; readonly item: ShownItem }
  | { readonly kind: "fill"; readonly outcome: FillOutcome };

/**
 * What the operations of /vaults/{id_or_name}/items do (docs/vault.md#items). Every refusal has changed
 * nothing.
 */
export interface ItemOperations {
  put(vault: string, key: string, sent: SentBody<ItemCreate>): Promise<Done<ShownItem> | Refusal>;
  list(vault: string): Promise<Done<readonly ShownItem[]> | Refusal>;
  /** Waits for the item to be ready. `expand`: what no item has that is built. */
  get(
    vault: string,
    key: string,
    asked: WaitOptions & { readonly expand?: boolean },
  ): Promise<Done<ShownItem> | Refusal>;
  update(vault: string, key: string, sent: SentBody<ItemPatch>): Promise<Done<ShownItem> | Refusal>;
  /** What the key stands for now: the id of its item. It renews no link. */
  identify(vault: string, key: string): Promise<Done<VaultItemId> | Refusal>;
  /** `expected`: the id of the item that is meant; `item_mismatch` where the key has another. */
  remove(vault: string, key: string, expected?: string): Promise<Done<null> | Refusal>;
  /** Waits for an event where there is none. */
  events(
    vault: string,
    key: string,
    asked: WaitOptions & { readonly after?: string },
  ): Promise<Done<readonly ItemEvent[]> | Refusal>;
  operate(
    vault: string,
    key: string,
    sent: SentBody<ItemOperation> & Pick<WaitOptions, "gone">,
  ): Promise<Done<Operated> | Refusal>;
}
