import type { BrowserId, LeaseId } from "../base/ids.js";
import { parseTrace, traceText } from "../base/trace-context.js";
import type { Telemetry } from "../spec/bodies.js";
import { telemetryOf } from "../spec/telemetry.js";
import type { EventCategory, LeaseSink } from "./event.js";
import type { LeaseRecorder } from "./lease-recorder.js";
import { noLosses, type StoreLosses } from "./store-losses.js";
import type { Recorder } from "./recorder.js";
import { captureSettings, type CaptureSettings, isMonitored } from "./settings.js";

/** What a lease changes of its browser's telemetry; a later one has a greater revision. */
interface LeaseTelemetry {
  readonly revision: number;
  /** JSON text of a `Telemetry`; absent where the launch's own holds. */
  readonly telemetry?: string | undefined;
  /** The span of the call that took it; whoever does not know it leaves it out. */
  readonly trace?: string | undefined;
}

/** The events of a browser's present lease, while it captures any. */
export interface Capture {
  readonly lease: LeaseId;
  readonly settings: CaptureSettings;
  readonly sink: LeaseSink;
}

/** Watches the pages of a browser from inside for one lease. */
interface PageMonitor {
  /** Settles when what it was started with is in force, or after a limit. Never rejects. */
  readonly started: Promise<void>;
  /** Other categories are wanted from now on; settles as `started` does. */
  apply(categories: ReadonlySet<EventCategory>): Promise<void>;
  /** Resolves when nothing of it is left in the browser. Never rejects, and takes no longer than a limit. */
  stop(): Promise<void>;
}

interface BrowserTelemetryParts {
  readonly browser: BrowserId;
  /** What the browser was launched with. */
  readonly launched: Telemetry | undefined;
  readonly recorder: Recorder;
  /** Starts to watch; called only where a category needs it. */
  startMonitor?(capture: Capture): PageMonitor;
}

interface Present {
  readonly lease: LeaseId;
  readonly losses: StoreLosses;
  readonly revision: number;
  readonly trace: string | undefined;
}

/**
 * What is captured of one browser, for the lease that holds it. A lease begins to capture when its node has
 * heard what it wants; whatever it was, nothing of it is left when the lease is over.
 */
export class BrowserTelemetry {
  #present: Present | undefined;
  #capture: Capture | undefined;
  #recorder: LeaseRecorder | undefined;
  #monitor: PageMonitor | undefined;
  #inForce: Promise<void> | undefined;
  #ending: Promise<unknown> = Promise.resolve();
  readonly #watchers = new Set<(capture: Capture | undefined) => void>();

  constructor(private readonly parts: BrowserTelemetryParts) {}

  /** Undefined while nothing is captured. */
  get capture(): Capture | undefined {
    return this.#capture;
  }

  /**
   * Settles when what is captured of pages is in force, or after a limit; undefined where nothing of them is.
   */
  get inForce(): Promise<void> | undefined {
    return this.#inForce;
  }

  /** Calls back now and with each change of what is captured; the result stops that. */
  watch(watcher: (capture: Capture | undefined) => void): () => void {
    this.#watchers.add(watcher);
    watcher(this.#capture);
    return () => void this.#watchers.delete(watcher);
  }

  /** What the lease that holds the browser wants. Told twice, or late, it changes nothing. */
  told(lease: LeaseId, { revision, telemetry, trace }: LeaseTelemetry): void {
    const present = this.#present?.lease === lease ? this.#present : undefined;
    if (this.#present && !present) void this.over(this.#present.lease);
    const isOld = present !== undefined && present.revision >= revision;
    this.#present = {
      lease,
      losses: present?.losses ?? noLosses(),
      revision: isOld ? present.revision : revision,
      trace: present?.trace ?? trace,
    };
    if (this.#recorder) this.#recorder.trace ??= parseTrace(this.#present.trace);
    if (!isOld) this.#apply(this.#present, captureSettings(telemetryOf(this.parts.launched, { telemetry })));
  }

  /**
   * Stops what a lease captures; resolves when nothing of it is left in the browser. Its last events are
   * stored meanwhile, which nobody waits for.
   */
  async over(lease: LeaseId): Promise<void> {
    if (this.#present?.lease !== lease) return;
    this.#present = undefined;
    this.#end();
    await this.#ending;
  }

  /** Another Chromium has taken the place of the one that was watched. */
  restarted(): void {
    const monitor = this.#monitor;
    this.#monitor = undefined;
    void monitor?.stop();
    if (this.#capture) this.#watchPages(this.#capture);
  }

  #apply({ lease, losses, trace }: Present, settings: CaptureSettings | undefined): void {
    if (!settings) return this.#end();
    const { recorder, browser } = this.parts;
    if (this.#recorder) this.#recorder.apply(settings);
    else this.#recorder = recorder.open({ browser, lease }, settings, { trace: parseTrace(trace), losses });
    this.#capture = { lease, settings, sink: this.#recorder };
    this.#watchPages(this.#capture);
    this.#tell();
  }

  #watchPages(capture: Capture): void {
    const { startMonitor } = this.parts;
    if (!isMonitored(capture.settings)) return this.#stopMonitor();
    if (this.#monitor) this.#inForce = this.#monitor.apply(capture.settings.categories);
    else {
      this.#monitor = startMonitor?.(capture);
      this.#inForce = this.#monitor?.started;
    }
  }

  #stopMonitor(): void {
    const monitor = this.#monitor;
    this.#monitor = undefined;
    this.#inForce = undefined;
    if (monitor) this.#ending = Promise.all([this.#ending, monitor.stop()]);
  }

  #end(): void {
    this.#stopMonitor();
    this.#capture = undefined;
    this.#tell();
    const recorder = this.#recorder;
    this.#recorder = undefined;
    // Where it goes on capturing later, it is in the trace that a client has brought.
    if (this.#present && recorder?.trace)
      this.#present = { ...this.#present, trace: traceText(recorder.trace) };
    // What a watcher has told last goes into the store too.
    void recorder?.close();
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher(this.#capture);
  }
}
