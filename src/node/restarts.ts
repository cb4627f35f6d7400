import type { Clock, Millis } from "../base/clock.js";
import { type Log, textOf } from "../base/log.js";
import type { KeptWorkspace } from "../browser/chromium.js";
import type { FillWorkspace } from "./browser-assets.js";
import type { Slot } from "./slot.js";
import type { Slots } from "./slots.js";

interface RestartPorts {
  readonly slots: Slots;
  readonly clock: Clock;
  readonly log: Log;
}

/** What a restart changes. */
interface RestartChange {
  /** Clients read this as the reason of their sockets' close, so it has at most 123 bytes. */
  readonly why: string;
  /** Puts it in place and says which extensions are loaded then. */
  fillWorkspace(keptWorkspace: KeptWorkspace): FillWorkspace;
  /** Takes the change away again. */
  undo(keptWorkspace: KeptWorkspace): Promise<void>;
}

/** Chromium that takes longer to write its state hangs, and is killed. */
const stopLimitMs: Millis = 10_000;
/** It is asked for its cookies twice, and the second time counts. */
const cookiesLimitMs: Millis = 2_000;

/**
 * Restarts Chromium inside a session: its id and URL, its lease, its egress and its directories stay. Clients
 * are told why they are cut and may come back at once, since upgrades wait for the new Chromium. Where the
 * change keeps it from starting, it is started once more as it was; where that fails too, the browser is
 * over.
 */
export class Restarts {
  constructor(private readonly ports: RestartPorts) {}

  /**
   * May only be called in the slot's turn. Throws where the change is not in force; the browser is then as
   * before except for its pages, or over. Where its disk has no room for its cookies it has lost nothing.
   */
  async restart(slot: Slot, change: RestartChange): Promise<void> {
    const { clock, log } = this.ports;
    const startedAt = clock.monotonic();
    slot.ending.throwIfAborted();
    await slot.chromium.keepCookies(cookiesLimitMs);
    slot.flight.state("restarting");
    const over = slot.restartBegins();
    try {
      slot.ending.throwIfAborted();
      const keptWorkspace = await this.#stop(slot, change.why);
      await this.#startChanged(slot, keptWorkspace, change);
      await this.#restoreViewport(slot);
      slot.flight.state("restarted");
      log.info(
        { browser: slot.id, why: change.why, tookMs: Math.round(clock.monotonic() - startedAt) },
        "browser restarted in its session",
      );
    } finally {
      over();
    }
  }

  async #stop(slot: Slot, why: string): Promise<KeptWorkspace> {
    const { log } = this.ports;
    // Their sockets are closed at once; Chromium forgets them with the rest.
    const interrupted = slot.activity.interrupt(why);
    slot.bridge.close();
    await interrupted;
    const stopping = slot.stopAndKeep(stopLimitMs, slot.restartHalt.signal);
    const keptWorkspace = await stopping.catch((error: unknown) => {
      this.#over(slot, `it did not stop for its restart: ${textOf(error)}`);
      throw error;
    });
    if (!keptWorkspace.isWhole) log.warn({ browser: slot.id }, "browser killed for its restart");
    return keptWorkspace;
  }

  async #startChanged(slot: Slot, keptWorkspace: KeptWorkspace, change: RestartChange): Promise<void> {
    const { log } = this.ports;
    try {
      await this.#runAgain(slot, keptWorkspace, change.fillWorkspace(keptWorkspace));
    } catch (error) {
      if (slot.isEnding) throw error;
      slot.flight.state("restart_failed");
      log.warn(
        { browser: slot.id, error: textOf(error) },
        "restart failed; the browser is started as it was",
      );
      await this.#startAsBefore(slot, keptWorkspace, change);
      throw error;
    }
  }

  async #startAsBefore(slot: Slot, keptWorkspace: KeptWorkspace, change: RestartChange): Promise<void> {
    try {
      await change.undo(keptWorkspace);
      await this.#runAgain(slot, keptWorkspace, async () => keptWorkspace.extensions);
      await this.#restoreViewport(slot);
    } catch (error) {
      this.#over(slot, `it could not be started again: ${textOf(error)}`);
      throw error;
    }
  }

  async #runAgain(slot: Slot, ...how: [KeptWorkspace, FillWorkspace]): Promise<void> {
    await this.ports.slots.runAgain(slot, ...how);
    await slot.telemetry.inForce;
  }

  /** Gives it the viewport that it had; it could take that before the restart. */
  async #restoreViewport(slot: Slot): Promise<void> {
    if (!slot.viewport) return;
    await slot.chromium.resize(slot.viewport).catch((error: unknown) => {
      this.#over(slot, `it did not take its viewport after a restart: ${textOf(error)}`);
      throw error;
    });
  }

  /** Nobody waits for it, because the end of the browser waits for this turn. */
  #over(slot: Slot, text: string): void {
    if (!slot.isEnding) this.ports.slots.crashed(slot, text, "gave_up");
  }
}

/** RFC 6455 leaves 123 bytes for it. */
export const closeReason = (text: string): string => text.replaceAll(/[^ -~]/g, "?").slice(0, 123);
