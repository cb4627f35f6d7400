import { mkdtemp, rm } from "node:fs/promises";
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { ZipFile } from "yazl";
import { systemClock } from "../../../src/base/clock.js";
import {
  type Digest,
  findDigest,
  newExtensionId,
  newProfileId,
  type ExtensionId,
  type ProfileId,
} from "../../../src/base/ids.js";
import { Secret } from "../../../src/base/crypto/secret.js";
import type { ArchiveCache } from "../../../src/archive/archives.js";
import { openCache } from "../../../src/archive/cache.js";
import { DirectoryArchives } from "../../../src/archive/directory-archives.js";
import { makeProfileArchives, openFrom } from "../../../src/archive/profile-archives.js";
import { openStaging } from "../../../src/archive/staging.js";
import { StreamSeal } from "../../../src/archive/stream-seal.js";
import type { ProfileArchives } from "../../../src/registry/profiles/profile.js";
import { RedisExtensionStore } from "../../../src/store/project/extension-store.js";
import { RedisProfileStore } from "../../../src/store/project/profile-store.js";
import type { FakeExtension } from "../browser/chromium-fake.js";
import type { StoreBed } from "../store/store-bed.js";

/** A manifest that Chromium loads and the fake judges, and what else is in the archive. */
export interface ExtensionFiles {
  readonly fake?: FakeExtension;
  readonly manifest?: Readonly<Record<string, unknown>>;
  readonly files?: Readonly<Record<string, string>>;
}

/** Real archives, registries and a cache, in a directory of their own. */
export interface AssetsBed {
  readonly extensions: RedisExtensionStore;
  readonly profiles: RedisProfileStore;
  readonly archives: ProfileArchives;
  readonly cache: ArchiveCache;
  /** Keeps an archive. */
  keep(extension: ExtensionFiles): Promise<Digest>;
  /** Registers one. */
  addExtension(name: string | undefined, extension?: ExtensionFiles): Promise<ExtensionId>;
  addProfile(): Promise<ProfileId>;
  close(): Promise<void>;
}

const most = 1000;

export async function openAssetsBed({
  store,
  project,
}: Pick<StoreBed, "store" | "project">): Promise<AssetsBed> {
  const directory = await mkdtemp(join(tmpdir(), "remuda-test-assets-"));
  const kept = new DirectoryArchives(join(directory, "archives"), systemClock);
  const staging = await openStaging(join(directory, "staging"));
  const cache = await openCache({
    archives: kept,
    directory: join(directory, "cache"),
    maxBytes: 2 ** 30,
    onFault() {},
  });
  const [extensions, profiles] = [
    new RedisExtensionStore(store, project),
    new RedisProfileStore(store, project),
  ];
  const archives = makeProfileArchives({
    profiles,
    archives: kept,
    staging,
    clock: systemClock,
    seal: new StreamSeal(new Secret("a key of the tests")),
    maxBytes: 2 ** 30,
    open: openFrom(cache),
  });
  const keep = async (extension: ExtensionFiles): Promise<Digest> => {
    const path = join(directory, `extension-${Math.random()}.zip`);
    await writeExtension(path, extension);
    const { digest } = await digestOf(path);
    await kept.put(digest, path);
    await rm(path);
    return digest;
  };
  return {
    extensions,
    profiles,
    archives,
    cache,
    keep,
    async addExtension(name, extension = {}) {
      const id = newExtensionId();
      const digest = await keep(extension);
      await extensions.create({ id, digest, sizeBytes: 1, most, ...(name !== undefined && { name }) });
      return id;
    },
    async addProfile() {
      const id = newProfileId();
      await profiles.create({ id, most });
      return id;
    },
    close: () => rm(directory, { recursive: true, force: true }),
  };
}

export async function writeExtension(
  path: string,
  { fake, manifest, files = {} }: ExtensionFiles,
): Promise<void> {
  const zip = new ZipFile();
  const text = JSON.stringify({
    manifest_version: 3,
    name: "of a test",
    version: "1",
    ...(fake && { fake }),
    ...manifest,
  });
  for (const [name, content] of Object.entries({ "manifest.json": text, ...files }))
    zip.addBuffer(Buffer.from(content), name);
  zip.end();
  await pipeline(Readable.from(zip.outputStream), createWriteStream(path));
}

async function digestOf(path: string): Promise<{ digest: Digest }> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  const digest = findDigest(hash.digest("hex"));
  if (!digest) throw new Error("no digest");
  return { digest };
}

/** A content script that writes the given word into every page's title. */
export const titling = (word: string): ExtensionFiles => ({
  manifest: { content_scripts: [{ matches: ["<all_urls>"], js: ["title.js"], run_at: "document_end" }] },
  files: { "title.js": `document.title = ${JSON.stringify(word)};` },
});
