import { done, refusal, type Refusal } from "../base/errors.js";
import { planUpdate } from "./credentials/credential-changes.js";
import { makeEvents, makeGetItem } from "./item-reads.js";
import type { ItemPatch } from "./item-bodies.js";
import type { VaultItem } from "./item.js";
import { withDataKey } from "./encryption/key-provider.js";
import type { ItemOperations } from "./items.js";
import { refuseArmed } from "./kept-passkey.js";
import { makeOperate } from "./operate.js";
import { deleteDisarmed } from "./disarm-passkey.js";
import type { VaultPorts } from "./ports.js";
import { makePut } from "./put-item.js";
import { makeSeats } from "./seats.js";
import { mergeValues, readSent } from "./credentials/sent-values.js";
import { type ShownItem, showItem } from "./shown-item.js";
import type { Vault } from "./vault.js";
import { getVault } from "./vault-operations.js";
import { linkFor, refuseFull, showWritten } from "./written-item.js";

export function makeItemOperations(ports: VaultPorts): ItemOperations {
  const takeSeat = makeSeats();
  const get = makeGetItem(ports, takeSeat);
  return {
    put: makePut(ports),
    list: makeList(ports),
    get,
    update: makeUpdate(ports),
    identify: makeIdentify(ports),
    remove: makeRemove(ports),
    events: makeEvents(ports, takeSeat),
    operate: makeOperate(ports),
  };
}

const fault = (message: string): Refusal =>
  refusal("bad_request", { details: [{ code: "invalid_input", message }] });

/** Shows the links that hold: a list gives none, nor renews any. */
const makeList =
  (ports: VaultPorts): ItemOperations["list"] =>
  async (ref) => {
    const got = await getVault(ports, ref);
    if (got.kind === "refused") return got;
    const vault = got.value;
    const now = await ports.store.now();
    return await withDataKey(ports, vault, async (dataKey) => {
      const shown: ShownItem[] = [];
      for await (const item of ports.store.items(vault.id)) {
        const link = item.link && item.link.expiresAt > now ? item.link : undefined;
        shown.push(showItem(ports, { vault, dataKey }, { item, link }));
      }
      return done(shown);
    });
  };

const makeUpdate =
  (ports: VaultPorts): ItemOperations["update"] =>
  async (ref, key, { body, request }) => {
    const vault = await getVault(ports, ref);
    if (vault.kind === "refused") return vault;
    const item = await ports.store.findItem(vault.value.id, key);
    if (!item) return refusal("vault_item_not_found");
    const refused = whyStale(item, body);
    if (refused) return refused;
    const planned = planUpdate(item.spec, body.spec);
    if (planned.kind === "refused") return planned;
    return await withDataKey(ports, vault.value, async (dataKey) => {
      const reading = { project: ports.project, vault: vault.value, dataKey };
      const read = await readSent(reading, planned.value);
      if (read.kind === "refused") return read;
      const { spec, dropped } = planned.value;
      const changed = new Set([...dropped, ...read.value.keys()]);
      const armed = await refuseArmed(ports, reading, { item, changed });
      if (armed) return armed;
      const next = { ...item, version: item.version + 1, spec };
      const values = mergeValues(reading, next, { spec, dropped, read: read.value });
      const link = linkFor(ports, { vault: vault.value, dataKey }, { ...next, values });
      const write = { ...next, values, link, event: "credential.updated", request } as const;
      const written = await ports.store.changeItem(vault.value.id, write);
      if (written === "missing") return refusal("vault_item_not_found");
      if (written === "full") return refuseFull();
      if (written !== "changed") return refusal("stale_version");
      return done(await showWritten(ports, reading, write));
    });
  };

/** What comes before the version: the item has to be of the type, and the one that is meant. */
function whyStale(
  item: VaultItem,
  { type, version, expected_item_id: expected }: ItemPatch,
): Refusal | undefined {
  if (type !== "credential") return refusal("item_mismatch", { message: "The item is of type credential" });
  if (version === undefined) return fault("version: is required");
  if (expected !== undefined && expected !== item.id) return refusal("item_mismatch");
  return version === item.version ? undefined : refusal("stale_version");
}

const makeIdentify =
  (ports: VaultPorts): ItemOperations["identify"] =>
  async (ref, key) => {
    const vault = await getVault(ports, ref);
    if (vault.kind === "refused") return vault;
    const item = await ports.store.findItem(vault.value.id, key);
    return item ? done(item.id) : refusal("vault_item_not_found");
  };

const makeRemove =
  (ports: VaultPorts): ItemOperations["remove"] =>
  async (ref, key, expected) => {
    const vault = await getVault(ports, ref);
    if (vault.kind === "refused") return vault;
    const { id } = vault.value;
    const removed = await deleteDisarmed(ports, vault.value, {
      items: theItem(ports, vault.value, key),
      remove: () => ports.store.removeItem(id, key, expected),
    });
    if (removed === "other") return refusal("item_mismatch");
    return removed === "removed" ? done(null) : refusal("vault_item_not_found");
  };

async function* theItem({ store }: VaultPorts, { id }: Vault, key: string): AsyncGenerator<VaultItem> {
  const item = await store.findItem(id, key);
  if (item) yield item;
}
