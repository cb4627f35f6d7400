import { createPublicKey, createVerify } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import {
  demandsPolicy,
  type Manifest,
  manifestFaults,
  maxManifestBytes,
  type ManifestRules,
  parseManifest,
} from "../../registry/extensions/manifest.js";
import { namesFiles } from "../../registry/extensions/narrow-manifest.js";
import { crxHeadBytes, findSigned, readCrx, type SignedCrx } from "./crx.js";
import { BadArchive, type Zip, type ZipLimits, withZip } from "./zip.js";

const isPacked = (name: string): boolean => !name.includes("/") && name.endsWith(".crx");

/**
 * The packed form that policy installs in place of what lies beside it; undefined where there is none. Throws
 * `BadArchive` where it is not clear which.
 */
export function findPacked(manifest: Manifest, files: ReadonlySet<string>): string | undefined {
  const packed = [...files].filter(isPacked);
  if (!demandsPolicy(manifest, files) || packed.length === 0) return undefined;
  if (packed.length > 1)
    throw new BadArchive([`has ${packed.length} packed extensions, and policy installs one`]);
  return packed[0];
}

/**
 * Throws `BadArchive` unless the packed extension is signed by the key that it is named for, and its own
 * files and manifest hold what is asked of others. It cannot be narrowed, for that breaks its signature, and
 * with another key it would be another extension. What it says of all addresses stays: Chromium gives what
 * policy installs no access to files (Chromium 156, docs/chromium.md#extensions).
 */
async function checkPacked(path: string, limits: ZipLimits & ManifestRules): Promise<void> {
  const begins = await verifiedStart(path);
  const manifest = await withZip(path, { ...limits, begins }, (zip) => readManifest(zip, limits));
  if (namesFiles(manifest))
    throw new BadArchive([
      "manifest.json: names files of the host, and that cannot be taken out of a packed extension",
    ]);
}

async function readManifest(zip: Zip, rules: ManifestRules): Promise<Manifest> {
  const chunks: Buffer[] = [];
  for (const entry of zip.entries) {
    const isManifest = entry.name === "manifest.json";
    if (isManifest && entry.sizeBytes > maxManifestBytes)
      throw new BadArchive([`manifest.json: is larger than ${maxManifestBytes} bytes`]);
    for await (const chunk of zip.read(entry)) chunks.push(...(isManifest ? [chunk] : []));
  }
  const read = parseManifest(Buffer.concat(chunks).toString());
  if (read.kind === "faulty") throw new BadArchive([read.fault]);
  const files = new Set(
    zip.entries
      .filter(({ isDirectory, name }) => !isDirectory && !name.startsWith("_metadata/"))
      .map(({ name }) => name),
  );
  const faults = manifestFaults(read.manifest, files, rules);
  if (faults.length > 0) throw new BadArchive(faults);
  return read.manifest;
}

/** Verifies the file and returns the offset of its zip. */
async function verifiedStart(path: string): Promise<number> {
  const file = await open(path, "r");
  try {
    const head = await headOf(file);
    const crx = readCrx(head);
    if (crx.kind === "faulty") throw new BadArchive([crx.fault]);
    const signed = findSigned(head);
    if (!signed) throw new BadArchive(["is not signed by the key that its id names"]);
    if (!(await isSigned(path, signed, crx.zipStart)))
      throw new BadArchive(["has a signature that does not fit"]);
    return crx.zipStart;
  } finally {
    await file.close();
  }
}

async function headOf(file: FileHandle): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(crxHeadBytes), { position: 0 });
  return buffer.subarray(0, bytesRead);
}

/** Chromium, components/crx_file: the text, the length of the signed header, that, and the zip. */
async function isSigned(
  path: string,
  { key, signature, header }: SignedCrx,
  zipStart: number,
): Promise<boolean> {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.length);
  const verifying = createVerify("sha256").update("CRX3 SignedData\0").update(length).update(header);
  for await (const chunk of createReadStream(path, { start: zipStart })) verifying.update(chunk as Buffer);
  try {
    return verifying.verify(createPublicKey({ key, format: "der", type: "spki" }), signature);
  } catch {
    return false;
  }
}

/** Checks an extension that is unpacked already or still to be; the file is at `path`. */
export async function packedFaultOf(
  name: string,
  path: string,
  limits: ZipLimits & ManifestRules,
): Promise<void> {
  try {
    await checkPacked(path, limits);
  } catch (error) {
    throw error instanceof BadArchive
      ? new BadArchive(error.faults.map((fault) => `${name}: ${fault}`))
      : error;
  }
}
