import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { Stops } from "../base/stops.js";
import type { ExtensionDirectory, LaunchSpec, Left } from "./chromium.js";
import { directoriesOf, emptyDirectory, makeDirectories, makeExtensionDirectory, removeDirectory } from "./directories.js";
import type { Host } from "./host.js";
import { mendProfile } from "./mend-profile.js";

/** What of the host is one browser's own. It outlives the browser's processes where the browser is to be started again. */
export type Home = Pick<Left, "directories" | "uid" | "discard">;

const stopLimitMs = 15_000;

/** Takes a uid and names the directories, which `makeHome` makes. */
export function takeHome({ browser }: LaunchSpec, { clock, scratchDirectory, uids }: Host): Home {
  const stops = new Stops(clock, stopLimitMs);
  const uid = uids?.take() ?? null;
  if (uid !== null) stops.add("uid", () => uids?.give(uid));
  const directories = directoriesOf(scratchDirectory, browser);
  stops.add("directories", () => removeDirectory(directories.root));
  return { directories, uid, discard: () => stops.run() };
}

export const makeHome = ({ directories, uid }: Home): Promise<void> => makeDirectories(directories, uid);

/**
 * Makes what an ended browser has left ready for its next start. Its root belongs to the browser, which may have put
 * something else in the place of what is ours there, such as a link that we would write through.
 */
export async function mendHome({ directories }: Home): Promise<void> {
  const { root, extensions, profile, temporary } = directories;
  await Promise.all([rm(join(root, "policy"), { recursive: true, force: true }), checkDirectory(profile), checkDirectory(temporary)]);
  if (await isOurs(extensions)) return await emptyDirectory(temporary);
  await rm(extensions, { recursive: true, force: true });
  await makeExtensionDirectory(directories);
  await emptyDirectory(temporary);
}

/** Puts into them what the browser starts from, and says which extensions it gets. */
export async function furnishHome(spec: LaunchSpec, home: Home, signal: AbortSignal): Promise<readonly ExtensionDirectory[]> {
  const { directories, uid } = home;
  const extensions = await spec.furnish?.({ directories, uid, signal }) ?? [];
  await mendProfile(home, extensions);
  return extensions;
}

async function checkDirectory(path: string): Promise<void> {
  if (!(await lstat(path)).isDirectory()) throw new Error(`${path} is no directory any more`);
}

async function isOurs(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && found.isDirectory() && found.uid === process.getuid?.();
}

