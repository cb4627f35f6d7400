import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { ExtensionDirectory } from "../chromium.js";
import { findForeignText } from "../foreign-file.js";

/** An extension that may only stop requests if policy installs it, from the packed form in its directory. */
export interface ForcedExtension {
  /** The id of its packed form: the key decides, not the path. */
  readonly id: string;
  readonly crx: string;
  readonly version: string;
  readonly hasWorker: boolean;
}

/** Says, in words for people, why an extension that demands policy cannot be installed. */
export class NotInstallable extends Error {
  constructor(
    readonly extension: string,
    readonly reason: string,
  ) {
    super(`the extension ${extension} demands to be installed by policy, and ${reason}`);
  }
}

/** What a launch is given, with what policy has to install. */
export type LaunchExtensions = ExtensionDirectory & { readonly forced?: ForcedExtension };

/** Throws `NotInstallable`. */
export async function withForced(
  extensions: readonly ExtensionDirectory[],
): Promise<readonly LaunchExtensions[]> {
  const wanted: readonly LaunchExtensions[] = await Promise.all(
    extensions.map(async (extension) => {
      const forced = await findForced(extension);
      return forced ? { ...extension, forced } : extension;
    }),
  );
  const ids = new Set<string>();
  for (const { name, forced } of wanted) {
    if (forced && ids.has(forced.id))
      throw new NotInstallable(name, "another extension of this browser has the same key");
    if (forced) ids.add(forced.id);
  }
  return wanted;
}

interface ManifestPart {
  readonly version?: unknown;
  readonly permissions?: unknown;
  readonly background?: { readonly service_worker?: unknown };
}

const requestPermissions = new Set<unknown>(["webRequest", "webRequestBlocking"]);

/**
 * Finds the policy that an unpacked extension needs; undefined where it needs none. It needs one where it
 * asks to watch or stop requests and brings what a policy installs from: an update.xml and a .crx
 * (docs/extensions-and-profiles.md#installed-by-policy). Throws `NotInstallable`.
 */
export async function findForced({ name, path }: ExtensionDirectory): Promise<ForcedExtension | undefined> {
  const files: readonly string[] = await readdir(path).catch(() => []);
  const packed = files.filter((file) => file.endsWith(".crx")).toSorted()[0];
  if (packed === undefined || !files.includes("update.xml")) return undefined;
  const manifest = await readManifest(path);
  const permissions: readonly unknown[] = Array.isArray(manifest.permissions) ? manifest.permissions : [];
  if (!permissions.some((permission) => requestPermissions.has(permission))) return undefined;
  const crx = join(path, packed);
  try {
    const [id, version] = await Promise.all([idOf(crx), versionOf(path, manifest)]);
    return { id, crx, version, hasWorker: manifest.background?.service_worker !== undefined };
  } catch (error) {
    throw error instanceof Unreadable ? new NotInstallable(name, error.message) : error;
  }
}

class Unreadable extends Error {}

/** Chromium itself says what is wrong with a manifest that cannot be read. */
async function readManifest(path: string): Promise<ManifestPart> {
  const text = await readShort(join(path, "manifest.json"));
  try {
    const manifest: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
    return typeof manifest === "object" && manifest !== null ? manifest : {};
  } catch {
    return {};
  }
}

/** The packed one may be of another version than what lies beside it, and then its update.xml says so. */
async function versionOf(path: string, manifest: ManifestPart): Promise<string> {
  const text = await readShort(join(path, "update.xml"));
  const version = /<updatecheck\b[^<>]*\sversion\s*=\s*["']([^"']*)["']/.exec(text)?.[1] ?? manifest.version;
  if (typeof version !== "string" || !/^\d+(?:\.\d+){0,3}$/.test(version))
    throw new Unreadable("neither its update.xml nor its manifest names a version");
  return version;
}

const mostTextBytes = 2 ** 20;

/** Reads nothing of a file that is missing, or too long to be what it claims to be. */
const readShort = async (path: string): Promise<string> => (await findForeignText(path, mostTextBytes)) ?? "";

/** No header with its keys and signatures is nearly as long. */
const mostHeaderBytes = 2 ** 20;
/**
 * "Cr24", the version of the format, and the length of the header that follows (chromium:
 * components/crx_file).
 */
const preludeBytes = 12;
const signedDataField = 10_000;
const idField = 1;

async function idOf(crx: string): Promise<string> {
  // A browser may add files to the directory of an extension that it has loaded.
  const file = await open(crx, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!(await file.stat()).isFile()) throw new Unreadable("its .crx is no file");
    const prelude = await readExactly(file, preludeBytes, 0);
    const length = prelude.readUInt32LE(8);
    const isSound =
      prelude.toString("latin1", 0, 4) === "Cr24" &&
      prelude.readUInt32LE(4) === 3 &&
      length <= mostHeaderBytes;
    if (!isSound) throw new Unreadable("its .crx is none of version 3");
    const header = await readExactly(file, length, preludeBytes);
    const id = findField(findField(header, signedDataField), idField);
    if (id.length !== 16) throw new Unreadable("its .crx names no id");
    return [...id.toString("hex")].map((digit) => "abcdefghijklmnop"[Number.parseInt(digit, 16)]).join("");
  } finally {
    await file.close();
  }
}

async function readExactly(
  file: Awaited<ReturnType<typeof open>>,
  length: number,
  position: number,
): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  if (bytesRead < length) throw new Unreadable("its .crx is cut short");
  return buffer;
}

/** The bytes of a field of a protocol buffer whose fields are all byte strings; empty where it has none. */
function findField(message: Buffer, wanted: number): Buffer {
  for (let at = 0; at < message.length;) {
    const tag = readVarint(message, at);
    const length = readVarint(message, tag.end);
    if (tag.value % 8 !== 2) break;
    const end = length.end + length.value;
    if (Math.floor(tag.value / 8) === wanted) return message.subarray(length.end, end);
    at = end;
  }
  return Buffer.alloc(0);
}

function readVarint(bytes: Buffer, start: number): { value: number; end: number } {
  let value = 0;
  for (let at = start; at < Math.min(start + 5, bytes.length); at += 1) {
    const byte = bytes[at] ?? 0;
    value += (byte % 128) * 128 ** (at - start);
    if (byte < 128) return { value, end: at + 1 };
  }
  throw new Unreadable("its .crx has a header that cannot be read");
}
