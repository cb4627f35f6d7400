import PQueue from "p-queue";
import type { Clock, Millis } from "../base/clock.js";
import { abortWith, within } from "../base/deadline.js";
import type { BrowserId } from "../base/ids.js";
import { textOf } from "../base/log.js";
import type { Chromium, LaunchSpec, KeptWorkspace } from "../browser/chromium.js";
import type { Browser } from "../pool/browser.js";
import { memoryBytes } from "../spec/bodies.js";
import type { OpenLaunch } from "../browser/launch.js";
import { LaunchFailed, type LaunchStage } from "../browser/launch-attempt.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import type { FillWorkspace } from "./browser-assets.js";
import type { BrowserEgress } from "./browser-egress.js";
import type { FlightRecorder } from "../telemetry/flight/flight-recorder.js";
import type { Slot } from "./slot.js";

interface StartOptions {
  readonly signal: AbortSignal;
  readonly onStage: (stage: LaunchStage) => void;
  /** The workspace to start in again; where that fails it stays ours. */
  readonly adopt?: KeptWorkspace;
}

/** A browser's first start. */
export interface FirstStart {
  readonly template: LaunchTemplate;
  /** It ends with its first holder. */
  readonly isForOne: boolean;
  readonly signal: AbortSignal;
  readonly flight: FlightRecorder;
}

export interface LauncherPorts {
  /** Throws, with a text for people, where the browser cannot be let out. */
  openBrowserEgress(browser: BrowserId, template: LaunchTemplate): Promise<BrowserEgress>;
  /** Makes the browser's directories, which are filled before it is started. */
  openLaunch(spec: LaunchSpec, options: StartOptions): Promise<OpenLaunch>;
  /** What fills the workspace of a browser of this configuration; undefined where nothing has to. */
  fillWorkspaceOf(template: LaunchTemplate): FillWorkspace | undefined;
  readonly parallelLaunches: number;
  /** A launch that takes longer, its turn included, has failed; what becomes of it is ended when it comes. */
  readonly launchLimitMs: Millis;
  readonly clock: Clock;
}

/** Somebody waits for a restart; a launch is for later. */
const restartPriority = 1;

/** Starts Chromium, no more at once than this node may. */
export class Launcher {
  readonly #queue: PQueue;

  constructor(private readonly ports: LauncherPorts) {
    this.#queue = new PQueue({ concurrency: ports.parallelLaunches });
  }

  /**
   * Opens the browser's egress and starts the browser. Where it throws, nothing of either is left; a launch
   * that comes too late is ended when it comes.
   */
  async first(id: BrowserId, first: FirstStart): Promise<{ chromium: Chromium; egress: BrowserEgress }> {
    const { clock, launchLimitMs: limitMs } = this.ports;
    const late = new AbortController();
    const launch = this.#first(id, { ...first, signal: AbortSignal.any([first.signal, late.signal]) });
    try {
      return await within(clock, { what: "the launch", limitMs }, launch);
    } catch (error) {
      late.abort(error);
      void launch
        .then(({ chromium, egress }) => chromium.kill().finally(() => egress.close()))
        .catch(() => {});
      throw error;
    }
  }

  #first(
    id: BrowserId,
    { template, isForOne, signal, flight }: FirstStart,
  ): Promise<{ chromium: Chromium; egress: BrowserEgress }> {
    return this.#inTurn({ priority: 0, flight }, async (onStage) => {
      signal.throwIfAborted();
      const egress = await this.ports.openBrowserEgress(id, template);
      try {
        signal.throwIfAborted();
        const start = template.start_url === undefined ? {} : { startUrl: template.start_url };
        const spec = { ...specOf(id, { template, egress, isForOne }), ...start };
        const launch = await this.ports.openLaunch(spec, { signal, onStage });
        const filling = this.ports.fillWorkspaceOf(template)?.(launch.room);
        return { chromium: await launch.start(filling), egress };
      } catch (error) {
        await egress.close();
        throw error;
      }
    });
  }

  /**
   * Starts a browser of this node again, in the workspace it has kept and behind the same egress. The
   * browser's end gives that up before Chromium is spawned. Later `restartHalt` does: what Chromium has
   * written by then is whole only when it has come up and ended in order.
   */
  again(slot: Slot, adopt: KeptWorkspace, fillWorkspace: FillWorkspace): Promise<Chromium> {
    const { id, flight } = slot;
    return this.#inTurn({ priority: restartPriority, flight }, async (toldStage) => {
      const halt = new AbortController();
      let unfollow = abortWith(halt, [slot.ending]);
      const onStage = (stage: LaunchStage): void => {
        toldStage(stage);
        if (stage !== "spawn") return;
        unfollow();
        unfollow = abortWith(halt, [slot.restartHalt.signal]);
        slot.startsAgain();
      };
      try {
        halt.signal.throwIfAborted();
        const spec = specOf(id, slot);
        const launch = await this.ports.openLaunch(spec, { signal: halt.signal, onStage, adopt });
        return await launch.start(fillWorkspace(launch.room));
      } finally {
        unfollow();
      }
    });
  }

  /**
   * A launch holds its place in the queue until Chromium has answered: what follows waits more than it works.
   * The queue is not given the signal: it would settle before the launch has cleared up after itself.
   */
  #inTurn<Result>(
    { priority, flight }: { readonly priority: number; readonly flight: FlightRecorder },
    start: (onStage: StartOptions["onStage"]) => Promise<Result>,
  ): Promise<Result> {
    return new Promise((resolve, reject) => {
      const turn = (): Promise<void> =>
        new Promise((free) => {
          // A launch that hangs keeps no other from its turn.
          const cancel = this.ports.clock.after(this.ports.launchLimitMs, free);
          const onStage = (stage: LaunchStage): void => {
            flight.state(`launch_${stage}`);
            if (stage === "answer") free();
          };
          start(onStage)
            .then(resolve, reject)
            .finally(() => {
              cancel();
              free();
            });
        });
      this.#queue.add(turn, { priority }).catch(reject);
    });
  }
}

interface AdmissionLimits {
  readonly maxBrowsers: number;
  readonly maxBytes: number;
}

interface AdmittedLaunch {
  readonly bytes: number;
  readonly standsBy: boolean;
}

/** Whether this node has room for another browser (docs/deployment.md#capacity). */
export class LaunchAdmission {
  /** The launches that were admitted and are under way. */
  readonly #launching = new Map<BrowserId, AdmittedLaunch>();

  constructor(private readonly limits: AdmissionLimits) {}

  /**
   * An empty node admits one of any class. What stands by counts for what is to stand by alone: it ends where
   * another has its room, as soon as this node hears of that.
   */
  admits({ id, standby }: Browser, { memory }: LaunchTemplate, slots: readonly Slot[]): boolean {
    const asking = { bytes: memoryBytes(memory), standsBy: standby !== undefined };
    const all = new Map<BrowserId, AdmittedLaunch>(this.#launching);
    for (const slot of slots)
      all.set(slot.id, { bytes: memoryBytes(slot.template.memory), standsBy: slot.standsBy });
    const held = [...all.values()].filter((one) => asking.standsBy || !one.standsBy);
    const heldBytes = held.reduce((sum, one) => sum + one.bytes, 0);
    const { maxBrowsers, maxBytes } = this.limits;
    const fits = held.length === 0 || (held.length < maxBrowsers && heldBytes + asking.bytes <= maxBytes);
    if (fits) this.#launching.set(id, asking);
    return fits;
  }

  /** The launch is over, and the browser has a slot or is gone. */
  forget(id: BrowserId): void {
    this.#launching.delete(id);
  }
}

const specOf = (
  browser: BrowserId,
  { template, egress, isForOne }: Pick<Slot, "template" | "egress" | "isForOne">,
): LaunchSpec => ({
  browser,
  egress: egress.spec,
  ...(isForOne && { isForOne }),
  engine: template.engine,
  headless: template.headless,
  stealth: template.stealth,
  kioskMode: template.kiosk_mode,
  viewport: { width: template.viewport.width, height: template.viewport.height },
  memoryBytes: memoryBytes(template.memory),
  ...(template.browser_policy && { policy: template.browser_policy }),
});

/** The error with the last lines Chromium wrote, for the pool object; at most 1000 characters. */
export function failureText(error: unknown): string {
  const lines = error instanceof LaunchFailed ? error.lastLines : [];
  return [textOf(error), ...lines].join("\n").slice(0, 1000);
}
