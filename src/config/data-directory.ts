import { randomBytes } from "node:crypto";
import { link, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { errnoOf } from "../base/errno.js";
import { findNodeId, newNodeId, type NodeId } from "../base/ids.js";
import { rootPrefix } from "../base/crypto/key-text.js";
import { Secret } from "../base/crypto/secret.js";
import type { Config } from "./config.js";

const isExisting = (error: unknown): boolean => errnoOf(error) === "EEXIST";

/**
 * Gives the text that the data directory keeps under `name`. The first use draws it and writes it with mode
 * 0600.
 */
async function keep(dataDir: string, name: string, draw: () => string): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const file = join(dataDir, name);
  const drawn = `${file}.${randomBytes(6).toString("hex")}`;
  try {
    // The complete file is linked into its place, so that nobody reads half of it and the first of two starts
    // wins.
    await writeFile(drawn, `${draw()}\n`, { mode: 0o600 });
    await link(drawn, file);
  } catch (error) {
    if (!isExisting(error)) throw error;
  } finally {
    await rm(drawn, { force: true });
  }
  return (await readFile(file, "utf8")).trim();
}

async function keepSecret(dataDir: string, name: string, prefix: string): Promise<Secret> {
  const text = await keep(dataDir, name, () => prefix + randomBytes(32).toString("base64url"));
  if (text.length < prefix.length + 16)
    throw new Error(`${join(dataDir, name)} holds no usable secret; delete it to have one drawn`);
  return new Secret(text);
}

/** The file that keeps the root API key when the configuration does not give it. */
export const apiKeyFile = (config: Config): string => join(config.dataDir, "api-key");

export const apiKey = async (config: Config): Promise<Secret> =>
  config.apiKey ?? keepSecret(config.dataDir, "api-key", rootPrefix);

export const clusterSecret = async (config: Config): Promise<Secret> =>
  config.clusterSecret ?? keepSecret(config.dataDir, "cluster-secret", "");

/** The key under which secrets in Redis are encrypted. */
export const encryptionKey = async (config: Config): Promise<Secret> =>
  config.encryptionKey ?? keepSecret(config.dataDir, "encryption-key", "");

/** Names a data directory: daemons that use it one after the other share this, and no others do. */
export const nodeOrigin = (config: Config): Promise<string> => keep(config.dataDir, "node-origin", newNodeId);

/** This node's name, given by a setting or drawn once, so that a restarted node finds what it has left. */
export async function nodeId(config: Config): Promise<NodeId> {
  const text = config.node.id ?? (await keep(config.dataDir, "node-id", newNodeId));
  const id = findNodeId(text);
  if (!id)
    throw new Error(`${join(config.dataDir, "node-id")} holds no node id; delete it to have one drawn`);
  return id;
}
