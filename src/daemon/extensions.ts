import type { Readable } from "node:stream";
import { type Archives, type Staging, TooLarge } from "../archive/archives.js";
import { checkExtension } from "../archive/formats/check-extension.js";
import { makeFromStore } from "../archive/formats/web-store.js";
import { blockedPermissions } from "../browser/policy/managed-policy.js";
import type { Config } from "../config/config.js";
import type { DaemonContext } from "./boot.js";
import type { UploadLimits } from "../http/deps.js";
import type { makeAddExtensions } from "../lease/add-extensions.js";
import { type ExtensionPorts, makeExtensionOperations } from "../registry/extensions/operations.js";
import type { ExtensionOperations } from "../registry/extensions/extension.js";
import type { Stores } from "./state.js";

interface Parts {
  readonly stores: Pick<Stores, "poolStore" | "projects" | "extensions">;
  readonly archives: Archives;
  readonly staging: Staging;
}

/** The registry of extensions, wired by hand. */
export function openExtensions(
  config: Config,
  { clock }: Pick<DaemonContext, "clock">,
  { stores, archives, staging }: Parts,
): ExtensionOperations {
  const { maxBytes, storeUrl, storeLimitMs } = config.extensions;
  return makeExtensionOperations({
    poolStore: stores.poolStore,
    projects: stores.projects,
    store: stores.extensions,
    archives,
    maxExtensions: config.limits.maxExtensions,
    stage: (file, signal) => stage(staging, file, { maxBytes, signal }),
    check: (path) => checkExtension(path, extensionLimits(config)),
    fromStore: makeFromStore({ url: storeUrl, limitMs: storeLimitMs, maxBytes, staging, clock }),
  });
}

/** What an upload to a running browser needs of the archives. */
export const uploadPorts = (
  config: Config,
  archives: Archives,
): Pick<Parameters<typeof makeAddExtensions>[0], "faultsOf" | "keep"> => ({
  async faultsOf(path) {
    const checked = await checkExtension(path, extensionLimits(config));
    return checked.kind === "faulty" ? checked.faults : [];
  },
  keep: (digest, path) => archives.put(digest, path),
});

/** What one upload of an archive may send, and how long it may take. */
export const extensionUploads = ({
  maxBytes,
  uploadStallMs,
  uploadLimitMs,
}: Config["extensions"]): UploadLimits => ({
  maxFileBytes: maxBytes,
  stallMs: uploadStallMs,
  limitMs: uploadLimitMs,
});

/** What an archive is held to wherever it is uploaded: what would not be loaded later is refused then. */
export const extensionLimits = ({
  extensions: { maxFiles, maxUnpackedBytes },
}: Config): Parameters<typeof checkExtension>[1] => ({ maxFiles, maxUnpackedBytes, blockedPermissions });

async function stage(
  staging: Staging,
  file: Readable,
  options: { maxBytes: number; signal: AbortSignal },
): ReturnType<ExtensionPorts["stage"]> {
  try {
    return { kind: "staged", file: await staging.take(file, options) };
  } catch (error) {
    if (error instanceof TooLarge) return { kind: "too-large", maxBytes: error.maxBytes };
    throw error;
  }
}
