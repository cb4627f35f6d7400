import { type Digest, findDigest, findProfileId, type ProfileId, type ProjectId } from "../../base/ids.js";
import type { Page, Paging } from "../../spec/paging.js";
import type { Profile, ProfileStore } from "../../registry/profiles/profile.js";
import { profileKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import { RegistryScripts } from "./registry-scripts.js";

/** The fields are read in this order. */
const fields = ["createdAt", "name", "updatedAt", "lastUsedAt", "digest", "sizeBytes", "savedAt"] as const;
/**
 * So many are read at once, because the answers to thousands in one go would keep everything else waiting.
 */
const batch = 500;
type ProfileFields = readonly (string | null | undefined)[];

/** The profiles of one project: an index, newest last, who has which name, and a hash for each. */
export class RedisProfileStore implements ProfileStore {
  readonly #scripts: RegistryScripts<ProfileId>;

  constructor(store: ScriptStore, project: ProjectId) {
    this.#scripts = new RegistryScripts(store, project, { name: "profile", keyOf: profileKey });
  }

  async create({
    id,
    name = "",
    most,
  }: {
    id: ProfileId;
    name?: string;
    most: number;
  }): Promise<"created" | "taken" | "many"> {
    return (await this.#scripts.run("create-profile", id, { name, most })).kind;
  }

  async find(id: ProfileId): Promise<Profile | undefined> {
    return parseProfile(
      id,
      await this.#scripts.ask((redis) => redis.hmget(this.#scripts.keyOf(id), ...fields)),
    );
  }

  async findNamed(name: string): Promise<ProfileId | undefined> {
    return findProfileId(
      (await this.#scripts.ask((redis) => redis.hget(this.#scripts.part("profileNames"), name))) ?? "",
    );
  }

  async page({ limit, offset }: Paging): Promise<Page<Profile>> {
    // One more than is shown tells whether there are more.
    const ids = await this.#ids(offset, offset + limit);
    const items = await this.#findAll(ids.slice(0, limit));
    return { items, hasMore: ids.length > limit, nextOffset: offset + items.length };
  }

  async index(): Promise<readonly { readonly id: ProfileId; readonly name?: string }[]> {
    const [ids, names] = await Promise.all([
      this.#ids(0, -1),
      this.#scripts.ask((redis) => redis.hgetall(this.#scripts.part("profileNames"))),
    ]);
    const nameOf = new Map(Object.entries(names).map(([name, id]) => [id, name]));
    return ids.map((id) => {
      const name = nameOf.get(id);
      return { id, ...(name === undefined ? {} : { name }) };
    });
  }

  async all(): Promise<readonly Profile[]> {
    const ids = await this.#ids(0, -1);
    const found: Profile[] = [];
    for (let at = 0; at < ids.length; at += batch)
      found.push(...(await this.#findAll(ids.slice(at, at + batch))));
    return found;
  }

  async rename(id: ProfileId, name: string): Promise<"changed" | "missing" | "taken"> {
    return (await this.#scripts.run("rename-profile", id, { name })).kind;
  }

  async commit(
    id: ProfileId,
    { digest, sizeBytes }: { digest: Digest; sizeBytes: number },
  ): Promise<"committed" | "missing"> {
    return (await this.#scripts.run("commit-profile", id, { digest, sizeBytes })).kind;
  }

  async noteUse(id: ProfileId): Promise<void> {
    await this.#scripts.run("use-profile", id);
  }

  async remove(id: ProfileId): Promise<"removed" | "missing"> {
    return (await this.#scripts.run("remove-profile", id)).kind;
  }

  async #ids(first: number, last: number): Promise<readonly ProfileId[]> {
    const ids = await this.#scripts.ask((redis) =>
      redis.zrevrange(this.#scripts.part("profiles"), first, last),
    );
    return ids.flatMap((id) => findProfileId(id) ?? []);
  }

  async #findAll(ids: readonly ProfileId[]): Promise<Profile[]> {
    return (await Promise.all(ids.map((id) => this.find(id)))).flatMap((profile) => profile ?? []);
  }
}

function parseProfile(
  id: ProfileId,
  [createdAt, name, updatedAt, lastUsedAt, ...saved]: ProfileFields,
): Profile | undefined {
  if (!createdAt) return undefined;
  return {
    id,
    createdAt: Number(createdAt),
    ...(name ? { name } : {}),
    ...(updatedAt ? { updatedAt: Number(updatedAt) } : {}),
    ...(lastUsedAt ? { lastUsedAt: Number(lastUsedAt) } : {}),
    ...archiveOf(saved),
  };
}

function archiveOf([text, sizeBytes, savedAt]: ProfileFields): Pick<Profile, "archive"> {
  const digest = findDigest(text ?? "");
  return digest ? { archive: { digest, sizeBytes: Number(sizeBytes), savedAt: Number(savedAt) } } : {};
}
