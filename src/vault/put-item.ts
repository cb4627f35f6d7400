import { done, type Done, refusal, type Refusal } from "../base/errors.js";
import { newVaultItemId, type RequestId } from "../base/ids.js";
import { type CredentialPlan, planCredential } from "./credentials/credential-changes.js";
import { specDigest } from "./credentials/credential.js";
import type { DataKey } from "./encryption/data-key.js";
import { type ItemCreate, itemKeyLength } from "./item-bodies.js";
import { showLinked } from "./item-reads.js";
import { itemKinds, type VaultItem } from "./item.js";
import type { ItemOperations } from "./items.js";
import { withDataKey } from "./encryption/key-provider.js";
import type { VaultPorts } from "./ports.js";
import { mergeValues, readSent } from "./credentials/sent-values.js";
import type { ShownItem } from "./shown-item.js";
import { getVault } from "./vault-operations.js";
import type { Vault } from "./vault.js";
import { findProvider } from "./wire-names.js";
import { linkFor, refuseFull, showWritten } from "./written-item.js";

interface PutRequest {
  readonly vault: Vault;
  readonly key: string;
  readonly plan: CredentialPlan;
  readonly createdAs: string;
  readonly request: RequestId;
}

const attempts = 5;

/** The item that is already there where it was made so, or is so by now. */
export const makePut =
  (ports: VaultPorts): ItemOperations["put"] =>
  async (ref, key, { body, request }) => {
    const refused = whyUnbuilt(body) ?? whyNoKey(key);
    if (refused) return refused;
    const planned = planCredential(body.spec);
    if (planned.kind === "refused") return planned;
    const vault = await getVault(ports, ref);
    if (vault.kind === "refused") return vault;
    const plan = planned.value;
    const asked = { vault: vault.value, key, plan, createdAs: specDigest(plan.spec), request };
    for (let attempt = 0; attempt < attempts; attempt += 1) {
      const got = await putOnce(ports, asked);
      if (got) return got;
    }
    return refusal("conflict");
  };

/** Undefined where an item has come or gone since it was looked for. */
async function putOnce(ports: VaultPorts, asked: PutRequest): Promise<Done<ShownItem> | Refusal | undefined> {
  const { vault, key, createdAs } = asked;
  const item = await ports.store.findItem(vault.id, key);
  if (!item) return await withDataKey(ports, vault, (dataKey) => add(ports, asked, dataKey));
  if (!isSame(item, createdAs)) return refusal("item_exists");
  const shown = await showLinked(ports, vault, { item });
  return shown.kind === "refused" && shown.code === "vault_item_not_found" ? undefined : shown;
}

const isSame = (item: VaultItem, createdAs: string): boolean =>
  item.createdAs === createdAs || specDigest(item.spec) === createdAs;

async function add(
  ports: VaultPorts,
  { vault, key, plan, createdAs, request }: PutRequest,
  dataKey: DataKey,
): Promise<Done<ShownItem> | Refusal | undefined> {
  const reading = { project: ports.project, vault, dataKey };
  const read = await readSent(reading, plan);
  if (read.kind === "refused") return read;
  const empty = [...read.value].find(([, value]) => value === null);
  if (empty) return fault(`spec.fields: the value of ${empty[0]} must not be empty`);
  const { spec } = plan;
  const item = { id: newVaultItemId(ports.project), key, version: 1, values: new Map() };
  const values = mergeValues(reading, item, { spec, dropped: new Set(), read: read.value });
  const link = linkFor(ports, { vault, dataKey }, { ...item, spec, values });
  const write = { ...item, spec, createdAs, values, link, event: "credential.created", request } as const;
  switch (await ports.store.addItem(vault.id, { ...write, most: ports.maxItems })) {
    case "created":
      return done(await showWritten(ports, reading, write));
    case "found":
      return undefined;
    case "no-vault":
      return refusal("vault_not_found");
    case "many":
      return refusal("limit_exceeded", { message: `A vault has at most ${ports.maxItems} items` });
    case "full":
      return refuseFull();
  }
}

const fault = (message: string): Refusal =>
  refusal("bad_request", { details: [{ code: "invalid_input", message }] });

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
