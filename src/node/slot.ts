import type { Clock, Millis } from "../base/clock.js";
import { type BrowserId, partitionOf, isOnDemand, type LeaseId, type ProfileId } from "../base/ids.js";
import type { Chromium, Exit, KeptWorkspace } from "../browser/chromium.js";
import type { Lease, LeasedBrowser, NetworkSettings, RetireReason } from "../pool/browser.js";
import type { Viewport } from "../spec/bodies.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import type { UploadedExtension } from "../pool/ports/messages.js";
import { Activity } from "../gateway/activity.js";
import type { Bridge } from "../gateway/cdp/bridge.js";
import type { BrowserEgress } from "./browser-egress.js";
import type { ClientObserver, LocalBrowser } from "../gateway/ports.js";
import type { FlightRecorder } from "../telemetry/flight/flight-recorder.js";
import type { BrowserTelemetry } from "../telemetry/browser-telemetry.js";
import { Connections } from "../telemetry/connections.js";
import { lookForLastOomKills, passOverOomKills, tellOomKills } from "./system-events.js";
import { LeaseUsageCount } from "./usage/lease-usage.js";

interface SlotParts {
  readonly template: LaunchTemplate;
  readonly egress: BrowserEgress;
  readonly clock: Clock;
  readonly flight: FlightRecorder;
  /** Launched to stand by for a session on demand. */
  readonly standsBy: boolean;
  /** Launched for its first holder alone. */
  readonly isForOne: boolean;
  makeTelemetry(parts: TelemetryParts): BrowserTelemetry;
}

/** What the telemetry of one browser is made from. */
export interface TelemetryParts {
  readonly browser: BrowserId;
  readonly template: LaunchTemplate;
  readonly flight: FlightRecorder;
  /** What runs now; a restart puts another pair in its place. */
  running(): BridgedChromium;
  isRestarting(): boolean;
  /** Whether a client is connected. */
  hasClients(): boolean;
}

/** What a lease's record says of its telemetry. */
interface LeaseCapture {
  readonly telemetry?: Lease["telemetry"] | undefined;
  readonly telemetryRevision?: Lease["telemetryRevision"] | undefined;
  readonly trace?: Lease["trace"] | undefined;
}

/** One Chromium and the clients on it; a restart puts another pair in its place. */
export interface BridgedChromium {
  readonly chromium: Chromium;
  readonly bridge: Bridge;
}

/**
 * A browser of this node, from its first answer to its end. It is *running*; *restarting*, from when its
 * Chromium is asked to stop until another has taken its place; or *ending*, once and for all.
 */
export class Slot implements LocalBrowser {
  readonly id: BrowserId;
  readonly template: LaunchTemplate;
  readonly egress: BrowserEgress;
  readonly bornAtMs: Millis;
  readonly activity: Activity;
  readonly leaseUsage: LeaseUsageCount;
  readonly telemetry: BrowserTelemetry;
  clientObserver: ClientObserver | undefined;
  readonly flight: FlightRecorder;
  readonly isForOne: boolean;
  readonly #standsBy: boolean;
  readonly #ending = new AbortController();
  /** Halts a restart whose Chromium was spawned: at the browser's end, or when that can save no longer. */
  readonly restartHalt = new AbortController();
  #work: Promise<unknown> = Promise.resolve();
  #restarting: Promise<void> | undefined;
  /** The network change of a lease that is in force; without one it is the launch's own network. */
  network:
    | { readonly lease: LeaseId; readonly revision: number; readonly settings: NetworkSettings }
    | undefined;
  /** The lease whose start page was dispatched last. */
  started?: { readonly lease: LeaseId; readonly dispatched: Promise<void> };
  /** What a PATCH has made of the viewport: a restart keeps it, the fence puts the launch's back. */
  viewport: Viewport | undefined;
  /**
   * A lease that its record forgot and that has used it: what that has left is still to be settled
   * (lease-handover.ts).
   */
  unknownLease: LeaseId | undefined;
  /** The record as this node has read it last while somebody held the browser. */
  record: LeasedBrowser | undefined;
  /** What holders have given it and it has, in load order. */
  uploads: readonly UploadedExtension[] = [];
  /** What it was started from, and whether its orderly end is saved there. */
  profile: { readonly id: ProfileId; readonly isSaved: boolean } | undefined;
  /** The Chromium that a restart has asked to stop: its exit is no crash. */
  stopping: Chromium | undefined;
  /** The workspace of the last Chromium, while there is no other. */
  keptWorkspace: KeptWorkspace | undefined;
  /** Counts processes of its Chromium that the kernel has killed for want of memory; see system-events.ts. */
  oomKills = 0;
  awaitedOomKills = 0;
  /** Why it is over, as far as that is known here. */
  why: RetireReason | undefined;
  /** The browser's end, of which there is only one. */
  ended: Promise<void> | undefined;

  constructor(
    private running: BridgedChromium,
    { template, egress, clock, makeTelemetry, flight, standsBy, isForOne }: SlotParts,
  ) {
    this.id = running.chromium.id;
    this.template = template;
    this.egress = egress;
    this.bornAtMs = clock.monotonic();
    const hasNoPool = isOnDemand(partitionOf(this.id));
    this.#standsBy = standsBy;
    this.isForOne = isForOne;
    const leaseUsage = new LeaseUsageCount(() => egress.used(), hasNoPool && !standsBy);
    this.leaseUsage = leaseUsage;
    const telemetry = makeTelemetry({
      browser: this.id,
      template,
      flight,
      running: () => this.running,
      isRestarting: () => this.#restarting !== undefined,
      hasClients: () => this.activity.hasClients,
    });
    this.telemetry = telemetry;
    const connections = new Connections(clock);
    telemetry.watch((capture) => (this.clientObserver = connections.follow(capture)));
    this.flight = flight;
    this.activity = new Activity(
      clock,
      (lease) => {
        leaseUsage.begin(lease);
        flight.begins(lease);
        passOverOomKills(this);
      },
      async (lease) => {
        flight.ends(lease);
        await lookForLastOomKills(this);
        await telemetry.over(lease);
      },
    );
    const { profile_id: id, profile } = template;
    // Browsers of pools never save (docs/extensions-and-profiles.md#profiles).
    if (id !== undefined) this.profile = { id, isSaved: hasNoPool && profile?.save_changes === true };
  }

  /** Nobody has had it, as far as this node knows, and it gives way to whatever is launched here. */
  get standsBy(): boolean {
    return this.#standsBy && this.leaseUsage.total === undefined;
  }

  /** Includes the instant at which the browser was proved to be held by its egress. */
  get isolationText(): string {
    const { isolation, attestation } = this.chromium;
    return JSON.stringify({ ...isolation, ...(attestation && { attested: attestation.at }) });
  }

  get chromium(): Chromium {
    return this.running.chromium;
  }

  get bridge(): Bridge {
    return this.running.bridge;
  }

  /** Notes another Chromium of the same browser. */
  runs(running: BridgedChromium): void {
    this.running = running;
    this.keptWorkspace = undefined;
    this.oomKills = 0;
    this.awaitedOomKills = 0;
    this.telemetry.restarted();
  }

  /** Notes that its Chromium has ended by itself, and of what. */
  exited(exit: Exit): void {
    this.flight.exited(exit);
    tellOomKills(this, exit.memory);
  }

  /**
   * Captures what the lease that holds it wants; one that is over wants nothing. The result settles when that
   * is in force on its pages, or after a limit; undefined where nothing is captured of pages.
   */
  captures(
    lease: LeaseId,
    { telemetry, telemetryRevision: revision = 0, trace }: LeaseCapture,
  ): Promise<void> | undefined {
    if (this.activity.lease !== lease) return undefined;
    this.telemetry.told(lease, { revision, telemetry, trace });
    return this.telemetry.inForce;
  }

  /** Asks its Chromium to stop. Where it throws, that has to be killed. */
  async stopAndKeep(...how: Parameters<Chromium["stopAndKeep"]>): Promise<KeptWorkspace> {
    const { chromium } = this;
    this.stopping = chromium;
    // Another Chromium's cgroup counts from nothing.
    await lookForLastOomKills(this);
    this.keptWorkspace = await chromium.stopAndKeep(...how);
    return this.keptWorkspace;
  }

  /**
   * Whether what is lent here may live longer than a drain of that limit, or has a profile that is saved at
   * its end, also while that is under way.
   */
  mayOutlast(drainLimitMs: Millis): boolean {
    const { lease } = this.activity;
    if (this.profile?.isSaved && (lease !== undefined || this.isEnding)) return true;
    const held = this.record?.lease;
    return lease !== undefined && held?.id === lease && held.timeoutSeconds * 1000 > drainLimitMs;
  }

  /** Whether its end was decided here; its exit is then no crash. */
  get isEnding(): boolean {
    return this.#ending.signal.aborted;
  }

  /** Aborts when the browser's end is decided. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** Decides the browser's end; of several decisions the first counts. */
  endBegins(why?: RetireReason, { saves } = { saves: false }): void {
    this.why ??= why;
    if (this.isEnding) return;
    this.#ending.abort(new Error("the browser is over"));
    if (!saves || !this.profile?.isSaved) this.restartHalt.abort();
  }

  /** Notes that a Chromium starts in the kept workspace: it may leave a half-written state there. */
  startsAgain(): void {
    if (this.keptWorkspace) this.keptWorkspace = { ...this.keptWorkspace, isWhole: false };
  }

  /** Cuts whoever uses it. Resolves when nobody does, and nothing is at work on it any more. */
  async comeToRest(): Promise<void> {
    const reason = this.why ?? "the browser is over";
    const leases = this.activity.rivalsOf(undefined);
    await Promise.allSettled(leases.map((lease) => this.activity.cutLease(lease, reason)));
    await this.runExclusive();
  }

  /** Restores the viewport of the launch; may only be called in the slot's turn. */
  async restoreViewport(): Promise<void> {
    if (this.viewport) await this.chromium.resize(this.template.viewport);
    this.viewport = undefined;
  }

  /** Settles when a restart is over, however it went; undefined where there is none. */
  get restarting(): Promise<void> | undefined {
    return this.#restarting;
  }

  /**
   * Clients wait for another Chromium from this call on, until the returned function is called: it is there,
   * or will not come.
   */
  restartBegins(): () => void {
    let over = (): void => {};
    this.#restarting = new Promise((resolve) => {
      over = () => {
        this.#restarting = undefined;
        resolve();
      };
    });
    return () => over();
  }

  /**
   * What changes the browser as a whole is done one at a time. It must not wait for the browser's end, which
   * waits for it.
   */
  inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const turn = this.#work.then(work);
    this.#work = turn.catch(() => {});
    return turn;
  }

  /** Resolves when what was asked for by now is done. */
  async runExclusive(): Promise<void> {
    await this.#work;
  }

  curl: LocalBrowser["curl"] = (request, gone) => this.egress.egress.fetch(request, gone);
}
