import { createHash, randomBytes } from "node:crypto";
import { link, readFile, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { CannotStart } from "../base/cannot-start.js";
import { errnoOf } from "../base/errno.js";
import { findNodeId, newNodeId, type NodeId } from "../base/ids.js";
import { rootPrefix } from "../base/crypto/key-text.js";
import { Secret } from "../base/crypto/secret.js";
import { makeDurableDirectory, syncDirectory } from "../base/files/durable.js";
import type { Config } from "./config.js";

const unless =
  (code: string) =>
  (error: unknown): undefined => {
    if (errnoOf(error) !== code) throw error;
  };

/**
 * Gives the text that the data directory keeps under `name`. The first use draws it and writes it with mode
 * 0600. It outlives a loss of power, as does what is encrypted under it.
 */
async function keep(dataDir: string, name: string, draw: () => string): Promise<string> {
  await makeDurableDirectory(dataDir);
  const file = join(dataDir, name);
  if ((await readFile(file, "utf8").catch(unless("ENOENT"))) === undefined) await putFirst(file, draw());
  // Another start may have put it there and not have synced the directory yet.
  await syncDirectory(dataDir);
  return (await readFile(file, "utf8")).trim();
}

/**
 * The complete file is linked into its place, so that nobody reads half of it and the first of two starts
 * wins.
 */
async function putFirst(file: string, text: string): Promise<void> {
  const drawn = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    await writeFile(drawn, `${text}\n`, { mode: 0o600, flush: true });
    await link(drawn, file).catch(unless("EEXIST"));
  } finally {
    await rm(drawn, { force: true });
  }
}

interface KeptSecret {
  readonly prefix?: string;
  /** What an unusable file is replaced by, and what that costs. */
  readonly remedy?: string;
}

async function keepSecret(
  dataDir: string,
  name: string,
  { prefix = "", remedy = "delete it to have one drawn" }: KeptSecret = {},
): Promise<Secret> {
  const text = await keep(dataDir, name, () => prefix + randomBytes(32).toString("base64url"));
  if (text.length < prefix.length + 16)
    throw new CannotStart(`${join(dataDir, name)} holds no usable secret; ${remedy}`);
  return new Secret(text);
}

/** The file that keeps the root API key when the configuration does not give it. */
export const apiKeyFile = (config: Config): string => join(config.dataDir, "api-key");

export const apiKey = async (config: Config): Promise<Secret> =>
  config.apiKey ?? keepSecret(config.dataDir, "api-key", { prefix: rootPrefix });

export const clusterSecret = async (config: Config): Promise<Secret> =>
  config.clusterSecret ?? keepSecret(config.dataDir, "cluster-secret");

const encryptionRemedy =
  "bring back the one it held: where it is deleted another is drawn, and what Redis keeps under it " +
  "(vaults, passwords of proxies) is lost";

/** The key under which secrets in Redis are encrypted. */
export const encryptionKey = async (config: Config): Promise<Secret> =>
  config.encryptionKey ?? keepSecret(config.dataDir, "encryption-key", { remedy: encryptionRemedy });

/**
 * Names a data directory where it lies, until its machine boots: daemons that use it one after the other
 * share this, and no others do. A copy has what the directory keeps, but not its file and its machine's boot
 * (DECISIONS.md#248).
 */
export async function nodeOrigin({ dataDir, redis }: Pick<Config, "dataDir" | "redis">): Promise<string> {
  const name = "node-origin";
  const kept = await keep(dataDir, name, newNodeId);
  // A private Redis lies in the directory too: a copy has its own, and no other daemon is in this one.
  if (redis.url === null) return kept;
  const { dev, ino } = await stat(join(dataDir, name), { bigint: true });
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(hostname);
  const facts = [kept, `${dev}`, `${ino}`, boot];
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 24);
}

/** This node's name, given by a setting or drawn once, so that a restarted node finds what it has left. */
export async function nodeId(config: Config): Promise<NodeId> {
  const text = config.node.id ?? (await keep(config.dataDir, "node-id", newNodeId));
  const id = findNodeId(text);
  if (!id)
    throw new CannotStart(`${join(config.dataDir, "node-id")} holds no node id; delete it to have one drawn`);
  return id;
}
