import type { Clock, Millis } from "../base/clock.js";
import { untilAborted, within } from "../base/deadline.js";
import { type Log, textOf } from "../base/log.js";
import type { Stops } from "../base/stops.js";
import { attest, type Attestation, type AttestationParts, NotAttested } from "./attestation.js";
import type { Canary } from "./canary.js";
import { type Cdp, PipeClosed } from "./cdp/cdp.js";
import {
  type Chromium,
  type Directories,
  type Exit,
  type ExtensionDirectory,
  type Sidecar,
  type Isolation,
  type LaunchSpec,
  type KeptWorkspace,
  type LoadResult,
} from "./chromium.js";
import type { Display } from "./display/display.js";
import type { Downloads } from "./downloads.js";
import type { FailedEnds } from "./failed-ends.js";
import type { BrowserExtensions } from "./extensions/extensions.js";
import type { LaunchExtensions } from "./extensions/forced-extensions.js";
import { type NavigationWatch, watchNavigation } from "./fill/navigation-watch.js";
import {
  PageAuthenticators,
  type PasskeyCredential,
  type PasskeyEvents,
} from "./passkeys/page-authenticators.js";
import { fillPage, type FillContext } from "./fill/fill-page.js";
import type { PageFill, PageFillOutcome } from "../spec/page-fill.js";
import { flushStorage } from "./profile/flush-storage.js";
import type { StartedBrowser } from "./resources/start-process.js";
import type { StartedProcess } from "./isolation/syscall-filter.js";
import type { Fingerprint } from "./reset/fingerprint.js";
import type { Cgroup } from "./resources/cgroup.js";
import type { MemoryUse } from "./resources/cgroup-memory.js";
import type { Workspace } from "./workspace.js";
import type { Pages } from "./cdp/pages.js";
import type { Pipe } from "./cdp/pipe.js";
import { resetBrowser } from "./reset/reset.js";
import { keepCookies, cookiesOf } from "./profile/kept-cookies.js";
import { placeWindow } from "./cdp/window.js";

/** What a launch hands over when it is finished. */
export interface Launched {
  readonly spec: LaunchSpec;
  readonly child: StartedBrowser;
  readonly pid: number;
  readonly pipe: Pipe;
  readonly cdp: Cdp;
  readonly pages: Pages;
  readonly downloads: Downloads;
  readonly workspace: Workspace;
  readonly cgroup?: Cgroup;
  readonly extensions: BrowserExtensions;
  /** The extensions that it was launched with. */
  readonly given: readonly LaunchExtensions[];
  readonly isAdopted: boolean;
  /** The display; only a headful browser has one. */
  readonly display?: Display;
  readonly directories: Directories;
  readonly isolation: Isolation;
  readonly attestation: Attestation | undefined;
  readonly canary: Canary;
  readonly version: Chromium["version"];
  readonly baseline: Fingerprint | undefined;
  readonly exited: Promise<Exit>;
  /** Everything that the launch has started, newest last. */
  readonly stops: Stops;
  readonly failedEnds: FailedEnds;
  readonly startSidecar: Chromium["startSidecar"];
  readonly clock: Clock;
  readonly log: Log;
}

const never = new AbortController().signal;

export class RunningChromium implements Chromium {
  readonly id;
  readonly pid;
  readonly pipe;
  readonly directories;
  readonly isolation;
  readonly version;
  readonly exited;
  attestation;
  #end: Promise<void> | undefined;
  readonly #killAgain = (): Promise<void> => this.kill();

  constructor(private readonly launched: Launched) {
    this.id = launched.spec.browser;
    this.pid = launched.pid;
    this.pipe = launched.pipe;
    this.directories = launched.directories;
    this.isolation = launched.isolation;
    this.attestation = launched.attestation;
    this.version = launched.version;
    this.exited = launched.exited;
    // A browser that ends by itself leaves nothing either, whether or not its owner clears up.
    void this.exited
      .then(() => this.kill())
      .catch((error: unknown) => {
        launched.log.error({ error: textOf(error) }, "browser not cleared up");
        launched.failedEnds.add(this.#killAgain);
      });
  }

  startSidecar(sidecar: Sidecar): Promise<StartedProcess> {
    if (this.#end !== undefined) return Promise.reject(new Error("the browser has ended"));
    return this.launched.startSidecar(sidecar);
  }

  async memory(): Promise<MemoryUse | undefined> {
    return await this.launched.cgroup?.memory();
  }

  outOfMemoryKills(): number | undefined {
    return this.launched.cgroup?.outOfMemoryKills();
  }

  async probe(limitMs: Millis): Promise<void> {
    await this.launched.cdp.send("Browser.getVersion", {}, { limitMs });
  }

  async attest(asking: AttestationParts, limitMs: Millis): Promise<Attestation> {
    const { cdp, clock, pages, pid, canary, spec } = this.launched;
    const page = pages.oldest();
    if (page === undefined) throw new NotAttested("it has no page open");
    this.attestation = await attest(
      { cdp, clock, page, pid, canary, namespace: spec.egress?.namespace },
      asking,
      limitMs,
    );
    return this.attestation;
  }

  async reset(
    limitMs: Millis,
    shut: () => () => Promise<void> = () => async () => {},
  ): Promise<{ readonly differences: readonly string[] }> {
    const limit = { what: "resetting the browser", limitMs };
    return { differences: await within(this.launched.clock, limit, this.#reset(shut)) };
  }

  async #reset(shut: () => () => Promise<void>): Promise<readonly string[]> {
    const reopen = shut();
    const differences = await resetBrowser(this.launched);
    // One that differs, or cannot be reset, is ended, and reaches nothing until it is.
    if (differences.length > 0) return differences;
    await reopen();
    const { startUrl } = this.launched.spec;
    if (startUrl !== undefined) await this.navigate(startUrl);
    return [];
  }

  allowDownloads(): Promise<void> {
    return this.launched.downloads.allow();
  }

  async navigate(url: string): Promise<void> {
    const { cdp, pages } = this.launched;
    const page = pages.oldest();
    if (page === undefined) return;
    const { sessionId: session } = await cdp.send("Target.attachToTarget", { targetId: page, flatten: true });
    cdp
      .send("Page.navigate", { url }, { session })
      .finally(() => cdp.leave(session))
      .catch(() => {});
  }

  async resize(viewport: LaunchSpec["viewport"]): Promise<void> {
    const { cdp, display, pages, spec } = this.launched;
    await display?.resize(viewport);
    const page = pages.oldest();
    if (page !== undefined) await placeWindow(cdp, page, { ...spec, viewport });
  }

  fillPage(fill: PageFill, around: FillContext): Promise<PageFillOutcome> {
    const { cdp, clock } = this.launched;
    return fillPage(fill, { cdp, clock, ...around });
  }

  watchNavigation(watch: NavigationWatch): Promise<void> {
    return watchNavigation(this.launched, watch);
  }

  async armPasskey(
    credential: PasskeyCredential | undefined,
    heard: PasskeyEvents = {},
  ): Promise<() => Promise<void>> {
    const { cdp, clock, log, pipe } = this.launched;
    const authenticators = new PageAuthenticators({ cdp, clock, log, credential, ...heard });
    const release = pipe.lateDetaches.hold();
    const disarm = async (): Promise<void> => {
      await authenticators.close();
      await release();
    };
    await authenticators.open().catch(async (error: unknown) => {
      await disarm();
      throw error;
    });
    return disarm;
  }

  get extensions(): readonly ExtensionDirectory[] {
    return this.launched.extensions.loaded;
  }

  load(extensions: readonly ExtensionDirectory[], limitMs: Millis): Promise<LoadResult> {
    return this.launched.extensions.load(extensions, limitMs);
  }

  async keepCookies(limitMs: Millis, signal = never): Promise<void> {
    const { cdp, workspace, log } = this.launched;
    const reading = cookiesOf(cdp, limitMs).catch((error: unknown) => {
      log.warn({ error: textOf(error) }, "cookies not kept");
      return [];
    });
    await keepCookies(workspace, await untilAborted(signal, reading));
  }

  async stopAndKeep(limitMs: Millis, signal = never): Promise<KeptWorkspace> {
    if (this.#end !== undefined) throw new Error("the browser has ended, and nothing of it is left");
    const { workspace } = this.launched;
    const extensions = this.extensions;
    this.#end = this.#ending(this.#stopInOrder(limitMs, signal));
    await this.#end;
    const { code, signal: killedBy } = await this.exited;
    return { ...workspace, extensions, isWhole: code === 0 && killedBy === null };
  }

  /** Chromium is given no more than `limitMs` for all of it, and what hangs no more than half. */
  async #stopInOrder(limitMs: Millis, signal: AbortSignal): Promise<void> {
    const { clock, pages, stops } = this.launched;
    const deadline = clock.monotonic() + limitMs;
    try {
      // Nothing has been stopped yet where there is no room for them.
      await this.keepCookies(limitMs / 2, signal);
      await untilAborted(signal, this.#writeAndExit(limitMs / 2, deadline));
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    pages.release();
    await stops.run();
  }

  async #writeAndExit(writeLimitMs: Millis, deadline: Millis): Promise<void> {
    const { clock, log, pages } = this.launched;
    const rest = (): Millis => Math.max(0, deadline - clock.monotonic());
    pages.release();
    await flushStorage(this.launched, Math.min(writeLimitMs, rest())).catch((error: unknown) => {
      log.warn({ error: textOf(error) }, "what pages stored last may not be kept");
    });
    await this.#askToExit(rest());
  }

  async close(limitMs: Millis): Promise<void> {
    await this.#askToExit(limitMs);
    await this.kill();
  }

  /** After a failure it is tried again. A workspace that is being kept is no longer removed with it. */
  kill(): Promise<void> {
    const { failedEnds, pages, workspace } = this.launched;
    pages.release();
    this.#end ??= this.#ending(
      workspace.discard().catch((error: unknown) => {
        failedEnds.add(this.#killAgain);
        throw error;
      }),
    );
    return this.#end;
  }

  /** An end that has failed is forgotten, so that the next one tries again. */
  #ending(end: Promise<void>): Promise<void> {
    return end.catch((error: unknown) => {
      this.#end = undefined;
      throw error;
    });
  }

  async #askToExit(limitMs: Millis): Promise<void> {
    const { cdp, clock, pages } = this.launched;
    pages.release();
    // Chromium may close its pipe before its answer was read, and then still be writing down what it has.
    const asked = cdp
      .send("Browser.close", {}, { limitMs })
      .catch(unlessPipeClosed)
      .then(() => this.exited);
    await within(clock, { what: "closing Chromium", limitMs }, asked).catch(() => {});
  }
}

function unlessPipeClosed(error: unknown): void {
  if (!(error instanceof PipeClosed)) throw error;
}
