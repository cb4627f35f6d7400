import { randomBytes } from "node:crypto";
import { chmod, chown, mkdir, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { directoriesOf } from "../../../src/browser/directories.js";
import { workspaceOf } from "../../support/browser/browser-processes.js";
import { type Daemon, startDaemon, type Tier } from "./daemon.js";
import type { TestMachine } from "./browser-source.js";
import { isRoot, pidInside } from "./programs.js";
import { plantIn, plantVictims } from "./victims.js";

/** A machine with its daemon, and how both are ended. */
export interface OpenMachine extends TestMachine {
  readonly daemon: Daemon;
  readonly tier: Tier;
  close(): Promise<void>;
}

/**
 * Starts a daemon of the tier, with a browser that others shall not reach, beside everything else that can be
 * stolen.
 */
export async function openGround(tier: Tier): Promise<OpenMachine> {
  const daemon = await startDaemon(tier);
  const closing = [() => daemon.close()];
  const close = async (): Promise<void> => {
    for (const stop of closing.splice(0).toReversed()) await stop();
  };
  try {
    // Apart from the daemon's place, which a browser may see parts of by its own paths.
    const directory = join(daemon.directory, "open");
    await mkdir(directory);
    await chmod(directory, 0o777);
    if (isRoot) await chown(directory, daemon.uid, daemon.uid);
    const victims = await plantVictims(daemon.uid, directory);
    closing.push(() => victims.close());
    const inside = await pidInside(daemon.pid);
    const neighbour = await plantNeighbour(daemon);
    const targets = [
      ...victims.targets,
      ...daemon.targets,
      neighbour.target,
      { what: "the daemon's environment", path: `/proc/${inside}/environ`, words: daemon.words },
      {
        what: "the environment of another process",
        path: `/proc/${victims.pid}/environ`,
        words: wordsOf(victims.words, "environment"),
      },
      {
        what: "the command line of another process",
        path: `/proc/${victims.pid}/cmdline`,
        words: wordsOf(victims.words, "argv"),
      },
    ];
    return {
      daemon,
      tier,
      victims,
      targets,
      directory,
      close,
      uid: daemon.uid,
      daemonPid: daemon.pid,
      daemonPidInside: inside,
      sockets: daemon.sockets,
      display: neighbour.display,
      port: daemon.port,
      log: () => daemon.log(),
      scratchDirectory: daemon.scratchDirectory,
      words: new Map([...victims.words, ...targets.map(({ what, words }) => [words, what] as const)]),
      seen: (path) => (tier.context ? `/proc/${daemon.pid}/root${path}` : path),
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const wordsOf = (words: ReadonlyMap<string, string>, kind: string): string =>
  [...words.keys()].find((each) => each.endsWith(`-${kind}`)) ?? kind;

/** A browser beside, with windows, and with something in its profile that belongs to its holder. */
async function plantNeighbour(
  daemon: Daemon,
): Promise<{ target: TestMachine["targets"][number]; display: TestMachine["display"] }> {
  const asked = { headless: false, viewport: { width: 800, height: 600 }, timeout_seconds: 3600 };
  const { session_id } = await daemon.call("POST /browsers", asked);
  const words = `words-${randomBytes(8).toString("hex")}-neighbour`;
  const { display, authority, profile } = directoriesOf(
    daemon.scratchDirectory,
    basename(workspaceOf(daemon.scratchDirectory, String(session_id))),
  );
  const path = await plantIn(profile, words);
  const [socket] = await readdir(display);
  if (socket === undefined) throw new Error("the browser beside has no display of its own");
  return {
    target: { what: "the profile of another browser", path, words },
    display: { socket: join(display, socket), authority },
  };
}
