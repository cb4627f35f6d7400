import { lstat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Stops } from "../base/stops.js";
import type { LaunchSpec, KeptWorkspace } from "./chromium.js";
import {
  directoriesOf,
  emptyDirectory,
  makeDirectories,
  makeExtensionDirectory,
  makeOwned,
  newWorkspaceName,
  removeDirectory,
  removeRoot,
} from "./directories.js";
import type { BrowserHost } from "./host.js";

/**
 * What one browser has of the host for itself. It outlives the browser's processes where the browser is to be
 * started again.
 */
export type Workspace = Pick<KeptWorkspace, "directories" | "uid" | "occupy" | "vacate" | "discard">;

const stopLimitMs = 15_000;

/** This file tells people which session a directory belongs to; browsers do not see it. */
const sessionFile = "session";

/** Takes a uid and names the directories, which `makeWorkspace` makes. */
export function takeWorkspace({ clock, scratchDirectory, sizedScratch, uids }: BrowserHost): Workspace {
  const stops = new Stops(clock, stopLimitMs);
  const uid = uids?.take() ?? null;
  if (uid !== null) stops.add("uid", () => uids?.give(uid));
  const directories = directoriesOf(scratchDirectory, newWorkspaceName());
  stops.add("directories", () => removeRoot(directories.root, sizedScratch));
  const occupants: Stops[] = [];
  const vacate = async (): Promise<void> => {
    for (const occupant of occupants) await occupant.runAgain();
  };
  return {
    directories,
    uid,
    occupy: (occupant) => void occupants.push(occupant),
    vacate,
    // Whoever had the uid next could be reached by what still runs under it.
    discard: () => vacate().then(() => stops.runAgain()),
  };
}

export async function makeWorkspace(
  { directories, uid }: Workspace,
  { browser }: LaunchSpec,
  { sizedScratch }: BrowserHost,
): Promise<void> {
  await makeDirectories(directories, uid, sizedScratch);
  await writeFile(join(directories.root, sessionFile), `${browser}\n`, { mode: 0o600 });
}

/**
 * Makes what an ended browser has left ready for its next start. Its root belongs to the browser, which may
 * have replaced our entries there, with a link that we would write through, for instance.
 */
export async function repairWorkspace({ directories, uid }: Workspace): Promise<void> {
  const { root, extensions, authority: _, keys, ...inner } = directories;
  const { temporary } = directories;
  await Promise.all([removeDirectory(join(root, "policy")), ...Object.values(inner).map(checkDirectory)]);
  await emptyDirectory(temporary);
  await makeOwned(keys, uid);
  if (await isOurs(extensions)) return;
  await removeDirectory(extensions);
  await makeExtensionDirectory(directories);
}

async function checkDirectory(path: string): Promise<void> {
  if (!(await lstat(path)).isDirectory()) throw new Error(`${path} is no directory any more`);
}

async function isOurs(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && found.isDirectory() && found.uid === process.getuid?.();
}
