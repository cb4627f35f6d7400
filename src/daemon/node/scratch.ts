import { CannotStart } from "../../base/cannot-start.js";
import type { Clock } from "../../base/clock.js";
import { settledPath } from "../../base/files/paths.js";
import type { BrowserHost } from "../../browser/host.js";
import type { HoldDirectory } from "../../browser/resources/open-scratch.js";
import {
  findScratchDirectory,
  keepScratchDirectory,
  lockName,
  scratchDirectoriesOf,
} from "../../browser/resources/scratch.js";
import { sweepEarlier } from "../../browser/sweep.js";
import type { Config } from "../../config/config.js";
import { clashOfScratch } from "../../config/resolve.js";
import { holderOf, lockDirectory } from "../../store/private/directory-lock.js";

type DirectorySettings = Pick<Config, "dataDir"> & {
  readonly archives: Pick<Config["archives"], "directory">;
  readonly node: Pick<Config["node"], "scratchDir">;
};

/**
 * Clears the scratch directories of earlier starts first, so that what they left neither decides where this
 * one's is nor fills its disk.
 */
export async function findScratch(
  config: DirectorySettings,
  around: Pick<BrowserHost, "clock" | "log">,
): Promise<string> {
  const { node, dataDir } = config;
  if (node.scratchDir !== null) await checkPlace(node.scratchDir, config);
  await sweepEarlier(await scratchDirectoriesOf(dataDir), around, locking(around.clock));
  if (node.scratchDir !== null) return node.scratchDir;
  const path = await findScratchDirectory(dataDir);
  await checkPlace(path, config);
  return path;
}

/** The configuration was checked by names; a link may lead elsewhere. */
async function checkPlace(path: string, { dataDir, archives }: DirectorySettings): Promise<void> {
  const clash = clashOfScratch(await settledPath(path), {
    dataDir: await settledPath(dataDir),
    archives: { directory: await settledPath(archives.directory) },
  });
  if (clash !== undefined) throw new CannotStart(clash);
}

/** A second daemon would take the browsers of the first for leftovers. */
const locking =
  (clock: Clock): HoldDirectory =>
  async (path) => {
    const lock = await lockDirectory(path, clock, lockName);
    if (lock.kind === "locked") return lock.release;
    const held = `node.scratch_dir: ${path} is in use by ${holderOf(lock.pid)}`;
    throw new CannotStart(`${held}: stop that daemon, or name another directory`);
  };

/**
 * Holds the directory, and writes down where it is before anything is put there: a refused one is not swept
 * by a later start.
 */
export const holdScratch =
  ({ dataDir }: Pick<Config, "dataDir">, clock: Clock): HoldDirectory =>
  async (path) => {
    const release = await locking(clock)(path);
    try {
      await keepScratchDirectory(dataDir, path);
      return release;
    } catch (error) {
      await release();
      throw error;
    }
  };
