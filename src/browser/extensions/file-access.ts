import { createHash } from "node:crypto";
import { lstat, realpath, rename } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "../../base/is-record.js";
import { isTooDeep } from "../../base/json-depth.js";
import type { Directories, ExtensionDirectory } from "../chromium.js";
import { makeOwned } from "../directories.js";
import { findForeignText, putForeignFile } from "../foreign-file.js";
import type { LaunchExtensions } from "./forced-extensions.js";
import type { Workspace } from "../workspace.js";

/**
 * There are more of these than a browser may have extensions, because the directory of one that failed to
 * load is not used again before a restart.
 */
const uploadRooms = 64;

/**
 * Extensions that a running browser is given are put into these directories. The directories' names are known
 * when it starts, and so are the extensions' ids.
 */
export const uploadDirectories = ({ extensions }: Pick<Directories, "extensions">): readonly string[] =>
  Array.from({ length: uploadRooms }, (_, at) => join(extensions, `uploaded-${at}`));

const mostManifestBytes = 2 ** 20;

/**
 * Chromium's id of an unpacked extension: by the key of its manifest or else by its path. Undefined where the
 * key is no base64.
 */
export async function findUnpackedId({
  path,
}: Pick<ExtensionDirectory, "path">): Promise<string | undefined> {
  const key = keyIn((await findForeignText(join(path, "manifest.json"), mostManifestBytes)) ?? "");
  if (key === undefined) return await idOfPath(path);
  return typeof key === "string" && isBase64.test(key) ? idOf(Buffer.from(key, "base64")) : undefined;
}

const isBase64 = /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * Where a manifest cannot be read, Chromium itself says what is wrong. Null where this parser fails, but
 * Chromium might find a key.
 */
function keyIn(text: string): unknown {
  try {
    return valuesOf(JSON.parse(text.replace(/^\uFEFF/, "")))["key"];
  } catch {
    return text.includes('"key"') ? null : undefined;
  }
}

const letters = "abcdefghijklmnop";
const idOf = (bytes: Buffer | string): string =>
  createHash("sha256")
    .update(bytes)
    .digest("hex")
    .slice(0, 32)
    .replaceAll(/./g, (digit) => letters[Number.parseInt(digit, 16)] ?? "");

/** Chromium resolves links before it makes an id of the path. */
const idOfPath = async (path: string): Promise<string> => idOf(await realpath(path));

/**
 * When a browser starts for the first time none of these directories is there; when it starts again they are
 * our own directories, not links.
 */
async function roomIdsOf(directories: Pick<Directories, "extensions">): Promise<string[]> {
  const extensions = await realpath(directories.extensions);
  return uploadDirectories({ extensions }).map(idOf);
}

/**
 * Chromium lets an unpacked extension read all files that it may read itself, whatever its manifest says,
 * unless its settings say otherwise before it is loaded; uninstalling forgets that (Chromium 156,
 * docs/chromium.md#extensions). Says so for those of a launch and for those that may come, and for all that
 * the profile knows, and gives their ids. Nothing of the browser may run.
 */
export async function closeFiles(
  { directories, uid }: Pick<Workspace, "directories" | "uid">,
  extensions: readonly LaunchExtensions[],
): Promise<Set<string>> {
  const rooms = await roomIdsOf(directories);
  const unpacked = await Promise.all(
    extensions.filter(({ forced }) => forced === undefined).map(findUnpackedId),
  );
  const ids = new Set([...rooms, ...unpacked.filter((id) => id !== undefined)]);
  const inner = join(directories.profile, "Default");
  if (
    !(await lstat(inner).then(
      (found) => found.isDirectory(),
      () => false,
    ))
  )
    await makeOwned(inner, uid);
  await Promise.all(
    ["Preferences", "Secure Preferences"].map((name) =>
      closeIn(join(inner, name), { uid, ids: name === "Preferences" ? ids : [] }),
    ),
  );
  return ids;
}

type PreferenceTree = Record<string, unknown>;
const valuesOf = (value: unknown): PreferenceTree => (isRecord(value) ? value : {});

/** Chromium's own file is far smaller. Where it cannot be read Chromium replaces it anyway, so ours may. */
const mostPreferencesBytes = 2 ** 25;

async function closeIn(
  path: string,
  { uid, ids }: { readonly uid: number | null; readonly ids: Iterable<string> },
): Promise<void> {
  const wanted = [...ids];
  const text = await findForeignText(path, mostPreferencesBytes);
  if (text === undefined && wanted.length === 0) return;
  const all = parsed(text);
  const extensions = valuesOf(all["extensions"]);
  const settings = valuesOf(extensions["settings"]);
  const known = Object.entries(settings).map(
    ([id, shown]) => [id, { ...valuesOf(shown), newAllowFileAccess: false }] as const,
  );
  // Nothing more is written of one that was loaded before, because Chromium would forget all of it at its
  // start (Chromium 156, docs/chromium.md#extensions).
  const closed = [...known, ...wanted.map((id) => [id, { newAllowFileAccess: false }] as const)];
  const beside = `${path}.closed`;
  await putForeignFile(
    beside,
    JSON.stringify({ ...all, extensions: { ...extensions, settings: Object.fromEntries(closed) } }),
    uid,
  );
  await rename(beside, path);
}

function parsed(text: string | undefined): PreferenceTree {
  try {
    const values: unknown = JSON.parse(text ?? "{}");
    return isTooDeep(values) ? {} : valuesOf(values);
  } catch {
    return {};
  }
}
