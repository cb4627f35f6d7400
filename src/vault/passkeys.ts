import type { Millis } from "../base/clock.js";
import { done, type Done, type ErrorCode, refusal, type Refusal } from "../base/errors.js";
import { newRequestId, type RequestId } from "../base/ids.js";
import { mostSignCount, type Passkey } from "./credentials/field-values.js";
import { orderUntil, type PasskeyOrder, refuseLate } from "./fill.js";
import type { ItemOperation } from "./item-bodies.js";
import type { ItemEventName, VaultItem } from "./item.js";
import type { Operated } from "./items.js";
import { withDataKey } from "./encryption/key-provider.js";
import { type ArmedRecord, isArmed, type OpenedVault, openKept, passkeyFields } from "./kept-passkey.js";
import type { LinkedSession, VaultPorts } from "./ports.js";
import { mergeValues } from "./credentials/sent-values.js";
import { showItem } from "./shown-item.js";
import type { Vault } from "./vault.js";
import { refuseFull } from "./written-item.js";
import { Secret } from "../base/crypto/secret.js";

export interface PasskeyOperation {
  readonly vault: Vault;
  readonly item: VaultItem;
  readonly body: ItemOperation;
  readonly request: RequestId;
}

export const armedMs: Millis = 10 * 60 * 1000;
/**
 * So far the counter is moved on before a browser has the passkey, so that no later assertion has a lower
 * one, whatever is lost. A script that does nothing else makes some thousand a second, until the passkey is
 * taken from its browser, which a node under load does late (browser/passkeys/page-authenticators.ts).
 */
const reservedCount = 10_000;

/** The value of a passkey that a browser has from now on. */
export const reservedText = (fields: object, armed: ArmedRecord): string =>
  JSON.stringify({ ...fields, signCount: armed.from + reservedCount, armed });

/** Has pages of a browser sign in with the passkey; its counter is moved on and kept before. */
export async function armPasskey(
  ports: VaultPorts,
  asked: PasskeyOperation,
): Promise<Done<Operated> | Refusal> {
  const { vault, item, body } = asked;
  const field = fieldOf(item, body.field);
  if (field === undefined) return refusal("field_unavailable");
  const found = await getAttachedSession(ports, asked);
  if (found.kind === "refused") return found;
  const session = found.value;
  return await withDataKey(ports, vault, async (dataKey) => {
    const kept = openKept(ports, { vault, dataKey }, { item, field });
    if (kept.armed?.lease !== session.lease && (await isArmed(ports, kept.armed)))
      return refusal("conflict", {
        message: "Another browser has the passkey; disarm_passkey takes it away",
      });
    const { signCount: from } = kept.passkey;
    if (from > mostSignCount - reservedCount)
      return refusal("conflict", { message: "The passkey's counter has come to its end" });
    const armed = {
      browser: session.browser,
      lease: session.lease,
      until: ports.clock.now() + armedMs,
      from,
    };
    const value = reservedText(kept.fields, armed);
    const writing = { vault, dataKey, field, request: asked.request };
    const written = await writePasskey(ports, writing, { item, value, event: "credential.passkey_armed" });
    if (written.kind === "refused") return written;
    const order = await passkeyOrder(ports, { vault, item: written.value, field, session, forMs: armedMs });
    const got = await ports.fill.passkey(order);
    if (got.kind !== "refused") return shownPasskey(ports, { vault, dataKey }, written.value);
    if (hasNobody.has(got.code)) await unmark(ports, { ...writing, request: newRequestId() }, written.value);
    return got;
  });
}

/** The session that is named, which has the vault. */
export async function getAttachedSession(
  { findSession }: Pick<VaultPorts, "findSession">,
  { vault, body }: Pick<PasskeyOperation, "vault" | "body">,
): Promise<Done<LinkedSession> | Refusal> {
  if (body.browser_id === undefined) return refusal("bad_request", { message: "browser_id: is required" });
  const session = await findSession(body.browser_id);
  if (!session) return refusal("browser_not_found");
  return session.vaults.includes(vault.id) ? done(session) : refusal("vault_not_attached");
}

/** After these refusals no browser has the passkey for certain; one that does not answer may have it. */
const hasNobody: ReadonlySet<ErrorCode> = new Set(["conflict", "browser_gone", "browser_not_found"]);

/**
 * Another browser may be armed at once then. The counter stays moved on. Where the item has changed meanwhile
 * the mark stays, until its time is over.
 */
async function unmark(ports: VaultPorts, writing: Writing, item: VaultItem): Promise<void> {
  const { fields } = openKept(ports, writing, { item, field: writing.field });
  await writePasskey(ports, writing, disarmed(item, fields));
}

/** The change by which nobody has a passkey any more. */
export function disarmed(item: VaultItem, fields: ReturnType<typeof openKept>["fields"]) {
  const { armed: _over, ...left } = fields;
  return { item, value: JSON.stringify(left), event: "credential.passkey_disarmed" } as const;
}

/** What a node makes of an order, for its browser; what is binary is in base64 there. */
export async function openPasskey(
  ports: Pick<VaultPorts, "project" | "provider" | "store">,
  order: PasskeyOrder,
): Promise<Done<OpenedPasskey> | Refusal> {
  const opened = await openOrdered(ports, order);
  if (opened.kind === "refused") return opened;
  // Whoever keeps the vault's key may have taken its time.
  return (await refuseLate(ports, order)) ?? opened;
}

async function openOrdered(
  ports: Pick<VaultPorts, "project" | "provider" | "store">,
  order: PasskeyOrder,
): Promise<Done<OpenedPasskey> | Refusal> {
  const { vault: id, item: itemId, key, version, field, forMs, isRegistering } = order;
  const owner = `${itemId} ${field}`;
  if (forMs === 0 || isRegistering) return done({ owner, forMs, ...(isRegistering && { isRegistering }) });
  const [vault, item] = await Promise.all([ports.store.find(id), ports.store.findItem(id, key)]);
  if (!vault || item?.id !== itemId) return refusal("vault_item_not_found");
  if (item.version !== version) return refusal("stale_version");
  return await withDataKey(ports, vault, async (dataKey) => {
    const { passkey, armed } = openKept(ports, { vault, dataKey }, { item, field });
    const { rpId, userName, userDisplayName } = passkey;
    const credential = {
      rpId,
      userName,
      userDisplayName,
      credentialId: base64(passkey.credentialId),
      privateKey: base64(passkey.privateKey),
      userHandle: base64(passkey.userHandle),
      signCount: armed?.from ?? passkey.signCount,
    };
    return done({ owner, credential, forMs });
  });
}

/** A passkey as Chromium takes it. */
interface OpenedPasskey {
  /** The field of an item that has it. */
  readonly owner: string;
  readonly forMs: Millis;
  readonly credential?: Passkey;
  readonly isRegistering?: boolean;
}

const base64 = (text: string): string => Buffer.from(text, "base64url").toString("base64");

/** The field that is named, or the only one that has a passkey. */
function fieldOf(item: VaultItem, named: string | undefined): string | undefined {
  const filled = passkeyFields(item);
  if (named !== undefined) return filled.includes(named) ? named : undefined;
  return filled.length > 1 ? undefined : filled[0];
}

interface Writing extends OpenedVault {
  readonly field: string;
  readonly request: RequestId;
}

/** Keeps another value of the field: the item is of another version then. */
export async function writePasskey(
  { project, store }: Pick<VaultPorts, "project" | "store">,
  { vault, dataKey, field, request }: Writing,
  { item, value, event }: { item: VaultItem; value: string; event: ItemEventName },
): Promise<Done<VaultItem> | Refusal> {
  const next = { ...item, version: item.version + 1 };
  const read = new Map([[field, new Secret(value)]]);
  const change = { spec: item.spec, dropped: new Set<string>(), read };
  const values = mergeValues({ project, vault, dataKey }, next, change);
  const changed = await store.changeItem(vault.id, { ...next, values, link: undefined, event, request });
  if (changed === "missing") return refusal("vault_item_not_found");
  if (changed === "full") return refuseFull();
  return changed === "changed" ? done({ ...next, values, link: undefined }) : refusal("stale_version");
}

interface Ordered {
  readonly vault: Vault;
  readonly item: VaultItem;
  readonly field: string;
  readonly session: LinkedSession;
  readonly forMs: Millis;
}
export const passkeyOrder = async (
  { project, store }: VaultPorts,
  { vault, item, field, session: { browser, lease }, forMs }: Ordered,
): Promise<PasskeyOrder> => ({
  project,
  vault: vault.id,
  item: item.id,
  key: item.key,
  version: item.version,
  field,
  browser,
  lease,
  until: await orderUntil({ store }),
  forMs,
});

export const shownPasskey = (ports: VaultPorts, vault: OpenedVault, item: VaultItem): Done<Operated> =>
  done({ kind: "item", item: showItem(ports, vault, { item, link: undefined }) });
