import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { newVaultItemId } from "../base/ids.js";
import { offerLink } from "./collection-links.js";
import { planCredential, planUpdate } from "./credential-changes.js";
import { specDigest, statusOf } from "./credential.js";
import type { DataKey } from "./data-key.js";
import { makeEvents, makeGetItem } from "./item-reads.js";
import { type ItemCreate, type ItemPatch, itemKeyLength } from "./item-bodies.js";
import { itemKinds, type VaultItem } from "./item.js";
import { withDataKey } from "./key-provider.js";
import type { ItemOperations } from "./items.js";
import { makeOperate } from "./operate.js";
import type { VaultPorts } from "./ports.js";
import { makeSeats } from "./seats.js";
import { mergeValues, readSent } from "./sent-values.js";
import { mayCollect, type ShownItem, showItem } from "./shown-item.js";
import { getVault } from "./vault-operations.js";
import type { OfferedLink, Vault } from "./vault.js";
import { findProvider } from "./wire-names.js";

export function makeItemOperations(ports: VaultPorts): ItemOperations {
  const takeSeat = makeSeats();
  const get = makeGetItem(ports, takeSeat);
  return {
    put: makePut(ports, get),
    list: makeList(ports),
    get,
    update: makeUpdate(ports),
    remove: makeRemove(ports),
    events: makeEvents(ports, takeSeat),
    operate: makeOperate(ports),
  };
}

const fault = (message: string): Refusal =>
  refusal("bad_request", { details: [{ code: "invalid_input", message }] });

/** The item that is already there where it was made so, or is so by now. */
const makePut =
  (ports: VaultPorts, get: ItemOperations["get"]): ItemOperations["put"] =>
  async (ref, key, { body, request }) => {
    const refused = whyUnbuilt(body) ?? whyNoKey(key);
    if (refused) return refused;
    const planned = planCredential(body.spec);
    if (planned.kind === "refused") return planned;
    const vault = await getVault(ports, ref);
    if (vault.kind === "refused") return vault;
    const { spec } = planned.value;
    const createdAs = specDigest(spec);
    const addNew = async (
      dataKey: DataKey,
    ): Promise<Done<"created" | "found" | "no-vault" | "many"> | Refusal> => {
      const reading = { project: ports.project, vault: vault.value, dataKey };
      const read = await readSent(reading, planned.value);
      if (read.kind === "refused") return read;
      const empty = [...read.value].find(([, value]) => value === null);
      if (empty) return fault(`spec.fields: the value of ${empty[0]} must not be empty`);
      const item = { id: newVaultItemId(ports.project), key, version: 1, values: new Map() };
      const values = mergeValues(reading, item, { spec, dropped: new Set(), read: read.value });
      const link = linkFor(ports, { vault: vault.value, dataKey }, { ...item, spec, values });
      const write = { ...item, spec, createdAs, values, link, event: "credential.created", request } as const;
      return done(await ports.store.addItem(vault.value.id, { ...write, most: ports.maxItems }));
    };
    const present = await ports.store.findItem(vault.value.id, key);
    const added = present ? done("found" as const) : await withDataKey(ports, vault.value, addNew);
    if (added.kind === "refused") return added;
    if (added.value === "no-vault") return refusal("vault_not_found");
    if (added.value === "many")
      return refusal("limit_exceeded", { message: `A vault has at most ${ports.maxItems} items` });
    if (added.value === "found" && !(await isSame(ports, vault.value, { key, createdAs })))
      return refusal("item_exists");
    return await get(vault.value.id, key, {});
  };

async function isSame(
  { store }: VaultPorts,
  vault: Vault,
  { key, createdAs }: { readonly key: string; readonly createdAs: string },
): Promise<boolean> {
  const item = await store.findItem(vault.id, key);
  return item?.createdAs === createdAs || (item !== undefined && specDigest(item.spec) === createdAs);
}

/** No other kind of item is built yet; a provider that the type does not have is a fault. */
function whyUnbuilt({ type, spec }: ItemCreate): Refusal | undefined {
  const provider = findProvider(spec.provider);
  const kinds: Readonly<Record<string, "built" | "unbuilt">> = itemKinds[type];
  const kind = provider && Object.hasOwn(kinds, provider) ? kinds[provider] : undefined;
  if (kind === undefined) return fault(`spec.provider: is none of type ${type}`);
  return kind === "built"
    ? undefined
    : refusal("not_supported", { message: `Items of type ${type} by this provider are not supported here` });
}

const whyNoKey = (key: string): Refusal | undefined =>
  key.length > itemKeyLength || /\p{Cc}/u.test(key)
    ? fault(`key: must have 1 to ${itemKeyLength} characters, none of them a control character`)
    : undefined;

interface Linked {
  readonly vault: Vault;
  readonly dataKey: DataKey;
}
/** A link for an item that waits for a form. */
function linkFor(
  ports: VaultPorts,
  { vault, dataKey }: Linked,
  item: Pick<VaultItem, "id" | "version" | "spec" | "values">,
): OfferedLink | undefined {
  if (!mayCollect(ports, item.spec) || statusOf(item.spec, item.values) === "ready") return undefined;
  return offerLink({ project: ports.project, vault: vault.id, item, dataKey }, item.version);
}

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
      const next = { ...item, version: item.version + 1, spec };
      const values = mergeValues(reading, next, { spec, dropped, read: read.value });
      const link = linkFor(ports, { vault: vault.value, dataKey }, { ...next, values });
      const write = { ...next, values, link, event: "credential.updated", request } as const;
      const changed = await ports.store.changeItem(vault.value.id, write);
      if (changed === "missing") return refusal("vault_item_not_found");
      if (changed !== "changed") return refusal("stale_version");
      return await showWritten(ports, reading, write);
    });
  };

/** As it was written, so that what somebody else has changed since is not told as the answer to this. */
async function showWritten(
  ports: VaultPorts,
  reading: Linked,
  write: VaultItem | (Omit<VaultItem, "link"> & { readonly link: OfferedLink | undefined }),
): ReturnType<ItemOperations["get"]> {
  const now = await ports.store.findItem(reading.vault.id, write.key);
  const isOwn = now?.id === write.id && now.version === write.version;
  if (isOwn) return done(showItem(ports, reading, { item: now, link: now.link }));
  return done(showItem(ports, reading, { item: { ...write, link: undefined }, link: undefined }));
}

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

const makeRemove =
  (ports: VaultPorts): ItemOperations["remove"] =>
  async (ref, key) => {
    const vault = await getVault(ports, ref);
    if (vault.kind === "refused") return vault;
    const removed = await ports.store.removeItem(vault.value.id, key);
    return removed === "removed" ? done(null) : refusal("vault_item_not_found");
  };
