import type { Clock, Millis } from "../../base/clock.js";
import { bytesOf, type Frame, wholeOf } from "../../browser/cdp/frame.js";
import type { Pipe } from "../../browser/cdp/pipe.js";
import { paramsOf } from "../../browser/cdp/target-event.js";
import type { EventCategory, SeenEvent } from "../event.js";
import { MonitorConnection, type SessionEvent } from "./connection.js";
import { longConsoleCall } from "./console-events.js";
import { isOwnPage, tabOpened } from "./page-events.js";
import { type DroppedMessages, MessageRates, type Rates } from "./rates.js";
import { longestAddressBytes, readers } from "./readers.js";
import type { Reading } from "./reading.js";
import { RequestBytes } from "./target-requests.js";
import { recordIn, recordsIn, type ProtocolRecord, textIn } from "./protocol-record.js";
import { Screenshots } from "./screenshots.js";
import { type ShownAddress, shownAddress } from "./truncation.js";
import { WatchedTarget, type WatchedType } from "./watched-target.js";

interface WatchParts {
  readonly pipe: Pipe;
  readonly clock: Clock;
  readonly rates: Rates | undefined;
  categories(): ReadonlySet<EventCategory>;
  hasClients(): boolean;
  /** False where the event is lost, because too much waits already. */
  emit(event: SeenEvent): boolean;
  /** A target has gone, or is left alone for a while. */
  left(targetId: string): void;
  onClosed(): void;
}

const watchedTypes: readonly WatchedType[] = ["page", "iframe", "worker", "shared_worker"];
/** A service worker that is watched never goes to sleep, so none is. */
const outer = [{ type: "page" }, { type: "shared_worker" }, { exclude: true }];
/** Targets within pages are not limited by Chromium. */
const mostTargets = 256;
/** Longer messages are not read, but for how a console's text begins. */
const longestFrameBytes = 256 * 1024;
/**
 * A page of which more messages were left out lately is left alone for a while. With each second the count is
 * halved.
 */
const mostLost = 2000;
const restMs: Millis = 10_000;
/** A busy page is waited for no longer: less than callers wait for the watch (`inForceLimitMs`). */
const readyLimitMs: Millis = 4000;

/** Watches the targets of one Chromium, until that ends or `close`. */
export class BrowserWatch {
  readonly #connection: MonitorConnection;
  readonly #targets = new Map<string, WatchedTarget>();
  /** Pages that were told of, or were there before. */
  readonly #known = new Set<string>();
  /** Pages that are left alone, with what ends that. */
  readonly #resting = new Map<string, () => void>();
  readonly #rates: MessageRates;
  readonly #screenshots: Screenshots;
  readonly #lostOf = new Map<WatchedTarget, number>();
  readonly #requestBytes = new RequestBytes();

  constructor(private readonly parts: WatchParts) {
    const { pipe, clock, rates } = parts;
    this.#rates = new MessageRates({ clock, rates, told: (...lost) => this.#tellLost(...lost) });
    this.#screenshots = new Screenshots(clock);
    this.#connection = new MonitorConnection({
      pipe,
      clock,
      onEvent: (event) => this.#take(event),
      onClosed: () => {
        this.#forgetAll();
        parts.onClosed();
      },
    });
  }

  /** Resolves when everything that is open is watched and answers. Throws where Chromium does not. */
  async open(): Promise<void> {
    const pages = [{ type: "page" }, { exclude: true }];
    await this.#step("Target.attachToBrowserTarget", () => this.#connection.open());
    const open = await this.#step("Target.getTargets", (method) =>
      this.#connection.send(method, { filter: pages }),
    );
    for (const info of recordsIn(open, "targetInfos")) this.#known.add(textIn(info, "targetId") ?? "");
    const within = { autoAttach: true, waitForDebuggerOnStart: false, flatten: true, filter: outer };
    await this.#step("Target.setAutoAttach", (method) => this.#connection.send(method, within));
    await this.#ready([...this.#targets.values()].map((target) => target.apply(this.parts.categories())));
  }

  /** Asks for what the categories want by now. */
  async apply(): Promise<void> {
    await this.#ready([...this.#targets.values()].map((target) => target.apply(this.parts.categories())));
  }

  /** Tells what was left out last. */
  tellRest(): void {
    this.#rates.close();
  }

  /** Resolves when Chromium has forgotten it; throws where that does not answer. */
  async close(): Promise<void> {
    const sessions = [...this.#targets.keys()];
    this.#forgetAll();
    await this.#connection.close(sessions);
  }

  #forgetAll(): void {
    this.tellRest();
    for (const target of this.#targets.values()) target.gone();
    for (const cancel of this.#resting.values()) cancel();
    this.#targets.clear();
    this.#resting.clear();
  }

  async #ready(work: readonly Promise<void>[]): Promise<void> {
    let cancel = (): void => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.parts.clock.after(readyLimitMs, resolve);
    });
    await Promise.race([Promise.all(work), late]);
    cancel();
  }

  async #step<Result>(method: string, work: (method: string) => Promise<Result>): Promise<Result> {
    try {
      return await work(method);
    } catch (error) {
      this.#initFailed(method);
      throw error;
    }
  }

  #take({ method, session, frame }: SessionEvent): void {
    const target = this.#targets.get(session);
    if (!target && session !== this.#connection.root) return;
    try {
      if (method === "Target.attachedToTarget") this.#attached(frame, target);
      else if (method === "Target.detachedFromTarget") this.#detached(frame);
      else if (target) this.#read(method, target, frame);
    } catch {
      // Clients hear the same message: what cannot be read here does not keep it from them.
      this.#rates.lose(method);
    }
  }

  #read(method: string, target: WatchedTarget, frame: Frame): void {
    const reader = readers.get(method);
    if (!reader || !this.#isRead(reader.kind) || target.isRetelling(method)) return;
    if (reader.kind === "console") target.releaseSoon();
    const { kind, longestBytes = longestFrameBytes } = reader;
    if (bytesOf(frame) <= longestBytes && this.#rates.takes(kind, bytesOf(frame)))
      return reader.read(target, paramsOf(JSON.parse(wholeOf(frame).toString())), method);
    const beginning = bytesOf(frame) > longestBytes ? this.#readLong(method, frame) : undefined;
    if (beginning) return target.tell(beginning, method);
    reader.lost?.(target, frame);
    this.#lose(method, target);
  }

  /** What pages show is followed for every category, since each event says where it happened. */
  #isRead(kind: EventCategory): boolean {
    return kind === "page" || this.parts.categories().has(kind);
  }

  #readLong(method: string, frame: Frame): Reading | undefined {
    const isRead =
      method === "Runtime.consoleAPICalled" && this.#rates.takes("console", longestFrameBytes / 8);
    return isRead ? longConsoleCall(frame) : undefined;
  }

  #lose(method: string, target: WatchedTarget): void {
    this.#rates.lose(method);
    const { page } = target;
    const lost = (this.#lostOf.get(page) ?? 0) + 1;
    this.#lostOf.set(page, lost);
    if (lost > mostLost) this.#rest(page);
  }

  #tellLost({ count, byMethod }: DroppedMessages, isLast: boolean): boolean {
    for (const [page, lost] of this.#lostOf)
      if (lost > 1) this.#lostOf.set(page, lost / 2);
      else this.#lostOf.delete(page);
    const data = { dropped: count, by_method: byMethod, paused_targets: [...this.#resting.keys()] };
    const how = isLast ? ({ countsLost: true } as const) : ({ isToldAgain: true } as const);
    return this.#tellOfMonitor("monitor_events_dropped", data, how);
  }

  /**
   * Leaves a page alone that says more than is read. Chromium would keep what waits to be read, and the
   * browser's clients would wait behind it.
   */
  #rest(page: WatchedTarget): void {
    const { targetId, session } = page;
    if (this.#resting.has(targetId)) return;
    const wake = (): void => {
      this.#resting.delete(targetId);
      // It may be refused, where the page has gone meanwhile.
      this.#connection.send("Target.attachToTarget", { targetId, flatten: true }).catch(() => {});
    };
    this.#resting.set(targetId, this.parts.clock.after(restMs, wake));
    this.#lostOf.delete(page);
    this.#connection.leave(this.#forget(session)).catch(() => {});
  }

  #attached(frame: Frame, parent: WatchedTarget | undefined): void {
    const params = this.#paramsOfTarget(frame);
    if (!params) return;
    const info = recordIn(params, "targetInfo");
    const [session = "", targetId = ""] = [textIn(params, "sessionId"), textIn(info, "targetId")];
    const type = watchedTypes.find((known) => known === textIn(info, "type"));
    if (type === undefined) return;
    const isNew = parent ? parent.hasNewTargets : !this.#known.has(targetId);
    if (type === "page") this.#known.add(targetId);
    const address = shownAddress(textIn(info, "url"));
    const target = this.#watch({ session, targetId, type, address, parent, isNew });
    if (isNew && type === "page") target.tell(tabOpened(info), "Target.attachedToTarget");
  }

  #watch(found: {
    readonly session: string;
    readonly targetId: string;
    readonly type: WatchedType;
    readonly address: ShownAddress;
    readonly parent: WatchedTarget | undefined;
    readonly isNew: boolean;
  }): WatchedTarget {
    const target = new WatchedTarget({
      ...found,
      clock: this.parts.clock,
      requestBytes: this.#requestBytes,
      hasClients: () => this.parts.hasClients(),
      ask: (method, params = {}) => this.#connection.send(method, params, found.session),
      tell: (told, reading, event) => this.#tell(told, reading, event),
      failed: (step) => this.#initFailed(step),
      settled: (page) => this.#settled(page),
    });
    this.#targets.set(found.session, target);
    target.prepare(this.parts.categories()).catch(() => {});
    return target;
  }

  #settled(page: WatchedTarget): void {
    if (this.parts.categories().has("screenshot")) void this.#screenshots.take(page);
  }

  #detached(frame: Frame): void {
    // Read whatever else is left out, since those that have gone would keep others out.
    const session = textIn(paramsOf(JSON.parse(wholeOf(frame).toString())), "sessionId") ?? "";
    const target = this.#targets.get(session);
    if (!target) return;
    this.#known.delete(target.targetId);
    this.#forget(session);
  }

  /** Forgets a target and what is within it; their sessions, its own first. */
  #forget(session: string): readonly string[] {
    const gone = this.#targets.get(session);
    const forgotten = [...this.#targets.values()].filter((target) => gone && target.isBelow(gone));
    for (const target of forgotten) {
      target.gone();
      this.#targets.delete(target.session);
      this.parts.left(target.targetId);
    }
    return forgotten.map((target) => target.session);
  }

  #paramsOfTarget(frame: Frame): ProtocolRecord | undefined {
    const bytes = bytesOf(frame);
    const isRead =
      bytes <= longestAddressBytes && this.#targets.size < mostTargets && this.#rates.takes("target", bytes);
    if (isRead) return paramsOf(JSON.parse(wholeOf(frame).toString()));
    this.#rates.lose("Target");
    return undefined;
  }

  #tell(target: WatchedTarget, reading: Reading, event?: string): void {
    const { type, category, data, wasCut, saysWhere, navigation } = reading;
    if (!this.parts.categories().has(category) || isOwnPage(target.page.address.url)) return;
    const { session_id, target_id, target_type } = target.where;
    const metadata = {
      cdp_session_id: String(session_id),
      target_id: String(target_id),
      target_type: String(target_type),
    };
    this.parts.emit({
      type,
      category,
      source: { kind: "cdp", ...(event !== undefined && { event }), metadata },
      data: saysWhere ? data : { ...target.context, ...data },
      truncated: wasCut || (!saysWhere && !("url" in data) && target.address.wasCut),
      navigation,
    });
  }

  #initFailed(step: string): void {
    this.#tellOfMonitor("monitor_init_failed", { step });
  }

  #tellOfMonitor(type: string, data: ProtocolRecord, how: Partial<SeenEvent> = {}): boolean {
    return this.parts.emit({ type, category: "monitor", source: { kind: "local_process" }, data, ...how });
  }
}
