import { type ExtensionId, findDigest, findExtensionId, type ProjectId } from "../../base/ids.js";
import type { Extension, ExtensionStore } from "../../registry/extensions/extension.js";
import { extensionKey, type ProjectPart, projectKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import type { ScriptArgs } from "../redis/script-call.js";
import type { ScriptName, ScriptReply } from "../redis/replies.js";

/** The fields are read in this order. */
const fields = ["createdAt", "name", "digest", "sizeBytes", "lastUsedAt"] as const;

/** The extensions of one project: an index, newest last, who has which name, and a hash for each. */
export class RedisExtensionStore implements ExtensionStore {
  constructor(
    private readonly store: ScriptStore,
    private readonly project: ProjectId,
  ) {}

  async create(ask: Parameters<ExtensionStore["create"]>[0]): Promise<"created" | "taken" | "many"> {
    const { id, name = "", digest, sizeBytes, most } = ask;
    return (await this.#run("create-extension", id, { name, digest, sizeBytes, most })).kind;
  }

  async find(id: ExtensionId): Promise<Extension | undefined> {
    return parseExtension(id, await this.store.ask((redis) => redis.hmget(this.#key(id), ...fields)));
  }

  async findNamed(name: string): Promise<ExtensionId | undefined> {
    return findExtensionId(
      (await this.store.ask((redis) => redis.hget(this.#part("extensionNames"), name))) ?? "",
    );
  }

  async all(): Promise<readonly Extension[]> {
    const ids = await this.store.ask((redis) => redis.zrevrange(this.#part("extensions"), 0, -1));
    const found = await Promise.all(
      ids.flatMap((text) => findExtensionId(text) ?? []).map((id) => this.find(id)),
    );
    return found.flatMap((extension) => extension ?? []);
  }

  async noteUse(id: ExtensionId): Promise<void> {
    await this.#run("use-extension", id, {});
  }

  async remove(id: ExtensionId): Promise<"removed" | "missing"> {
    return (await this.#run("remove-extension", id, {})).kind;
  }

  #run<const Name extends ScriptName>(
    script: Name,
    id: ExtensionId,
    args: ScriptArgs,
  ): Promise<ScriptReply<Name>> {
    return this.store.run(
      script,
      (key) => (key === "extension" ? this.#key(id) : this.#part(key as ProjectPart)),
      { id, ...args },
    );
  }

  #key(id: ExtensionId): string {
    return extensionKey(this.project, id);
  }

  #part(part: ProjectPart): string {
    return projectKey(this.project, part);
  }
}

function parseExtension(
  id: ExtensionId,
  [createdAt, name, digest, sizeBytes, lastUsedAt]: readonly (string | null)[],
): Extension | undefined {
  const archive = findDigest(digest ?? "");
  if (!createdAt || !archive) return undefined;
  return {
    id,
    digest: archive,
    sizeBytes: Number(sizeBytes),
    createdAt: Number(createdAt),
    ...(name ? { name } : {}),
    ...(lastUsedAt ? { lastUsedAt: Number(lastUsedAt) } : {}),
  };
}
