import { rm, writeFile } from "node:fs/promises";
import {
  type ManifestRules,
  demandsPolicy,
  manifestFaults,
  maxManifestBytes,
  parseManifest,
} from "../../registry/extensions/manifest.js";
import { extensionFiles } from "./extension-files.js";
import { shownFaults } from "./shown-faults.js";
import { packedFaultOf, findPacked } from "./packed-extension.js";
import { BadArchive, type Zip, type ZipEntry, type ZipLimits, withZip } from "./zip.js";

type CheckedExtension =
  /** `demandsPolicy`: it has to be installed by enterprise policy to do its work. */
  | { readonly kind: "sound"; readonly demandsPolicy: boolean }
  /** Each fault is a sentence about the archive, or about the file that is named before a colon. */
  | { readonly kind: "faulty"; readonly faults: readonly string[] };

/**
 * Reads an archive whole, every byte of it, and says whether a browser could load what is in it. Nothing is
 * left beside it.
 */
export async function checkExtension(
  path: string,
  limits: ZipLimits & ManifestRules,
): Promise<CheckedExtension> {
  try {
    return await withZip(path, limits, (zip) => checkFiles(path, zip, limits));
  } catch (error) {
    if (error instanceof BadArchive) return { kind: "faulty", faults: error.faults };
    throw error;
  }
}

async function checkFiles(
  path: string,
  zip: Zip,
  rules: ZipLimits & ManifestRules,
): Promise<CheckedExtension> {
  const found = extensionFiles(zip.entries);
  if (found.kind === "faulty") return found;
  const own = found.files.get("manifest.json");
  if (own && own.sizeBytes > maxManifestBytes)
    return { kind: "faulty", faults: [`manifest.json: is larger than ${maxManifestBytes} bytes`] };
  const text = await readAll(zip, own);
  const read = parseManifest(text);
  if (read.kind === "faulty") return { kind: "faulty", faults: shownFaults([read.fault]) };
  const files = new Set(found.files.keys());
  const faults = manifestFaults(read.manifest, files, rules);
  if (faults.length > 0) return { kind: "faulty", faults: shownFaults(faults) };
  const packed = findPacked(read.manifest, files);
  const entry = packed === undefined ? undefined : found.files.get(packed);
  if (packed !== undefined && entry)
    await checkBeside(`${path}.packed`, { name: packed, content: zip.read(entry) }, rules);
  return { kind: "sound", demandsPolicy: demandsPolicy(read.manifest, files) };
}

/** The packed extension lies in a file of its own for as long as it is looked at. */
async function checkBeside(
  path: string,
  { name, content }: { readonly name: string; readonly content: AsyncIterable<Buffer> },
  rules: ZipLimits & ManifestRules,
): Promise<void> {
  try {
    await writeFile(path, content, { flag: "wx", mode: 0o600 });
    await packedFaultOf(name, path, rules);
  } finally {
    await rm(path, { force: true });
  }
}

/**
 * The text of one file; all others are read too, for an archive that is damaged is found now and not at a
 * launch.
 */
async function readAll(zip: Zip, wanted: ZipEntry | undefined): Promise<string> {
  const chunks: Buffer[] = [];
  for (const entry of zip.entries) {
    for await (const chunk of zip.read(entry)) chunks.push(...(entry === wanted ? [chunk] : []));
  }
  return Buffer.concat(chunks).toString();
}
