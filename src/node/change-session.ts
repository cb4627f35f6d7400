import type { LeaseId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { Viewport } from "../spec/bodies.js";
import type { RunningChange } from "../pool/ports/messages.js";
import type { AttachProfile } from "./attach-profile.js";
import type { NetworkSync } from "./network-sync.js";
import { succeeded, failed, type CommandResult } from "../gateway/relay/command-result.js";
import type { Slot } from "./slot.js";
import { runExclusively } from "./exclusive.js";

interface ChangeSessionPorts {
  readonly attachProfile: AttachProfile;
  readonly networkSync: Pick<NetworkSync, "prepare">;
  readonly log: Log;
}

/** What a PATCH asks of a running browser: all of it is in force, or it is as before. */
export class ChangeSession {
  constructor(private readonly ports: ChangeSessionPorts) {}

  /** What can be refused without a trace comes first, the profile's restart last. */
  change(slot: Slot, lease: LeaseId, { viewport, profile, network }: RunningChange): Promise<CommandResult> {
    return runExclusively(slot, lease, async () => {
      const isReady = !network || (await this.ports.networkSync.prepare(slot, lease, network));
      if (!isReady) return failed("The browser's node could not put this network in force", "conflict");
      const before = slot.viewport;
      if (viewport && !(await this.#resize(slot, viewport)))
        return failed("The browser could not take this viewport", "not_supported");
      const attached = profile
        ? await this.ports.attachProfile.attach(slot, { id: profile.id, isSaved: profile.save })
        : succeeded;
      if (!attached.isDone && viewport) await this.#resizeBack(slot, before);
      return attached;
    });
  }

  async #resize(slot: Slot, viewport: Viewport): Promise<boolean> {
    const before = slot.viewport;
    // The viewport is noted before it is changed, so that the reset puts it right where no answer comes.
    slot.viewport = viewport;
    try {
      await slot.chromium.resize(viewport);
      return true;
    } catch (error) {
      this.ports.log.info({ browser: slot.id, error: textOf(error) }, "viewport refused by the browser");
      // Some of it may have been done.
      await this.#resizeBack(slot, before);
      return false;
    }
  }

  async #resizeBack(slot: Slot, before: Viewport | undefined): Promise<void> {
    try {
      await slot.chromium.resize(before ?? slot.template.viewport);
      slot.viewport = before;
    } catch (error) {
      this.ports.log.warn({ browser: slot.id, error: textOf(error) }, "viewport left to the fence");
    }
  }
}
