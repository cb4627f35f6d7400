import type { Readable } from "node:stream";
import PQueue from "p-queue";
import { abortWith } from "../base/deadline.js";
import type { Clock, Millis } from "../base/clock.js";
import type { ProfileId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import type { KeptWorkspace } from "../browser/chromium.js";
import type { RetireReason } from "../pool/browser.js";
import type { ProfileArchives } from "../registry/profiles/profile.js";
import type { Slot } from "./slot.js";

/**
 * `missing`: the profile was deleted; `broken`: Chromium did not come to its own end, so its state may be
 * half written.
 */
export type SaveOutcome = "saved" | "missing" | "broken" | "failed";

interface ProfileSaverPorts {
  readonly profiles: Pick<ProfileArchives, "save">;
  /** The tar of what a browser has left; fails where it is more than a profile may be. */
  pack(keptWorkspace: KeptWorkspace): Readable;
  /** The profile has another state now: browsers that were started from the last one are old. */
  saved(profile: ProfileId): Promise<void>;
  readonly meter: { profileSaved(outcome: SaveOutcome): void };
  readonly clock: Clock;
  readonly log: Log;
  /** The limit of a save, which includes Chromium's own exit. */
  readonly limitMs: Millis;
  /** The limit that counts from when this node stops. */
  readonly hurriedMs: Millis;
  /** Aborts when nobody waits any more: saves are given up. */
  readonly hurry: AbortSignal;
  /** Each save packs and encrypts as fast as one core can. */
  readonly parallelSaves: number;
}

/** Chromium that takes longer to write its state hangs. */
const exitLimitMs: Millis = 10_000;

/** Ends that leave a state which nobody decided to keep. */
const disorderly: ReadonlySet<RetireReason> = new Set([
  "crashed",
  "unhealthy",
  "launch_failed",
  "reset_failed",
  "not_clean",
  "node_lost",
  "memory_exceeded",
  "storage_exceeded",
  "missing",
]);
export const isOrderly = (why: RetireReason | undefined): boolean =>
  why !== undefined && !disorderly.has(why);

/** Ends browsers whose state is to be kept, and keeps it. */
export class ProfileSaver {
  readonly #late = new AbortController();
  readonly #queue: PQueue;
  #latest: Millis | undefined;

  constructor(private readonly ports: ProfileSaverPorts) {
    this.#queue = new PQueue({ concurrency: ports.parallelSaves });
  }

  /** What gives up the saves that are under way, and those that still come. */
  get givenUp(): readonly AbortSignal[] {
    return [this.#late.signal, this.ports.hurry];
  }

  /**
   * Gives the saves that are under way, and those that still come, so long from now; the returned function
   * calls that off.
   */
  hurry(): () => void {
    const { clock, hurriedMs } = this.ports;
    this.#latest ??= clock.monotonic() + hurriedMs;
    return clock.after(hurriedMs, () => this.#late.abort(new Error("the node stops")));
  }

  /**
   * Ends the browser and makes its state the profile's; where that fails the profile is as it was. Rejects
   * only where something of the browser is left.
   */
  async save(slot: Slot, profile: ProfileId): Promise<void> {
    const { clock, log, meter } = this.ports;
    const startedAt = clock.monotonic();
    const late = new AbortController();
    const cancel = clock.after(this.ports.limitMs, () =>
      late.abort(new Error(`it took longer than ${this.ports.limitMs} ms`)),
    );
    const unfollow = abortWith(late, this.givenUp);
    try {
      const outcome = await this.#keep(slot, profile, late.signal);
      meter.profileSaved(outcome);
      log.info(
        { browser: slot.id, profile, outcome, tookMs: Math.round(clock.monotonic() - startedAt) },
        "profile save ended",
      );
    } catch (error) {
      meter.profileSaved("failed");
      log.warn({ browser: slot.id, profile, error: textOf(error) }, "profile not saved; it is as it was");
    } finally {
      cancel();
      unfollow();
      await this.#clear(slot);
    }
  }

  async #keep(slot: Slot, profile: ProfileId, signal: AbortSignal): Promise<SaveOutcome> {
    signal.throwIfAborted();
    const keptWorkspace = slot.keptWorkspace ?? (await slot.stopAndKeep(this.#stopMs(), signal));
    if (!keptWorkspace.isWhole) return "broken";
    signal.throwIfAborted();
    // A save that waits for Redis has nothing to pack any more, and gives its place to the next.
    const { saving } = await this.#queue.add(async () => {
      signal.throwIfAborted();
      return await this.#pack(keptWorkspace, profile, signal);
    });
    if ((await saving) !== "committed") return "missing";
    await this.#announce(profile);
    return "saved";
  }

  /** Resolves once the state is packed; the save goes on. */
  async #pack(
    keptWorkspace: KeptWorkspace,
    profile: ProfileId,
    signal: AbortSignal,
  ): Promise<{ readonly saving: ReturnType<ProfileArchives["save"]> }> {
    const { profiles, pack } = this.ports;
    let packed = (): void => {};
    const isPacked = new Promise<void>((resolve) => (packed = resolve));
    const saving = profiles.save(profile, pack(keptWorkspace), { signal, packed });
    await Promise.race([isPacked, saving]);
    return { saving };
  }

  /** At least half of the time is left for the rest of the save. */
  #stopMs(): Millis {
    const { clock, limitMs } = this.ports;
    const untilLate = this.#latest === undefined ? limitMs : Math.max(0, this.#latest - clock.monotonic());
    return Math.min(exitLimitMs, limitMs / 2, untilLate / 2);
  }

  async #announce(profile: ProfileId): Promise<void> {
    await this.ports.saved(profile).catch((error: unknown) => {
      this.ports.log.warn(
        { profile, error: textOf(error) },
        "browsers of the profile's last state were not replaced",
      );
    });
  }

  async #clear(slot: Slot): Promise<void> {
    await (slot.keptWorkspace ? slot.keptWorkspace.discard() : slot.chromium.kill());
  }
}
