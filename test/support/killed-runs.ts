import { existsSync, lstatSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isLiving } from "./living.js";

/** Where what takes much room lies, and everything else that tests keep. */
const memory = existsSync("/dev/shm") ? "/dev/shm" : "/tmp";
const parents = [...new Set([memory, tmpdir()])];

/** A directory whose name says which process has made it, so that it can be known for left over. */
const makeIn = (parent: string, name: string): string =>
  mkdtempSync(join(parent, `remuda-test-${name}${process.pid}-`));

/** A scratch directory that no other test has. */
export const newScratchDirectory = (): string => makeIn(memory, "");

/** A directory that no other test has; `name` says what for. */
export const newDirectory = (name: string): string => makeIn(tmpdir(), `${name}-`);

/** Which process has made a directory of that name. */
function makerOf(name: string): number | undefined {
  const [, pid] = /^remuda-test-(?:[a-z0-9]+-)*?(\d+)-[0-9A-Za-z]{6}$/.exec(name) ?? [];
  return pid === undefined ? undefined : Number(pid);
}

/** Those of other users are theirs to clear, but root clears what tests have made for another user. */
const isOurs = (path: string): boolean =>
  process.getuid?.() === 0 || lstatSync(path, { throwIfNoEntry: false })?.uid === process.getuid?.();

function findLeftovers(): readonly string[] {
  const isLeft = (name: string): boolean => {
    const pid = makerOf(name);
    return pid !== undefined && !isLiving(pid);
  };
  return parents
    .flatMap((parent) =>
      readdirSync(parent)
        .filter(isLeft)
        .map((name) => join(parent, name)),
    )
    .filter(isOurs);
}

/**
 * Clears what the processes of killed runs have left: directories, what is mounted in them, and the control
 * groups of their browsers. What a living process has made stays.
 */
export async function clearKilledRuns(): Promise<void> {
  const left = findLeftovers();
  if (left.length === 0) return;
  // Most runs find nothing, and need none of it.
  const [{ sweepEarlier }, { removeDirectory }, { unmountBelow }, { systemClock }, { silentLog }] =
    await Promise.all([
      import("../../src/browser/sweep.js"),
      import("../../src/browser/directories.js"),
      import("../../src/browser/resources/mounts.js"),
      import("../../src/base/clock.js"),
      import("./browser/chromium-host.js"),
    ]);
  await sweepEarlier(left, { clock: systemClock, log: silentLog });
  for (const path of left) await unmountBelow(path, () => true);
  // Tests make trees that are too deep for Node.js.
  for (const path of left) await removeDirectory(path);
}
