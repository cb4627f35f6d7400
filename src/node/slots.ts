import type { Clock } from "../base/clock.js";
import { type BrowserId, type ClaimId, type Partition, partitionOf } from "../base/ids.js";
import { textOf } from "../base/log.js";
import type { Chromium } from "../browser/chromium.js";
import type { Browser } from "../pool/browser.js";
import { memoryBytes } from "../spec/bodies.js";
import type { PoolStore, Job } from "../pool/ports/pool-store.js";
import type { NodeReports } from "../pool/ports/node-reports.js";
import type { Bridge } from "../gateway/cdp/bridge.js";
import type { BridgeRecorder } from "../gateway/cdp/connection.js";
import { type BrowserEnd, EndReports } from "./end-reports.js";
import { comeToRest } from "./exclusive.js";
import type { LaunchHealth } from "./launch-health.js";
import { LaunchAdmission, failureText, type FirstStart, Launcher, type LauncherPorts } from "./launcher.js";
import { isOrderly, type ProfileSaver } from "./profile-saver.js";
import { FlightRecorder } from "../telemetry/flight/flight-recorder.js";
import { type RecordingPorts, Recordings } from "../telemetry/flight/recordings.js";
import type { BrowserTelemetry } from "../telemetry/browser-telemetry.js";
import { tellCrash } from "./system-events.js";
import { type BridgedChromium, Slot, type TelemetryParts } from "./slot.js";

export interface SlotPorts extends LauncherPorts, RecordingPorts {
  readonly poolStore: PoolStore;
  readonly reports: NodeReports;
  readonly profileSaver: ProfileSaver;
  readonly clock: Clock;
  makeBridge(chromium: Chromium, recorder: BridgeRecorder): Bridge;
  makeTelemetry(parts: TelemetryParts): BrowserTelemetry;
  /** A launch beyond these is refused, whatever Redis says. */
  readonly maxBrowsers: number;
  readonly maxBytes: number;
  readonly meter: { launched(browser: Browser): void; failed(browser: Browser, reason: string): void };
  readonly health: Pick<LaunchHealth, "failed" | "launched">;
}

interface PendingLaunch {
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

/** The browsers of this node: launched, watched and ended here, and nowhere else decided. */
export class Slots {
  readonly #slots = new Map<BrowserId, Slot>();
  readonly #pending = new Map<BrowserId, PendingLaunch>();
  readonly #endReports: EndReports;
  readonly #admission: LaunchAdmission;
  readonly #launcher: Launcher;
  readonly #recordings: Recordings;
  /** Done before a browser is reported as launched: from then on it may be lent. */
  readonly beforeLaunched = new Set<(partition: Partition) => Promise<void>>();
  #isClosed = false;

  constructor(private readonly ports: SlotPorts) {
    this.#launcher = new Launcher(ports);
    this.#endReports = new EndReports(ports);
    this.#admission = new LaunchAdmission(ports);
    this.#recordings = new Recordings(ports);
  }

  find(id: BrowserId): Slot | undefined {
    return this.#slots.get(id);
  }

  all(): readonly Slot[] {
    return [...this.#slots.values()];
  }

  get count(): number {
    return this.#slots.size + this.#pending.size;
  }

  /** Whether there is anything of a browser here: itself, its launch, or word of its end. */
  #isKnown(id: BrowserId): boolean {
    return this.#slots.has(id) || this.#pending.has(id) || this.#endReports.isWaiting(id);
  }

  /** A launch job. Does nothing where the claim is not the record's, or the launch is under way. */
  async launch({ browser: id, claim }: Job): Promise<void> {
    const slot = this.#slots.get(id);
    if (slot && !slot.isEnding) return await this.#reportAgain(slot, claim);
    if (this.#isClosed || this.#isKnown(id)) return;
    const abort = new AbortController();
    const work = this.#launch(id, claim, abort.signal);
    this.#pending.set(id, { abort, done: work.catch(() => {}) });
    try {
      await work;
    } finally {
      this.#pending.delete(id);
      this.#admission.forget(id);
    }
  }

  async #launch(id: BrowserId, claim: ClaimId, signal: AbortSignal): Promise<void> {
    const begun = await this.ports.reports.beginLaunch(id, claim);
    if (!begun) return;
    const { browser: record, mayReset } = begun;
    const template = await this.ports.poolStore.findTemplate(partitionOf(id), record.templateKey);
    if (!template) return;
    if (!this.#admission.admits(record, template, this.all()))
      return await this.#failed(record, claim, "the node holds as many browsers as it may");
    const { clock, health } = this.ports;
    const begunAt = clock.monotonic();
    const flight = new FlightRecorder(id, { clock, memoryLimitBytes: memoryBytes(template.memory) });
    try {
      const slot = await this.#open(record, { template, isForOne: !mayReset, signal, flight });
      await this.#launched(record, claim, slot);
    } catch (error) {
      if (signal.aborted) return;
      const text = failureText(error);
      health.failed(begunAt, text);
      const recorded = this.#recordings.over(flight, { why: "launch_failed", error: text });
      await Promise.all([recorded, this.#failed(record, claim, text)]);
    }
  }

  /** Reports again what was launched under a claim that Redis has forgotten, where nobody has used it. */
  async #reportAgain(slot: Slot, claim: ClaimId): Promise<void> {
    if (this.#pending.has(slot.id) || !(await this.ports.reports.beginLaunch(slot.id, claim))) return;
    if (slot.leaseUsage.total)
      return await this.retireNow(slot, "not_clean", "Redis has forgotten a lease of it");
    await this.#reportLaunched(slot, claim);
  }

  async #reportLaunched({ id, isolationText }: Slot, claim: ClaimId): ReturnType<NodeReports["launched"]> {
    for (const work of this.beforeLaunched) await work(partitionOf(id));
    return await this.ports.reports.launched(id, claim, isolationText);
  }

  async #failed(record: Browser, claim: ClaimId, text: string): Promise<void> {
    this.ports.log.warn({ browser: record.id, error: text }, "launch failed");
    this.ports.meter.failed(record, "launch");
    await this.ports.reports.launchFailed(record.id, claim, text);
  }

  async #launched(record: Browser, claim: ClaimId, slot: Slot): Promise<void> {
    const outcome = await this.#reportLaunched(slot, claim).catch((error: unknown) => {
      this.ports.log.warn({ browser: slot.id, error: textOf(error) }, "launch could not be reported");
      return "unknown" as const;
    });
    // Whether the record calls it idle by now cannot be known.
    if (outcome === "unknown")
      return await this.retireNow(slot, "launch_failed", "its launch could not be reported");
    if (outcome === "stale") return await this.end(slot);
    this.ports.meter.launched(record);
    this.ports.health.launched();
    slot.flight.state("launched");
    this.ports.log.info({ browser: slot.id, isolation: slot.chromium.isolation }, "browser launched");
  }

  async #open({ id, standby }: Browser, first: FirstStart): Promise<Slot> {
    const { flight } = first;
    const { chromium, egress } = await this.#launcher.first(id, first);
    egress.begin((host, why) => flight.request(host, why));
    const parts = { ...this.ports, ...first, egress, standsBy: standby !== undefined };
    const slot = new Slot(this.#run(chromium, flight), parts);
    this.#slots.set(slot.id, slot);
    this.#watch(slot, chromium);
    return slot;
  }

  #run(chromium: Chromium, flight: FlightRecorder): BridgedChromium {
    return { chromium, bridge: this.ports.makeBridge(chromium, flight) };
  }

  /** Starts a browser again whose workspace was kept, in its session: only a restart does (restarts.ts). */
  async runAgain(...[slot, ...how]: Parameters<Launcher["again"]>): Promise<void> {
    const chromium = await this.#launcher.again(slot, ...how);
    slot.runs(this.#run(chromium, slot.flight));
    this.#watch(slot, chromium);
  }

  #watch(slot: Slot, chromium: Chromium): void {
    void chromium.exited.then((exit) => {
      if (slot.isEnding || slot.stopping === chromium) return;
      const { code, signal, lastLines } = exit;
      slot.exited(exit);
      this.crashed(slot, `exited with ${signal ?? code}: ${lastLines.slice(-5).join(" | ")}`);
    });
  }

  /** Exit is noticed at once: the lease ends, what is left of the browser goes, and the pool replaces it. */
  crashed(slot: Slot, text: string, phase: "running" | "gave_up" = "running"): void {
    const { log } = this.ports;
    tellCrash(slot, phase);
    log.warn({ browser: slot.id, exit: text }, "browser crashed");
    this.retireNow(slot, "crashed", text).catch((error: unknown) =>
      log.error({ browser: slot.id, error }, "crashed browser not cleared up"),
    );
  }

  /** Decides here that a browser is over, ends it, and says so. */
  async retireNow(slot: Slot, why: BrowserEnd["why"], text: string): Promise<void> {
    const recorded = this.#recordings.over(slot.flight, { why, lease: slot.activity.lease });
    slot.endBegins(why);
    await this.endUnder(slot, await this.#endReports.decide(slot.id, { why, text }));
    await recorded;
  }

  /** Ends what its record has decided to be over, under that claim. */
  async endUnder(slot: Slot, claim: ClaimId | undefined): Promise<void> {
    await this.end(slot);
    if (claim) await this.#endReports.gone(slot.id, claim, slot.leaseUsage.total);
  }

  /** A record that names this node, and there is no such browser: Redis has forgotten its end. */
  async endMissing(id: BrowserId): Promise<void> {
    if (this.#isKnown(id)) return;
    this.ports.log.warn({ browser: id }, "record without a browser ended");
    await this.#endReports.endedBefore(id, { why: "missing", text: "its node has no such browser" });
  }

  /**
   * Ends what could not be ended when it was to be, and reports and keeps what Redis did not take then. Never
   * rejects.
   */
  async retryEnds(): Promise<void> {
    await Promise.all(
      this.all()
        .filter(({ isEnding, ended }) => isEnding && !ended)
        .map((slot) =>
          this.end(slot).catch((error: unknown) =>
            this.ports.log.warn({ browser: slot.id, error: textOf(error) }, "browser not ended yet"),
          ),
        ),
    );
    await Promise.all([this.#endReports.retry(), this.#recordings.retry()]);
  }

  /**
   * A retire job: done only where the record says so under this claim. One that comes while an earlier one
   * saves joins it.
   */
  async retire({ browser: id, claim }: Job): Promise<void> {
    const record = (await this.ports.poolStore.findBrowser(id))?.browser;
    if (record?.state !== "retiring" || record.claim !== claim) return;
    const pending = this.#pending.get(id);
    pending?.abort.abort();
    await pending?.done;
    const slot = this.#slots.get(id);
    const how = { saves: isOrderly(record.why) };
    slot?.endBegins(record.why, how);
    if (slot) await this.end(slot, how);
    await this.ports.reports.gone(id, claim, slot?.leaseUsage.total);
  }

  /**
   * Cuts whoever uses it and ends the browser; resolves when nothing is left of it. A second asker joins the
   * first; after a failure it is tried again.
   */
  end(slot: Slot, { saves } = { saves: false }): Promise<void> {
    slot.endBegins(undefined, { saves });
    slot.ended ??= this.#end(slot, saves).catch((error: unknown) => {
      slot.ended = undefined;
      throw error;
    });
    return slot.ended;
  }

  async #end(slot: Slot, saves: boolean): Promise<void> {
    const { clock, log, profileSaver } = this.ports;
    await comeToRest(slot, { clock, log, givenUp: profileSaver.givenUp });
    try {
      if (saves && slot.profile?.isSaved) await profileSaver.save(slot, slot.profile.id);
      // Only a profile that is saved is worth a gentle close.
      else await (slot.keptWorkspace ? slot.keptWorkspace.discard() : slot.chromium.kill());
    } finally {
      // The egress is closed last, because Chromium still sends at its end.
      await slot.egress.close();
    }
    this.#slots.delete(slot.id);
  }

  /** Ends everything at once, but for the time that saves may take; nothing is launched any more. */
  async close({ saves } = { saves: true }): Promise<void> {
    this.#isClosed = true;
    const pending = [...this.#pending.values()];
    for (const { abort } of pending) abort.abort();
    await Promise.all(pending.map(({ done }) => done));
    const callOff = this.ports.profileSaver.hurry();
    const ends = await Promise.allSettled(this.all().map((slot) => this.end(slot, { saves })));
    callOff();
    const failures = ends.flatMap((end) => (end.status === "rejected" ? [end.reason as unknown] : []));
    if (failures.length > 0)
      throw new AggregateError(failures, `${failures.length} of ${ends.length} browsers could not be ended`);
  }
}
