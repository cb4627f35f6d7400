import type { Readable } from "node:stream";
import { done, type Done, refusal, type Refusal } from "../../base/errors.js";
import { type Digest, findExtensionId, newExtensionId } from "../../base/ids.js";
import { isWanted, pageOf } from "../../spec/paging.js";
import type { PoolStore } from "../../pool/ports/pool-store.js";
import type { ProjectStore } from "../../pool/ports/project-store.js";
import type { Extension, ExtensionOperations, ExtensionStore } from "./extension.js";
import { refuseInUse } from "../in-use.js";

/** A file of our own with all that was uploaded. */
interface StagedFile {
  readonly path: string;
  readonly digest: Digest;
  readonly sizeBytes: number;
  discard(): Promise<void>;
}
type StagingResult =
  | { readonly kind: "staged"; readonly file: StagedFile }
  | { readonly kind: "too-large"; readonly maxBytes: number };
type PackageCheck =
  | { readonly kind: "sound" }
  | { readonly kind: "faulty"; readonly faults: readonly string[] };

export interface ExtensionPorts {
  readonly store: ExtensionStore;
  readonly archives: {
    put(digest: Digest, path: string): Promise<void>;
    open(digest: Digest): Promise<Readable>;
  };
  readonly poolStore: PoolStore;
  readonly projects: ProjectStore;
  readonly maxExtensions: number;
  /** Takes the stream to its end; where it cannot, nothing is left of it. */
  stage(file: Readable, signal: AbortSignal): Promise<StagingResult>;
  /** Whether a browser could load what is in the archive. */
  check(path: string): Promise<PackageCheck>;
  readonly fromStore: ExtensionOperations["fromStore"];
}

export const makeExtensionOperations = (ports: ExtensionPorts): ExtensionOperations => ({
  create: makeCreate(ports),
  list: async (query) =>
    pageOf(
      (await ports.store.all()).filter((extension) => isWanted(extension, query)),
      query,
    ),
  get: async (ref) => found(await findExtension(ports, ref)),
  download: makeDownload(ports),
  remove: makeRemove(ports),
  fromStore: ports.fromStore,
});

const found = (extension: Extension | undefined): Done<Extension> | Refusal =>
  extension ? done(extension) : refusal("extension_not_found");

/** Ids win over names in `{id_or_name}` (docs/api.md#names-and-ids). */
async function findExtension(
  { store }: Pick<ExtensionPorts, "store">,
  ref: string,
): Promise<Extension | undefined> {
  const id = findExtensionId(ref);
  const byId = id && (await store.find(id));
  if (byId) return byId;
  const named = await store.findNamed(ref);
  return named && (await store.find(named));
}

const makeCreate =
  (ports: ExtensionPorts): ExtensionOperations["create"] =>
  async (ask) => {
    try {
      return await upload(ports, ask);
    } catch (error) {
      // The caller has given up, whatever broke off first.
      if (ask.signal.aborted) return refusal("unavailable");
      throw error;
    }
  };

type Upload = Parameters<ExtensionOperations["create"]>[0];

async function upload(
  ports: ExtensionPorts,
  { file, name, signal }: Upload,
): Promise<Done<Extension> | Refusal> {
  const staging = await ports.stage(file, signal);
  if (staging.kind === "too-large") return fileFaults([`is larger than ${staging.maxBytes} bytes`]);
  try {
    return await register(ports, staging.file, await name());
  } finally {
    await staging.file.discard();
  }
}

async function register(
  ports: ExtensionPorts,
  { path, digest, sizeBytes }: StagedFile,
  name: string | undefined,
): Promise<Done<Extension> | Refusal> {
  const { store, projects, archives, maxExtensions } = ports;
  // Nothing that is refused anyhow is put into the archives; the store decides who comes first.
  if (name !== undefined && (await store.findNamed(name))) return refusal("name_taken");
  const checked = await ports.check(path);
  if (checked.kind === "faulty") return fileFaults(checked.faults);
  const id = newExtensionId(projects.project);
  await archives.put(digest, path);
  const created = await store.create({
    id,
    digest,
    sizeBytes,
    most: maxExtensions,
    ...(name === undefined ? {} : { name }),
  });
  if (created === "many")
    return refusal("limit_exceeded", {
      message: "The project has as many extensions as it may have",
      reached: { of: "project", most: maxExtensions },
    });
  return created === "taken" ? refusal("name_taken") : found(await store.find(id));
}

const fileFaults = (faults: readonly string[]): Refusal =>
  refusal("bad_request", {
    message: "The extension cannot be used",
    details: faults.map((fault) => ({ code: "invalid_input", message: `file: ${fault}` })),
  });

const makeDownload =
  (ports: ExtensionPorts): ExtensionOperations["download"] =>
  async (ref) => {
    const extension = await findExtension(ports, ref);
    return extension
      ? done({ extension, bytes: await ports.archives.open(extension.digest) })
      : refusal("extension_not_found");
  };

/**
 * Refused while a pool names it; sessions keep what they were launched with. A pool that comes to name it at
 * this very moment is left with an extension that is gone: its launches fail and say so, none comes without
 * it.
 */
const makeRemove =
  (ports: ExtensionPorts): ExtensionOperations["remove"] =>
  async (ref) => {
    const extension = await findExtension(ports, ref);
    if (!extension) return refusal("extension_not_found");
    const inUse = await refuseInUse(ports, "Pools use this extension", extension.id);
    if (inUse) return inUse;
    // Missing by now: this very command was sent again after a broken connection, or another came before it.
    await ports.store.remove(extension.id);
    return done(null);
  };
