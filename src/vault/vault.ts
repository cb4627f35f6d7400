import { type Static, Type } from "typebox";
import type { Millis } from "../base/clock.js";
import type { Done, Refusal } from "../base/errors.js";
import type { RequestId, VaultId, VaultItemId } from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import type { Page, PoolListQuery } from "../spec/paging.js";
import type { EncryptionKey } from "./collection-form.js";
import { CredentialSpec } from "./credentials/credential.js";
import type { VaultCreate } from "./item-bodies.js";
import type { CollectionLink, ItemEvent, ItemEventName, StoredValue, VaultItem } from "./item.js";

const TransportKey = Type.Object({
  kid: Type.String(),
  jwk: Type.Object({ kty: Type.String(), crv: Type.String(), x: Type.String(), y: Type.String() }),
  /** The private key. */
  sealed: Type.String(),
});
/** The pair of keys by which values come to a vault encrypted. */
export type TransportKey = Readonly<Static<typeof TransportKey>>;

const WrappedKey = Type.Object({ id: Type.String(), wrapped: Type.String() });
const VaultKeys = Type.Object({ dataKey: WrappedKey, transport: TransportKey });
/** The keys of a vault as they are kept. */
export type VaultKeys = Readonly<Static<typeof VaultKeys>>;
export const vaultKeysParser = parserOf("the keys of a vault", VaultKeys);

/** Keeps items together, under a key of their own. Instants are Redis's. */
export interface Vault extends VaultKeys {
  readonly id: VaultId;
  readonly name: string;
  readonly createdAt: Millis;
  readonly updatedAt: Millis;
}

const ItemRecord = Type.Object({ spec: CredentialSpec, createdAs: Type.String() });
export const itemRecordParser = parserOf("the record of a vault's item", ItemRecord);
const StoredValues = Type.Record(
  Type.String(),
  Type.Object({ sealed: Type.String(), version: Type.Integer({ minimum: 1 }) }),
);
export const storedValuesParser = parserOf("the values of a vault's item", StoredValues);

/** A link as it is given out: what stands for its token, and how long it holds. */
export interface OfferedLink {
  readonly nonce: string;
  readonly digest: string;
}

/** An item that is to be kept, of the version after the one that was read. */
export type ItemRemoval = "removed" | "missing" | "other";

export interface ItemWrite {
  readonly id: VaultItemId;
  readonly key: string;
  readonly version: number;
  readonly spec: VaultItem["spec"];
  readonly createdAs: string;
  readonly values: ReadonlyMap<string, StoredValue>;
  /** Where it is to have one; the one before is void in any case. */
  readonly link?: OfferedLink | undefined;
  readonly event: ItemEventName;
  readonly request: RequestId;
}

/** A link that a submission uses up; `submission` tells it from any other. */
export interface SubmittedLink {
  readonly digest: string;
  readonly submission: string;
}

/** What is known of a link by its token; `submission`: by which it was used (`SubmittedLink`). */
export type KnownLink =
  | { readonly kind: "gone" }
  | { readonly kind: "used"; readonly submission: string }
  | {
      readonly kind: "known";
      readonly vault: VaultId;
      readonly item: VaultItemId;
      readonly key: string;
      readonly version: number;
      readonly expiresAt: Millis;
    };

/** Keeps the vaults of a project, their items, and the links to forms. Each change is one script. */
export interface VaultStore {
  /** `found`: there is one of that name, which is as it was. `many`: there are as many as there may be. */
  create(
    vault: Pick<Vault, "id" | "name"> & { readonly keys: VaultKeys; readonly most: number },
  ): Promise<{ readonly kind: "created" | "found"; readonly id: VaultId } | { readonly kind: "many" }>;
  find(id: VaultId): Promise<Vault | undefined>;
  findNamed(name: string): Promise<VaultId | undefined>;
  /** The newest come first. */
  all(): Promise<readonly Vault[]>;
  /** Keeps the vault's key in another wrapping, unless it has another already. */
  rewrap(vault: Vault, dataKey: Vault["dataKey"]): Promise<"changed" | "stale">;
  /** Counts anew what it keeps, which bounds what more it may (docs/limits.md#of-vaults). */
  countBytes(id: VaultId): Promise<void>;
  /** Removes its items and its keys too. */
  remove(id: VaultId): Promise<"removed" | "missing">;

  /** `found`: the key has an item already, which is as it was. */
  addItem(vault: VaultId, item: ItemWrite & { readonly most: number }): Promise<ItemAdded>;
  /** Where it is still of the version before; `consumes`: the link by which a form was submitted. */
  changeItem(vault: VaultId, item: ItemWrite & { readonly consumes?: SubmittedLink }): Promise<ItemChanged>;
  findItem(vault: VaultId, key: string): Promise<VaultItem | undefined>;
  /** In the order in which they were made, read one after the other: all values of all may be much. */
  items(vault: VaultId): AsyncIterable<VaultItem>;
  /** `missing`: there was none when it was asked for; `other`: the key's is not the one that was expected. */
  removeItem(vault: VaultId, key: string, expected?: string): Promise<ItemRemoval>;

  /** Gives the item the link, or the one that it has and that holds; undefined: it has changed. */
  renewLink(
    vault: VaultId,
    item: Pick<VaultItem, "id" | "key" | "version">,
    link: OfferedLink & { readonly event?: ItemEventName },
  ): Promise<CollectionLink | undefined>;
  findLink(digest: string): Promise<KnownLink>;
  /** Resolves where what was read is as safe as a change that is answered; throws as a change does. */
  settle(): Promise<void>;

  noteEvent(vault: VaultId, item: Pick<VaultItem, "id" | "key">, event: NewItemEvent): Promise<void>;
  /** After the event of that id, the oldest first; all that are kept where it is undefined. */
  events(item: VaultItemId, after: string | undefined): Promise<readonly ItemEvent[]>;
  /** The id of the latest event, which each change of an item has; empty where none is kept. */
  latestEvent(item: VaultItemId): Promise<string>;
  now(): Promise<Millis>;
}
export type NewItemEvent = Pick<ItemEvent, "name" | "browserId" | "data">;
export type ItemAdded = "created" | "found" | "no-vault" | "many" | "full";
/** `used`, `expired`: the link that was to be consumed; `full`: vault or project would keep too much. */
export type ItemChanged = "changed" | "stale" | "missing" | "used" | "expired" | "full";

type VaultQuery = Omit<PoolListQuery, "region">;

/** What the operations of /vaults do. Every refusal has changed nothing. */
export interface VaultOperations {
  /** The vault of that name, which is made where there is none. */
  upsert(body: VaultCreate): Promise<Done<UpsertedVault> | Refusal>;
  list(query: VaultQuery): Promise<Page<Vault>>;
  get(ref: string): Promise<Done<Vault> | Refusal>;
  encryptionKey(ref: string): Promise<Done<EncryptionKey> | Refusal>;
  remove(ref: string): Promise<Done<null> | Refusal>;
}

interface UpsertedVault {
  readonly vault: Vault;
  readonly isNew: boolean;
}
