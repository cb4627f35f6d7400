import { type Done, done, refusal, type Refusal } from "../base/errors.js";
import { newRequestId } from "../base/ids.js";
import { withDataKey } from "./encryption/key-provider.js";
import type { VaultItem } from "./item.js";
import type { Operated } from "./items.js";
import {
  type ArmedRecord,
  fieldsForPasskeys,
  findKept,
  type OpenedVault,
  openKept,
  passkeyFields,
} from "./kept-passkey.js";
import {
  disarmed,
  getAttachedSession,
  type PasskeyOperation,
  passkeyOrder,
  shownPasskey,
  writePasskey,
} from "./passkeys.js";
import type { LinkedSession, VaultPorts } from "./ports.js";
import type { ItemRemoval, Vault } from "./vault.js";

/**
 * Takes an item's passkey from the browser that has it. Where a browser is named, only that one is asked: it
 * has none of the item any more, and waits for none.
 */
export const disarmPasskey = (
  ports: VaultPorts,
  asked: PasskeyOperation,
): Promise<Done<Operated> | Refusal> =>
  asked.body.browser_id === undefined ? disarmWherever(ports, asked) : disarmIn(ports, asked);

async function disarmWherever(
  ports: VaultPorts,
  { vault, item, body }: PasskeyOperation,
): Promise<Done<Operated> | Refusal> {
  const filled = passkeyFields(item, body.field);
  if (fieldsForPasskeys(item, body.field).length === 0 || filled.length > 1)
    return refusal("field_unavailable");
  const [field] = filled;
  // A passkey that is not there yet is on no record: its browser alone knows that it waits for it.
  if (field === undefined) return refusal("bad_request", { message: "browser_id: is required" });
  return await withDataKey(ports, vault, async (dataKey) => {
    const written = await disarmField(ports, { vault, dataKey }, { item, field });
    return written.kind === "refused" ? written : shownPasskey(ports, { vault, dataKey }, written.value);
  });
}

async function disarmIn(ports: VaultPorts, asked: PasskeyOperation): Promise<Done<Operated> | Refusal> {
  const { vault, item, body } = asked;
  const fields = fieldsForPasskeys(item, body.field);
  if (fields.length === 0) return refusal("field_unavailable");
  const found = await getAttachedSession(ports, asked);
  if (found.kind === "refused") return found;
  const session = found.value;
  // Where the vault's key cannot be had now, its browser is told all the same.
  const armed = await findArmed(ports, vault, [item]).catch(() => []);
  const armedHere = new Set(
    armed.filter((each) => each.armed.lease === session.lease).map(({ field }) => field),
  );
  // It may wait for a field too that another browser or a form has filled since.
  for (const field of fields) {
    if (armedHere.has(field)) continue;
    const order = await passkeyOrder(ports, { vault, item, field, session, forMs: 0 });
    const got = await ports.fill.passkey(order);
    if (got.kind === "refused") return got;
  }
  // A page may have made one meanwhile, which the item then says to be in the browser.
  const present = await ports.store.findItem(vault.id, item.key);
  if (present?.id !== item.id) return refusal("vault_item_not_found");
  return await withDataKey(ports, vault, async (dataKey) => {
    let left = present;
    for (const field of passkeyFields(present, body.field)) {
      const written = await disarmField(ports, { vault, dataKey }, { item: left, field, only: session });
      if (written.kind === "refused") return written;
      left = written.value;
    }
    return shownPasskey(ports, { vault, dataKey }, left);
  });
}

/** `only`: whose lease has it, else nothing is changed. */
async function disarmField(
  ports: VaultPorts,
  { vault, dataKey }: OpenedVault,
  { item, field, only }: { readonly item: VaultItem; readonly field: string; readonly only?: LinkedSession },
): Promise<Done<VaultItem> | Refusal> {
  const { fields, armed } = openKept(ports, { vault, dataKey }, { item, field });
  if (!armed || (only && armed.lease !== only.lease)) return done(item);
  const refused = await takeAway(ports, vault, { item, field, armed });
  if (refused) return refused;
  // One of its own for each field: a second change of one request is taken for the first, sent twice.
  const writing = { vault, dataKey, field, request: newRequestId() };
  return await writePasskey(ports, writing, disarmed(item, fields));
}

/** A passkey that a browser has been given. */
interface ArmedPasskey {
  readonly item: VaultItem;
  readonly field: string;
  readonly armed: ArmedRecord;
}

/** Refused where the browser may have it still. */
async function takeAway(
  ports: VaultPorts,
  vault: Vault,
  { item, field, armed }: ArmedPasskey,
): Promise<Refusal | undefined> {
  const session = await ports.findSession(armed.browser);
  if (session?.lease !== armed.lease) return undefined;
  const order = await passkeyOrder(ports, { vault, item, field, session, forMs: 0 });
  const got = await ports.fill.passkey(order);
  const isThere = got.kind === "refused" && got.code !== "browser_not_found" && got.code !== "browser_gone";
  return isThere ? got : undefined;
}

/**
 * Deletes what has these items, and then takes their passkeys from the browsers that have them. That is done
 * too where the vault's key does not open or a node does not answer: a browser then has a passkey for what is
 * left of its time.
 */
export async function deleteDisarmed<Removed extends ItemRemoval>(
  ports: VaultPorts,
  vault: Vault,
  { items, remove }: { readonly items: AsyncIterable<VaultItem>; remove(): Promise<Removed> },
): Promise<Removed> {
  const armed = await findArmed(ports, vault, items).catch(() => []);
  const removed = await remove();
  if (removed !== "other") await Promise.all(armed.map((one) => takeAway(ports, vault, one).catch(() => {})));
  return removed;
}

async function findArmed(
  ports: VaultPorts,
  vault: Vault,
  items: AsyncIterable<VaultItem> | Iterable<VaultItem>,
): Promise<readonly ArmedPasskey[]> {
  const having: VaultItem[] = [];
  for await (const item of items) if (passkeyFields(item).length > 0) having.push(item);
  if (having.length === 0) return [];
  return await withDataKey(ports, vault, async (dataKey) =>
    having.flatMap((item) =>
      passkeyFields(item).flatMap((field) => {
        const armed = findKept(ports, { vault, dataKey }, { item, field })?.armed;
        return armed ? [{ item, field, armed }] : [];
      }),
    ),
  );
}
