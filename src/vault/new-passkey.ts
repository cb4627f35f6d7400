import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { newRequestId } from "../base/ids.js";
import { type Passkey, parsePasskey, passkeyText } from "./credentials/field-values.js";
import type { PasskeyOrder } from "./fill.js";
import type { Operated } from "./items.js";
import { withDataKey } from "./encryption/key-provider.js";
import { fieldsForPasskeys, findKept } from "./kept-passkey.js";
import {
  armedMs,
  getAttachedSession,
  type PasskeyOperation,
  passkeyOrder,
  reservedText,
  shownPasskey,
  writePasskey,
} from "./passkeys.js";
import type { VaultPorts } from "./ports.js";

/** Has a browser's next new passkey kept in the item. */
export async function registerPasskey(
  ports: VaultPorts,
  asked: PasskeyOperation,
): Promise<Done<Operated> | Refusal> {
  const { vault, item, body } = asked;
  const empty = fieldsForPasskeys(item, body.field).filter((name) => !item.values.has(name));
  const [field] = empty;
  if (field === undefined || empty.length > 1) return refusal("field_unavailable");
  const found = await getAttachedSession(ports, asked);
  if (found.kind === "refused") return found;
  const { value: session } = found;
  const order = await passkeyOrder(ports, { vault, item, field, session, forMs: armedMs });
  const got = await ports.fill.passkey({ ...order, isRegistering: true });
  if (got.kind === "refused") return got;
  return await withDataKey(ports, vault, async (dataKey) => shownPasskey(ports, { vault, dataKey }, item));
}

const attempts = 5;
const base64url = (text: string): string => Buffer.from(text, "base64").toString("base64url");

/**
 * Keeps what a page has made, whatever else has been changed of the item meanwhile; refused where the field
 * is no longer there or has another. May be asked again where no answer came. What is binary is in base64.
 */
export async function keepPasskey(
  ports: Pick<VaultPorts, "project" | "provider" | "store">,
  { vault: id, item: itemId, key, field, browser, lease, until, forMs }: PasskeyOrder,
  made: Passkey,
): Promise<Done<null> | Refusal> {
  const credentialId = base64url(made.credentialId);
  const text = passkeyText({
    ...made,
    credentialId,
    userHandle: base64url(made.userHandle),
    privateKey: base64url(made.privateKey),
  });
  // Chromium makes others where a site asks for them first (Chromium 156, docs/chromium.md#cdp).
  if (!parsePasskey(text)) return refusal("not_supported");
  const vault = await ports.store.find(id);
  if (!vault) return refusal("vault_not_found");
  // The browser goes on having it, for what is left of its time, and counts on from there.
  const armed = { browser, lease, until: until + forMs, from: made.signCount };
  const value = reservedText(JSON.parse(text), armed);
  return await withDataKey(ports, vault, async (dataKey) => {
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const item = await ports.store.findItem(id, key);
      if (item?.id !== itemId) return refusal("vault_item_not_found");
      const isThere = item.spec.fields.some(({ name, type }) => name === field && type === "passkey");
      if (!isThere) return refusal("field_unavailable");
      if (item.values.has(field)) {
        const kept = findKept(ports, { vault, dataKey }, { item, field })?.passkey;
        return kept?.credentialId === credentialId ? await answerAgain(ports) : refusal("field_unavailable");
      }
      const writing = { vault, dataKey, field, request: newRequestId() };
      const written = await writePasskey(ports, writing, {
        item,
        value,
        event: "credential.passkey_registered",
      });
      if (written.kind === "done") return done(null);
      if (written.code !== "stale_version") return written;
    }
    return refusal("stale_version");
  });
}

/** It is there from an earlier attempt, whose answer was lost: that may have been made and not synced. */
async function answerAgain({ store }: Pick<VaultPorts, "store">): Promise<Done<null>> {
  await store.settle();
  return done(null);
}
