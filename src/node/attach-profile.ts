import { chown, mkdir, rename } from "node:fs/promises";
import type { ProfileId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { KeptWorkspace, StartDirectories } from "../browser/chromium.js";
import { removeDirectory, removeTree } from "../browser/directories.js";
import type { BrowserAssets } from "./browser-assets.js";
import { succeeded, failed, resultOfError, type CommandResult } from "../gateway/relay/command-result.js";
import type { Restarts } from "./restarts.js";
import type { Slot } from "./slot.js";

interface AttachProfilePorts {
  readonly assets: Pick<BrowserAssets, "profile">;
  readonly restarts: Restarts;
  readonly log: Log;
}

type Attached = NonNullable<Slot["profile"]>;

/**
 * Gives a running browser that has no profile the state of one: it restarts from it. Its record says before
 * that nobody else gets it.
 */
export class AttachProfile {
  constructor(private readonly ports: AttachProfilePorts) {}

  /** May only be called in the slot's turn. */
  async attach(slot: Slot, profile: Attached): Promise<CommandResult> {
    const had = slot.profile;
    // It was attached by a request whose answer was lost.
    if (had?.id === profile.id && had.isSaved === profile.isSaved) return succeeded;
    if (had) return failed("The browser has a profile already", "profile_loaded");
    try {
      await this.#restart(slot, profile.id);
    } catch (error) {
      this.ports.log.info(
        { browser: slot.id, profile: profile.id, error: textOf(error) },
        "profile not attached",
      );
      return resultOfError(error);
    }
    slot.profile = profile;
    return succeeded;
  }

  async #restart(slot: Slot, profile: ProfileId): Promise<void> {
    await this.ports.restarts.restart(slot, {
      why: "the browser restarts with a profile",
      fillWorkspace: (keptWorkspace) => async (room) => {
        await putAside(keptWorkspace);
        await this.#fill(profile, room);
        return keptWorkspace.extensions;
      },
      undo: putBack,
    });
    // Where it cannot be removed now, it goes with the browser.
    await removeTree(asideOf(slot.chromium)).catch(() => {});
  }

  async #fill(profile: ProfileId, room: StartDirectories): Promise<void> {
    const { directories, uid } = room;
    await mkdir(directories.profile, { mode: 0o700 });
    if (uid !== null) await chown(directories.profile, uid, uid);
    await this.ports.assets.profile(profile, room);
  }
}

/**
 * Where the old profile lies meanwhile. No process of the browser runs then, so nobody puts a link in its
 * place.
 */
const asideOf = ({ directories }: Pick<KeptWorkspace, "directories">): string =>
  `${directories.profile}-before`;

async function putAside(keptWorkspace: KeptWorkspace): Promise<void> {
  await removeDirectory(asideOf(keptWorkspace));
  await rename(keptWorkspace.directories.profile, asideOf(keptWorkspace));
}

async function putBack(keptWorkspace: KeptWorkspace): Promise<void> {
  const { profile } = keptWorkspace.directories;
  const isAside = await rename(asideOf(keptWorkspace), `${profile}-back`).then(
    () => true,
    () => false,
  );
  if (!isAside) return;
  await removeDirectory(profile);
  await rename(`${profile}-back`, profile);
}
