import { chmod, mkdir, open, readFile, rm, writeFile as rewriteFile } from "node:fs/promises";
import { join } from "node:path";
import { findFileReach } from "../../registry/extensions/file-reach.js";
import { type Manifest, parseManifest } from "../../registry/extensions/manifest.js";
import { narrowManifest } from "../../registry/extensions/narrow-manifest.js";
import { extensionFiles } from "./extension-files.js";
import { packedFaultOf, findPacked } from "./packed-extension.js";
import { BadArchive, type Zip, type ZipEntry, type ZipLimits, withZip } from "./zip.js";
import { parentsOf } from "./zip-names.js";

interface UnpackRules extends ZipLimits {
  /** Browsers see the host's files: an extension that may come to them is refused. */
  readonly seesHostFiles?: boolean;
}

/**
 * Unpacks an extension's archive into `into`, which must not be there yet; its parent must. The folder that
 * holds all files, where there is one, is left away, and the manifest names no files of the host. Files are
 * 0644, directories 0755. Throws `BadArchive`, or what the disk throws; then nothing is left.
 */
export async function unpackExtension(path: string, into: string, limits: UnpackRules): Promise<void> {
  await withZip(path, limits, async (zip) => {
    const found = extensionFiles(zip.entries);
    if (found.kind === "faulty") throw new BadArchive(found.faults);
    await makeDirectory(into);
    try {
      await writeAll(zip, found.files, into);
      const manifest = await narrow(join(into, "manifest.json"));
      if (manifest && limits.seesHostFiles === true) refuseReach(manifest);
      const packed = manifest && findPacked(manifest, new Set(found.files.keys()));
      // What policy keeps from extensions it keeps from packed ones as well.
      if (packed !== undefined)
        await packedFaultOf(packed, join(into, packed), { ...limits, blockedPermissions: [] });
    } catch (error) {
      await rm(into, { recursive: true, force: true });
      throw error;
    }
  });
}

/** Throws `BadArchive`. What names files of the host has been taken out of its patterns already. */
function refuseReach(manifest: Manifest): void {
  const reach = findFileReach(narrowManifest(manifest) ?? manifest);
  if (reach.length === 0) return;
  throw new BadArchive(
    reach.map(
      (each) => `manifest.json: ${each}, and browsers of this node see the host's files (docs/isolation.md)`,
    ),
  );
}

/**
 * What it said before. It is written anew, without comments and with every key spelled plainly, so that
 * whoever reads it next reads what Chromium does: by a key that is not seen it would have another id, and
 * access to files. One that cannot be read is left for Chromium to refuse.
 */
async function narrow(path: string): Promise<Manifest | undefined> {
  const read = parseManifest(await readFile(path, "utf8"));
  if (read.kind === "faulty") return undefined;
  await rewriteFile(path, JSON.stringify(narrowManifest(read.manifest) ?? read.manifest));
  return read.manifest;
}

async function writeAll(zip: Zip, files: ReadonlyMap<string, ZipEntry>, into: string): Promise<void> {
  const directories = new Set([...files.keys()].flatMap(parentsOf));
  // Parents come before what is in them.
  for (const directory of [...directories].toSorted()) await makeDirectory(join(into, directory));
  const all = [...files];
  for (let at = 0; at < all.length; at += atOnce) {
    // All writes have ended before a failure is reported, so that nothing is written while the caller cleans
    // up.
    const written = await Promise.allSettled(
      all.slice(at, at + atOnce).map(([name, entry]) => writeFile(join(into, name), zip.read(entry))),
    );
    const failed = written.find((one) => one.status === "rejected");
    if (failed) throw failed.reason;
  }
}

/** Files written side by side: each is four calls that mostly wait. */
const atOnce = 8;

/**
 * Fails where anything is there, a link included: whatever is made below is our own. Modes are set apart from
 * the process's mask.
 */
async function makeDirectory(path: string): Promise<void> {
  await mkdir(path);
  await chmod(path, 0o755);
}

async function writeFile(path: string, content: AsyncIterable<Buffer>): Promise<void> {
  const file = await open(path, "wx");
  try {
    await file.chmod(0o644);
    for await (const chunk of content) await file.writeFile(chunk);
  } finally {
    await file.close();
  }
}
