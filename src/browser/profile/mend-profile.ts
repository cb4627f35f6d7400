import { lstat, rename } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "../../base/is-record.js";
import type { ExtensionDirectory, KeptWorkspace } from "../chromium.js";
import { isTooDeep } from "../../base/json-depth.js";
import { removeDirectory } from "../directories.js";
import { findForeignText, putForeignFile } from "../foreign-file.js";

/** Chromium's own files are far smaller; one beyond this is not parsed. */
const mostBytes = 2 ** 25;

/**
 * Makes a user-data directory that was used before start as a new one does: without a bubble about a crash,
 * tabs of the last run, or locks. Of unpacked extensions only those in `kept` stay; the others were another
 * browser's, or came with an upload that was taken back.
 */
export async function mendProfile(
  { directories, uid }: Pick<KeptWorkspace, "directories" | "uid">,
  kept: readonly ExtensionDirectory[],
): Promise<void> {
  const { profile } = directories;
  const inner = join(profile, "Default");
  const passing = ["SingletonLock", "SingletonCookie", "SingletonSocket"].map((name) => join(profile, name));
  const isThere = await isDirectory(inner);
  const tabs = isThere ? ["Sessions", "Sessions_Encrypted"].map((name) => join(inner, name)) : [];
  await Promise.all([
    ...[...passing, ...tabs].map(removeDirectory),
    rewrite(join(profile, "Local State"), uid, mendLocalState),
    ...(isThere ? ["Preferences", "Secure Preferences"] : []).map((name) =>
      rewrite(join(inner, name), uid, (all) => mendPreferences(all, kept)),
    ),
  ]);
}

const isDirectory = (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

type ProfileValues = Record<string, unknown>;

/** Gives the object at the end of a path, and puts an empty one there where there is none. */
function within(values: ProfileValues, ...path: readonly string[]): ProfileValues {
  return path.reduce((at, name) => {
    const inner = at[name];
    const next = isRecord(inner) ? inner : {};
    at[name] = next;
    return next;
  }, values);
}

function mendLocalState(all: ProfileValues): void {
  within(all, "user_experience_metrics", "stability")["exited_cleanly"] = true;
  // Chromium's settings pages can make another profile and choose it.
  within(all, "profile")["last_used"] = "Default";
}

/**
 * `extensions::mojom::ManifestLocation`: unpacked, named by a switch, and installed by policy, which does so
 * again.
 */
const givenAnew: readonly unknown[] = [4, 8, 7];

function mendPreferences(all: ProfileValues, kept: readonly ExtensionDirectory[]): void {
  Object.assign(within(all, "profile"), { exit_type: "Normal", exited_cleanly: true });
  const paths = new Set(kept.map(({ path }) => path));
  const settings = within(all, "extensions", "settings");
  for (const [id, extension] of Object.entries(settings)) {
    if (!isRecord(extension)) continue;
    const isForeign = givenAnew.includes(extension["location"]) && !paths.has(`${extension["path"]}`);
    if (isForeign) delete settings[id];
  }
}

/** Chromium writes a new file itself where ours is none that it can read. */
async function rewrite(
  path: string,
  uid: number | null,
  change: (values: ProfileValues) => void,
): Promise<void> {
  const values = await findValues(path);
  if (values === undefined) return;
  change(values);
  const beside = `${path}.mended`;
  await putForeignFile(beside, JSON.stringify(values), uid);
  await rename(beside, path);
}

async function findValues(path: string): Promise<ProfileValues | undefined> {
  const text = await findForeignText(path, mostBytes);
  try {
    const values: unknown = JSON.parse(text ?? "null");
    return isRecord(values) && !isTooDeep(values) ? values : undefined;
  } catch {
    return undefined;
  }
}
