import { type ExtensionId, findDigest, findExtensionId, type ProjectId } from "../../base/ids.js";
import type { Extension, ExtensionStore } from "../../registry/extensions/extension.js";
import { extensionKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import { RegistryScripts } from "./registry-scripts.js";

/** The fields are read in this order. */
const fields = ["createdAt", "name", "digest", "sizeBytes", "lastUsedAt"] as const;

/** The extensions of one project: an index, newest last, who has which name, and a hash for each. */
export class RedisExtensionStore implements ExtensionStore {
  readonly #scripts: RegistryScripts<ExtensionId>;

  constructor(store: ScriptStore, project: ProjectId) {
    this.#scripts = new RegistryScripts(store, project, { name: "extension", keyOf: extensionKey });
  }

  async create(ask: Parameters<ExtensionStore["create"]>[0]): Promise<"created" | "taken" | "many"> {
    const { id, name = "", digest, sizeBytes, most } = ask;
    return (await this.#scripts.run("create-extension", id, { name, digest, sizeBytes, most })).kind;
  }

  async find(id: ExtensionId): Promise<Extension | undefined> {
    return parseExtension(
      id,
      await this.#scripts.ask((redis) => redis.hmget(this.#scripts.keyOf(id), ...fields)),
    );
  }

  async findNamed(name: string): Promise<ExtensionId | undefined> {
    return findExtensionId(
      (await this.#scripts.ask((redis) => redis.hget(this.#scripts.part("extensionNames"), name))) ?? "",
    );
  }

  async all(): Promise<readonly Extension[]> {
    const ids = await this.#scripts.ask((redis) => redis.zrevrange(this.#scripts.part("extensions"), 0, -1));
    const found = await Promise.all(
      ids.flatMap((text) => findExtensionId(text) ?? []).map((id) => this.find(id)),
    );
    return found.flatMap((extension) => extension ?? []);
  }

  async noteUse(id: ExtensionId): Promise<void> {
    await this.#scripts.run("use-extension", id);
  }

  async remove(id: ExtensionId): Promise<"removed" | "missing"> {
    return (await this.#scripts.run("remove-extension", id)).kind;
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
