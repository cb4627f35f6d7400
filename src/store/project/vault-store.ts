import type { Millis } from "../../base/clock.js";
import { findVaultId, newRequestId, type ProjectId, type VaultId, type VaultItemId } from "../../base/ids.js";
import type { CollectionLink, ItemEvent, ItemEventName, VaultItem } from "../../vault/item.js";
import {
  type SubmittedLink,
  type KnownLink,
  type ItemAdded,
  type ItemChanged,
  type ItemRemoval,
  type ItemWrite,
  type NewItemEvent,
  type OfferedLink,
  type Vault,
  type VaultKeys,
  vaultKeysParser,
  type VaultStore,
} from "../../vault/vault.js";
import {
  collectionLinkKey,
  projectKey,
  type ProjectPart,
  vaultEventsKey,
  vaultKey,
  type VaultPart,
} from "../redis/keys.js";
import type { StoreLimits } from "../limits.js";
import type { DurableWrites } from "../redis/durable-writes.js";
import type { ScriptStore } from "../redis/redis.js";
import type { ScriptArgs } from "../redis/script-call.js";
import type { ScriptName, ScriptReply } from "../redis/replies.js";
import {
  eventArgs,
  eventOf,
  itemArgs,
  linkArgs,
  linkOf,
  parseKnownLink,
  parseItem,
} from "./vault-records.js";

/** What a script works on beside the vault itself. */
interface Subject {
  readonly vault: VaultId;
  readonly item?: VaultItemId;
  readonly digest?: string | undefined;
  readonly consumes?: string | undefined;
}

/** What may be kept, as it is encrypted: by one vault, and by all of a project. */
type VaultByteLimits = Pick<StoreLimits, "vaultBytes" | "projectVaultBytes">;

/** The vaults of one project: an index, newest last, who has which name, and four hashes for each. */
export class RedisVaultStore implements VaultStore {
  constructor(
    private readonly store: ScriptStore,
    private readonly project: ProjectId,
    private readonly parts: {
      readonly writes: Pick<DurableWrites, "write">;
      readonly limits: VaultByteLimits;
    },
  ) {}

  async create({
    id,
    name,
    keys,
    most,
  }: Pick<Vault, "id" | "name"> & { readonly keys: VaultKeys; readonly most: number }): Promise<
    { readonly kind: "created" | "found"; readonly id: VaultId } | { readonly kind: "many" }
  > {
    const args = { id, name, keys: JSON.stringify(keys), most };
    const { kind, payload } = await this.#run("create-vault", { vault: id }, args);
    return kind === "many" ? { kind } : { kind, id: findVaultId(payload) ?? id };
  }

  async find(id: VaultId): Promise<Vault | undefined> {
    const key = this.#key(id, "vault");
    const [name, keys, createdAt, updatedAt] = await this.store.ask((redis) =>
      redis.hmget(key, "name", "keys", "createdAt", "updatedAt"),
    );
    if (!name || !keys) return undefined;
    const times = { createdAt: Number(createdAt), updatedAt: Number(updatedAt) };
    return { id, name, ...vaultKeysParser.json(keys), ...times };
  }

  async findNamed(name: string): Promise<VaultId | undefined> {
    return findVaultId((await this.store.ask((redis) => redis.hget(this.#part("vaultNames"), name))) ?? "");
  }

  async all(): Promise<readonly Vault[]> {
    const ids = await this.store.ask((redis) => redis.zrevrange(this.#part("vaults"), 0, -1));
    const known = ids.flatMap((id) => findVaultId(id) ?? []);
    return (await Promise.all(known.map((id) => this.find(id)))).flatMap((found) => found ?? []);
  }

  async rewrap({ id, dataKey, transport }: Vault, after: Vault["dataKey"]): Promise<"changed" | "stale"> {
    const args = {
      before: JSON.stringify({ dataKey, transport }),
      after: JSON.stringify({ dataKey: after, transport }),
    };
    return (await this.#run("change-vault-keys", { vault: id }, args)).kind;
  }

  async remove(id: VaultId): Promise<"removed" | "missing"> {
    const items = await this.#listed(id);
    const { kind } = await this.#run("remove-vault", { vault: id }, { vault: id });
    // They hold no value, and end by themselves where this comes to nothing.
    const keys = items.map((item) => vaultEventsKey(this.project, item.id));
    if (keys.length > 0) await this.store.ask((redis) => redis.unlink(keys));
    return kind;
  }

  async addItem(vault: VaultId, item: ItemWrite & { readonly most: number }): Promise<ItemAdded> {
    const subject = { vault, item: item.id, digest: item.link?.digest };
    const { most } = item;
    const { kind } = await this.#run("add-vault-item", subject, { ...this.#itemArgs(vault, item), most });
    return kind === "missing" ? "no-vault" : kind;
  }

  async changeItem(
    vault: VaultId,
    item: ItemWrite & { readonly consumes?: SubmittedLink },
  ): Promise<ItemChanged> {
    const { digest: consumes, submission } = item.consumes ?? { digest: "", submission: "" };
    const subject = { vault, item: item.id, digest: item.link?.digest, consumes };
    const args = { ...this.#itemArgs(vault, item), consumes, submission };
    return (await this.#run("change-vault-item", subject, args)).kind;
  }

  async findItem(vault: VaultId, key: string): Promise<VaultItem | undefined> {
    const text = await this.store.ask((redis) => redis.hget(this.#key(vault, "vaultItems"), key));
    const found = text === null ? undefined : parseItem(key, { text, values: null, link: null });
    return found && (await this.#readWhole(vault, found));
  }

  async *items(vault: VaultId): AsyncIterable<VaultItem> {
    for (const item of await this.#listed(vault)) {
      const whole = await this.#readWhole(vault, item);
      if (whole) yield whole;
    }
  }

  async countBytes(vault: VaultId): Promise<void> {
    await this.#runLossy("count-vault-bytes", { vault }, { vault });
  }

  async count(): Promise<number> {
    return await this.store.ask((redis) => redis.zcard(this.#part("vaults")));
  }

  /** Gives them without their values and links. */
  async #listed(vault: VaultId): Promise<readonly VaultItem[]> {
    const items = await this.store.ask((redis) => redis.hgetall(this.#key(vault, "vaultItems")));
    return Object.entries(items)
      .flatMap(([key, text]) => parseItem(key, { text, values: null, link: null }) ?? [])
      .toSorted((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));
  }

  async removeItem(vault: VaultId, key: string, expected?: string): Promise<ItemRemoval> {
    const item = await this.findItem(vault, key);
    if (!item) return "missing";
    if (expected !== undefined && item.id !== expected) return "other";
    // One that is gone by then was removed by the first try of this, whose answer was lost, or by another.
    await this.#run("remove-vault-item", { vault, item: item.id }, { vault, id: item.id, key });
    return "removed";
  }

  async renewLink(
    vault: VaultId,
    { id, key, version }: Pick<VaultItem, "id" | "key" | "version">,
    { event = "" as ItemEventName, ...link }: OfferedLink & { readonly event?: ItemEventName },
  ): Promise<CollectionLink | undefined> {
    const args = { vault, id, key, version, ...linkArgs(link), ...eventArgs(event, newRequestId()) };
    const subject = { vault, item: id, digest: link.digest };
    const { kind, payload } = await this.#runLossy("renew-collection-link", subject, args);
    return kind === "stale" ? undefined : linkOf(payload);
  }

  async findLink(digest: string): Promise<KnownLink> {
    return parseKnownLink(
      await this.store.ask((redis) => redis.get(collectionLinkKey(this.project, digest))),
    );
  }

  settle(): Promise<void> {
    return this.parts.writes.write(async () => {});
  }

  async noteEvent(
    vault: VaultId,
    { id, key }: Pick<VaultItem, "id" | "key">,
    { name, browserId, data }: NewItemEvent,
  ): Promise<void> {
    const args = { id, key, ...eventArgs(name, newRequestId()), data: JSON.stringify({ browserId, data }) };
    await this.#run("note-vault-event", { vault, item: id }, args);
  }

  async events(item: VaultItemId, after: string | undefined): Promise<readonly ItemEvent[]> {
    const from = after === undefined ? "-" : `(${after}`;
    const found = await this.store.ask((redis) =>
      redis.xrange(vaultEventsKey(this.project, item), from, "+"),
    );
    return found.flatMap(([id, fields]) => eventOf(id, fields) ?? []);
  }

  async latestEvent(item: VaultItemId): Promise<string> {
    const key = vaultEventsKey(this.project, item);
    return (await this.store.ask((redis) => redis.xrevrange(key, "+", "-", "COUNT", 1)))[0]?.[0] ?? "";
  }

  now(): Promise<Millis> {
    return this.store.now();
  }

  /** The item, its values and its link as they are together; undefined: it is gone meanwhile. */
  async #readWhole(vault: VaultId, { id, key }: VaultItem): Promise<VaultItem | undefined> {
    const read = await this.store.ask((redis) =>
      redis
        .multi()
        .hget(this.#key(vault, "vaultItems"), key)
        .hget(this.#key(vault, "vaultValues"), id)
        .hget(this.#key(vault, "vaultLinks"), id)
        .exec(),
    );
    const [text, values, link] = (read ?? []).map(([fault, value]) => {
      if (fault) throw fault;
      return typeof value === "string" ? value : null;
    });
    const item = text ? parseItem(key, { text, values: values ?? null, link: link ?? null }) : undefined;
    // Another may have taken the key since; its values are not those that were read.
    return item?.id === id ? item : undefined;
  }

  #run<const Name extends ScriptName>(
    script: Name,
    subject: Subject,
    args: ScriptArgs,
  ): Promise<ScriptReply<Name>> {
    return this.parts.writes.write(() => this.#runLossy(script, subject, args));
  }

  /** For what may be lost: a link that is, is given anew. */
  #runLossy<const Name extends ScriptName>(
    script: Name,
    subject: Subject,
    args: ScriptArgs,
  ): Promise<ScriptReply<Name>> {
    return this.store.run(script, (key) => this.#keyOf(key, subject), args);
  }

  #keyOf(key: string, { vault, item, digest = "", consumes = "" }: Subject): string {
    switch (key) {
      case "collectionLink":
        return collectionLinkKey(this.project, digest);
      case "consumedLink":
        return collectionLinkKey(this.project, consumes);
      case "vaultEvents":
        return vaultEventsKey(this.project, item ?? ("" as VaultItemId));
      case "vaults":
      case "vaultNames":
      case "vaultBytes":
      case "vaultRemovals":
        return this.#part(key);
      default:
        return this.#key(vault, key as VaultPart);
    }
  }

  #itemArgs(vault: VaultId, item: ItemWrite): ScriptArgs {
    const { vaultBytes: mostOfVault, projectVaultBytes: mostOfProject } = this.parts.limits;
    return { ...itemArgs(vault, item), mostOfVault, mostOfProject };
  }

  #key(id: VaultId, part: VaultPart): string {
    return vaultKey(this.project, id, part);
  }

  #part(part: ProjectPart): string {
    return projectKey(this.project, part);
  }
}
