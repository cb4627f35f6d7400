import { abortWith } from "../base/deadline.js";
import { pause } from "../base/clock.js";
import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { offerLink } from "./collection-links.js";
import { statusOf } from "./credentials/credential.js";
import type { ItemEventName, VaultItem } from "./item.js";
import type { ItemOperations } from "./items.js";
import { withDataKey } from "./encryption/key-provider.js";
import type { VaultPorts } from "./ports.js";
import type { TakeSeat } from "./seats.js";
import { mayCollect, type ShownItem, showItem } from "./shown-item.js";
import { getVault } from "./vault-operations.js";
import type { Vault } from "./vault.js";

/** How often somebody who waits looks again. */
const lookMs = 300;

/** Reads an item, waits where it is pending, and gives it a link where it is to have one. */
export const makeGetItem =
  (ports: VaultPorts, takeSeat: TakeSeat): ItemOperations["get"] =>
  async (ref, key, { waitMs = 0, gone, expand = false }) => {
    const vault = await getVault(ports, ref);
    if (vault.kind === "refused") return vault;
    const look = makeLook(ports, vault.value, key);
    const isOver = (item: VaultItem | undefined): boolean =>
      item === undefined || statusOf(item.spec, item.values) === "ready";
    const got = await waitFor({ ports, takeSeat, waitMs, gone }, look, isOver);
    if (got.kind === "refused") return got;
    if (!got.value) return refusal("vault_item_not_found");
    if (expand)
      return refusal("operation_unavailable", {
        message: "The item offers nothing to expand: see its available_expansions",
      });
    return await showLinked(ports, vault.value, { item: got.value });
  };

/**
 * Reads the item again where something has happened to it: hundreds may wait for one, whose values may be
 * half a megabyte.
 */
function makeLook(
  { store }: Pick<VaultPorts, "store">,
  { id: vault }: Vault,
  key: string,
): () => Promise<VaultItem | undefined> {
  let item: VaultItem | undefined;
  let latest: string | undefined;
  return async () => {
    const event = item && (await store.latestEvent(item.id));
    if (item && event === latest) return item;
    latest = event;
    return (item = await store.findItem(vault, key));
  };
}

/** Looks until it is over, the time is up, or nobody waits any more. */
async function waitFor<Value>(
  {
    ports: { clock, stopping },
    takeSeat,
    waitMs,
    gone,
  }: {
    readonly ports: VaultPorts;
    readonly takeSeat: TakeSeat;
    readonly waitMs: number;
    readonly gone: AbortSignal | undefined;
  },
  look: () => Promise<Value>,
  isOver: (value: Value) => boolean,
): Promise<Done<Value> | Refusal> {
  const until = clock.monotonic() + waitMs;
  let found = await look();
  if (waitMs === 0 || isOver(found)) return done(found);
  const leave = takeSeat();
  if (!leave) return refusal("too_many_requests", { message: "As many wait for items as may" });
  const over = new AbortController();
  const unfollow = abortWith(over, gone ? [gone, stopping] : [stopping]);
  try {
    while (!isOver(found) && clock.monotonic() < until && !over.signal.aborted) {
      await pause(clock, Math.min(lookMs, until - clock.monotonic()), over.signal);
      found = await look();
    }
    return done(found);
  } finally {
    unfollow();
    leave();
  }
}

const attempts = 5;

/**
 * The item with a link that holds, where it waits for a form or has had one that was not used. One that was
 * changed meanwhile is read again, and may have lost the form that is asked for.
 */
export async function showLinked(
  ports: VaultPorts,
  vault: Vault,
  { item: first, event }: { readonly item: VaultItem; readonly event?: ItemEventName },
): Promise<Done<ShownItem> | Refusal> {
  let item: VaultItem | undefined = first;
  for (let attempt = 0; attempt < attempts && item; attempt += 1) {
    const shown = await showOnce(ports, vault, { item, event });
    if (shown) return done(shown);
    item = await ports.store.findItem(vault.id, first.key);
    if (item && event !== undefined && !mayCollect(ports, item.spec)) return refusal("operation_unavailable");
  }
  return item ? refusal("conflict") : refusal("vault_item_not_found");
}

const isLinked = (ports: VaultPorts, { spec, values, link }: VaultItem): boolean =>
  mayCollect(ports, spec) && (link !== undefined || statusOf(spec, values) === "pending_collection");

/** `event`: a link is asked for, whether the item waits for one or not. */
const showOnce = (
  ports: VaultPorts,
  vault: Vault,
  { item, event }: { readonly item: VaultItem; readonly event: ItemEventName | undefined },
): Promise<ShownItem | undefined> =>
  withDataKey(ports, vault, async (dataKey) => {
    if (event === undefined && !isLinked(ports, item))
      return showItem(ports, { vault, dataKey }, { item, link: undefined });
    const offered = offerLink({ project: ports.project, vault: vault.id, item, dataKey }, item.version);
    const asked = { ...offered, ...(event && { event }) };
    const link = await ports.store.renewLink(vault.id, item, asked);
    return link && showItem(ports, { vault, dataKey }, { item, link });
  });

const eventId = /^\d{1,15}-\d{1,10}$/;

export const makeEvents =
  (ports: VaultPorts, takeSeat: TakeSeat): ItemOperations["events"] =>
  async (ref, key, { waitMs = 0, gone, after }) => {
    if (after !== undefined && !eventId.test(after))
      return refusal("bad_request", {
        details: [{ code: "invalid_input", message: "after: must be the id of an event" }],
      });
    const vault = await getVault(ports, ref);
    if (vault.kind === "refused") return vault;
    const item = await ports.store.findItem(vault.value.id, key);
    if (!item) return refusal("vault_item_not_found");
    const look = () => ports.store.events(item.id, after);
    return await waitFor({ ports, takeSeat, waitMs, gone }, look, (events) => events.length > 0);
  };
