import { type Digest, findDigest, findProfileId, type ProfileId, type ProjectId } from "../../base/ids.js";
import type { Page, Paging } from "../../spec/paging.js";
import type { Profile, ProfileStore } from "../../registry/profiles/profile.js";
import { profileKey, projectKey, type ProjectPart } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import type { ScriptArgs } from "../redis/script-call.js";
import type { ScriptName, ScriptReply } from "../redis/replies.js";

/** The fields are read in this order. */
const fields = ["createdAt", "name", "updatedAt", "lastUsedAt", "digest", "sizeBytes", "savedAt"] as const;
/**
 * So many are read at once, because the answers to thousands in one go would keep everything else waiting.
 */
const batch = 500;
type Texts = readonly (string | null | undefined)[];

/** The profiles of one project: an index, newest last, who has which name, and a hash for each. */
export class RedisProfileStore implements ProfileStore {
  constructor(
    private readonly store: ScriptStore,
    private readonly project: ProjectId,
  ) {}

  async create({
    id,
    name = "",
    most,
  }: {
    id: ProfileId;
    name?: string;
    most: number;
  }): Promise<"created" | "taken" | "many"> {
    return (await this.#run("create-profile", id, { name, most })).kind;
  }

  async find(id: ProfileId): Promise<Profile | undefined> {
    return parseProfile(id, await this.store.ask((redis) => redis.hmget(this.#key(id), ...fields)));
  }

  async findNamed(name: string): Promise<ProfileId | undefined> {
    return findProfileId(
      (await this.store.ask((redis) => redis.hget(this.#part("profileNames"), name))) ?? "",
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
      this.store.ask((redis) => redis.hgetall(this.#part("profileNames"))),
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
    return (await this.#run("rename-profile", id, { name })).kind;
  }

  async commit(
    id: ProfileId,
    { digest, sizeBytes }: { digest: Digest; sizeBytes: number },
  ): Promise<"committed" | "missing"> {
    return (await this.#run("commit-profile", id, { digest, sizeBytes })).kind;
  }

  async noteUse(id: ProfileId): Promise<void> {
    await this.#run("use-profile", id, {});
  }

  async remove(id: ProfileId): Promise<"removed" | "missing"> {
    return (await this.#run("remove-profile", id, {})).kind;
  }

  async #ids(first: number, last: number): Promise<readonly ProfileId[]> {
    const ids = await this.store.ask((redis) => redis.zrevrange(this.#part("profiles"), first, last));
    return ids.flatMap((id) => findProfileId(id) ?? []);
  }

  async #findAll(ids: readonly ProfileId[]): Promise<Profile[]> {
    return (await Promise.all(ids.map((id) => this.find(id)))).flatMap((profile) => profile ?? []);
  }

  #run<const Name extends ScriptName>(
    script: Name,
    id: ProfileId,
    args: ScriptArgs,
  ): Promise<ScriptReply<Name>> {
    return this.store.run(
      script,
      (key) => (key === "profile" ? this.#key(id) : this.#part(key as ProjectPart)),
      { id, ...args },
    );
  }

  #key(id: ProfileId): string {
    return profileKey(this.project, id);
  }

  #part(part: ProjectPart): string {
    return projectKey(this.project, part);
  }
}

function parseProfile(
  id: ProfileId,
  [createdAt, name, updatedAt, lastUsedAt, ...saved]: Texts,
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

function archiveOf([text, sizeBytes, savedAt]: Texts): Pick<Profile, "archive"> {
  const digest = findDigest(text ?? "");
  return digest ? { archive: { digest, sizeBytes: Number(sizeBytes), savedAt: Number(savedAt) } } : {};
}
