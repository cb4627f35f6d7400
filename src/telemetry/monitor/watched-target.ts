import type { Clock, Millis } from "../../base/clock.js";
import { Dialogs } from "../../browser/cdp/dialogs.js";
import type { EventCategory } from "../event.js";
import { type ShownAddress, shownAddress } from "./truncation.js";
import { type SendCommand, TargetDomains } from "./domains.js";
import { scrollSettled } from "./interaction-events.js";
import { NetworkRequests } from "./network-events.js";
import { type LoadStep, loadStep, navigation } from "./page-events.js";
import type { Reading } from "./reading.js";
import type { RequestBytes } from "./target-requests.js";
import { recordIn, type ProtocolRecord, textIn, present } from "./protocol-record.js";
import { Scrolling } from "./scrolling.js";
import { Settling } from "./settling.js";

/** `worker` is a dedicated one; the names are Chromium's. */
export type WatchedType = "page" | "iframe" | "worker" | "shared_worker";

interface TargetParts {
  readonly session: string;
  readonly targetId: string;
  readonly type: WatchedType;
  /** What it shows at first. */
  readonly address: ShownAddress;
  /** The target whose session has attached this one; a page has none. */
  readonly parent: WatchedTarget | undefined;
  /** It has just come to be: what it has done before it was seen is told. */
  readonly isNew: boolean;
  readonly clock: Clock;
  readonly requestBytes: RequestBytes;
  readonly ask: SendCommand;
  /** Whether anybody else may answer a dialog. */
  hasClients(): boolean;
  /** An event of this target. */
  tell(target: WatchedTarget, reading: Reading, event?: string): void;
  /** A step of the preparation was refused. */
  failed(step: string): void;
  /** Called when the page has come to rest after a navigation. */
  settled(target: WatchedTarget): void;
}

/**
 * What is known of a target: a page, a frame in a process of its own, or a worker (docs/telemetry.md#page).
 */
export class WatchedTarget {
  readonly requests: NetworkRequests;
  readonly scrolling: Scrolling;
  /**
   * Without a client such a dialog would not have opened, but for the monitor: headless-shell shows one only
   * to those that hear of it.
   */
  readonly dialogs: Dialogs;
  readonly #settling: Settling | undefined;
  readonly #domains: TargetDomains;
  #work: Promise<void> = Promise.resolve();
  #address: ShownAddress;
  #frame: string | undefined;
  #loader: string | undefined;
  #navSeq = 0;
  /** The document that was asked for last, and when. */
  #wanted: { readonly loader: string | undefined; readonly at: Millis } | undefined;
  readonly #steps = new Set<LoadStep>();
  #cancelRelease: (() => void) | undefined;
  #isPrepared = false;
  #isGone = false;

  constructor(private readonly parts: TargetParts) {
    this.#address = parts.address;
    this.requests = new NetworkRequests(parts.requestBytes);
    const tell = (type: string, category: EventCategory): void =>
      this.tell({ type, category, data: {}, wasCut: false });
    this.scrolling = new Scrolling(parts.clock, (scroll) => this.tell(scrollSettled(scroll), scrollEvent));
    this.dialogs = new Dialogs({
      clock: parts.clock,
      hasClients: () => parts.hasClients(),
      answer: () => void this.ask("Page.handleJavaScriptDialog", { accept: false }).catch(() => {}),
    });
    this.#domains = new TargetDomains({
      isOfDocument: this.#isDocument,
      hasPast: () => !parts.isNew || this.#isPrepared,
      ask: (method, params) => this.#orFail(method, params),
      stopped: ({ name }) => void (name === "Network" && this.#requestsUnseen()),
    });
    if (parts.parent) return;
    this.#settling = new Settling(parts.clock, {
      networkIdle: () => tell("network_idle", "network"),
      layoutSettled: () => tell("page_layout_settled", "page"),
      navigationSettled: () => {
        tell("page_navigation_settled", "page");
        parts.settled(this);
      },
    });
  }

  get session(): string {
    return this.parts.session;
  }

  get isPage(): boolean {
    return this.parts.type === "page";
  }

  /** The page that it is in; a worker that several pages share is in none. */
  get page(): WatchedTarget {
    return this.parts.parent?.page ?? this;
  }

  /** Undefined where its page is gone, or shared by several. */
  get settling(): Settling | undefined {
    const { page } = this;
    return page.#isGone ? undefined : page.#settling;
  }

  get navSeq(): number {
    return this.#navSeq;
  }

  get address(): ShownAddress {
    return this.#address;
  }

  /** Whether what is attached by way of it has just come to be. */
  get hasNewTargets(): boolean {
    return this.parts.isNew || this.#isPrepared;
  }

  /** Whether this is of what was before: told only of what has just come to be. */
  isRetelling(method: string): boolean {
    return this.#domains.isRetelling(method);
  }

  get targetId(): string {
    return this.parts.targetId;
  }

  /** Whether it was attached by way of the given one. */
  isBelow(other: WatchedTarget): boolean {
    return this === other || (this.parts.parent?.isBelow(other) ?? false);
  }

  /** Which session and target it is, as every event has it. */
  get where(): ProtocolRecord {
    const { session, targetId, type } = this.parts;
    return { session_id: session, target_id: targetId, target_type: type };
  }

  /** Where an event happens: besides, the document that is shown. */
  get context(): ProtocolRecord {
    const document = { frame_id: this.#frame, loader_id: this.#loader, url: this.#address.url };
    return present({ ...this.where, ...document, nav_seq: this.#navSeq });
  }

  tell(reading: Reading, event?: string): void {
    this.parts.tell(this, reading, event);
  }

  ask(method: string, params: object = {}): Promise<ProtocolRecord> {
    return this.parts.ask(method, params);
  }

  /**
   * Asks Chromium for what the categories want. Resolves when it is in force or refused; what was refused is
   * told.
   */
  apply(categories: ReadonlySet<EventCategory>): Promise<void> {
    this.#work = this.#work.then(() => this.#domains.apply(categories));
    return this.#work;
  }

  /** Has to be called first. All is asked at once, since the page does not wait for it. */
  prepare(categories: ReadonlySet<EventCategory>): Promise<void> {
    const within = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true, filter: inner };
    const document = this.#isDocument ? [this.#attempt("Page.enable"), this.#findDocument()] : [];
    if (this.parts.isNew && this.isPage)
      document.push(...[true, false].map((enabled) => this.#retell(enabled)));
    this.#work = Promise.all([
      ...document,
      this.#domains.apply(categories),
      this.#attempt("Target.setAutoAttach", within),
    ]).then(() => {
      this.#isPrepared = true;
    });
    return this.#work;
  }

  /** A frame asks for another document. */
  navigating(params: ProtocolRecord): void {
    if (textIn(params, "frameId") !== this.targetId) return;
    this.#wanted = { loader: textIn(params, "loaderId"), at: this.parts.clock.monotonic() };
  }

  /** When the document that a frame shows was asked for, by the monotonic clock; known of top frames. */
  startOf(frame: ProtocolRecord): Millis | undefined {
    return this.#wanted?.loader === textIn(frame, "loaderId") ? this.#wanted?.at : undefined;
  }

  /** The top frame of this target shows another document. */
  navigated(frame: ProtocolRecord): void {
    this.#navSeq += 1;
    this.#steps.clear();
    this.#shown(frame);
    if (this.isPage) this.#settling?.navigated(this.#loader);
  }

  /** A step of loading, which is told once for each document. */
  loaded(step: LoadStep, params: ProtocolRecord, event: string): void {
    const hasNotNavigated = this.#navSeq === 0 && this.parts.isNew;
    if (!this.isPage || this.#steps.has(step) || hasNotNavigated) return;
    this.#steps.add(step);
    this.tell(loadStep(step, params), event);
    if (step === "page_load") this.settling?.loaded();
    else this.settling?.contentLoaded();
  }

  /** True where the frame is the one that this target is of. */
  isTop(frame: ProtocolRecord): boolean {
    return textIn(frame, "parentId") === undefined || textIn(frame, "id") === this.parts.targetId;
  }

  /** Chromium keeps what a console was given for whoever hears of it; nobody here looks at it again. */
  releaseSoon(): void {
    this.#cancelRelease ??= this.parts.clock.after(releaseMs, () => {
      this.#cancelRelease = undefined;
      this.ask("Runtime.releaseObjectGroup", { objectGroup: "console" }).catch(() => {});
    });
  }

  /** It is gone: nothing more is asked or told of it. */
  gone(): void {
    this.settling?.sessionEnded(this.session);
    this.#isGone = true;
    this.#settling?.stop();
    this.#cancelRelease?.();
    this.dialogs.over();
    this.scrolling.stop();
    this.requests.clear();
  }

  get #isDocument(): boolean {
    return this.parts.type === "page" || this.parts.type === "iframe";
  }

  /** Finds what is shown already when the target is first seen. */
  async #findDocument(): Promise<void> {
    const tree = await this.#attempt("Page.getFrameTree");
    if (!tree || this.#loader !== undefined) return;
    const frame = recordIn(recordIn(tree, "frameTree"), "frame");
    if (!this.parts.isNew || isBlank(frame)) return this.#shown(frame);
    // Its navigation was not seen, nor which of its requests are over.
    this.navigated(frame);
    this.#settling?.requestsLost();
    this.tell(navigation({ frame }, this.where), "Page.getFrameTree");
  }

  /**
   * Switched on, Chromium tells again which steps of loading are over; switched off at once, nothing else.
   */
  #retell(enabled: boolean): Promise<ProtocolRecord | undefined> {
    return this.#attempt("Page.setLifecycleEventsEnabled", { enabled });
  }

  #shown(frame: ProtocolRecord): void {
    this.#frame = textIn(frame, "id");
    this.#loader = textIn(frame, "loaderId");
    this.#address = shownAddress(textIn(frame, "unreachableUrl") ?? textIn(frame, "url"));
  }

  /** The ends of requests that are under way will not be told. */
  #requestsUnseen(): void {
    this.requests.clear();
    this.settling?.requestsUnseen(this.session);
  }

  async #attempt(method: string, params?: object): Promise<ProtocolRecord | undefined> {
    return await this.#orFail(method, params).catch(() => undefined);
  }

  async #orFail(method: string, params: object = {}): Promise<ProtocolRecord> {
    try {
      return await this.parts.ask(method, params);
    } catch (error) {
      if (!this.#isGone) this.parts.failed(method);
      throw error;
    }
  }
}

const releaseMs: Millis = 1000;
/** The document that a page begins with. */
const isBlank = (frame: ProtocolRecord): boolean => ["", "about:blank"].includes(textIn(frame, "url") ?? "");
const scrollEvent = "Runtime.bindingCalled";
/** A PDF's viewer is a `webview`: one of the browser's own pages. */
const inner = [{ type: "iframe" }, { type: "worker" }, { exclude: true }];
