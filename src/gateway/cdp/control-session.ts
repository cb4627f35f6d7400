import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import type { Pipe } from "../../browser/cdp/pipe.js";
import type { RootTarget } from "./connection.js";
import { type TargetInfo, targetInfoOf } from "../../browser/cdp/target-event.js";
import type { Frame } from "../../browser/cdp/frame.js";
import { type BridgeReply, findScreencast } from "./message-edits.js";

/** A command of the bridge itself. */
export interface BridgeCommand {
  readonly kind: "own";
  readonly resolve: (reply: BridgeReply) => void;
}

/** The part of `PendingCalls` that is used here; calls of clients are in it as well. */
interface OwnCalls {
  add(call: BridgeCommand): number;
  take(id: number): unknown;
}

/** A refusal of Chromium to a command of the bridge. */
class ChromiumRefused extends Error {
  constructor(method: string, message: string) {
    super(`${method}: ${message}`);
    this.name = "ChromiumRefused";
  }
}

/** Chromium's default filter leaves out the browser and the tabs, and the viewer of a PDF is in a tab. */
const tabsToo = [{ type: "browser", exclude: true }, {}];
const tabsAlone = [{ type: "tab" }, { exclude: true }];
const limitMs: Millis = 5000;

/**
 * The bridge's own session on the pipe. The sessions of all clients hang below it, and it is told of targets
 * that come, change, crash and go.
 */
export class ControlSession {
  #id: string | undefined;
  #opening: Promise<string> | undefined;
  #listing: Promise<readonly TargetInfo[]> | undefined;
  #lastPage: LastPage | undefined;
  #isClosed = false;

  constructor(
    private readonly pipe: Pipe,
    private readonly clock: Clock,
    private readonly calls: OwnCalls,
  ) {}

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Undefined until it is open. */
  get lastPage(): LastPage | undefined {
    return this.#lastPage;
  }

  /** Whether a message of this session is meant for the bridge. */
  has(session: string): boolean {
    return session === this.#id;
  }

  /** Has to be called when nothing is asked any more; the caller settles the calls that are still open. */
  close(): void {
    this.#isClosed = true;
  }

  /** Opens the session at the first call. Throws when Chromium does not answer; the next call tries again. */
  open(): Promise<string> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #open(): Promise<string> {
    const id = String((await this.#send("Target.attachToBrowserTarget", {})).sessionId);
    this.#id = id;
    const { defaultBrowserContextId: own } = await this.ask("Target.getBrowserContexts", {});
    const openBlank = (): void =>
      void this.ask("Target.createTarget", { url: "about:blank" }).catch(() => {});
    this.#lastPage = new LastPage(typeof own === "string" ? own : undefined, openBlank);
    await this.ask("Target.setDiscoverTargets", { discover: true, filter: tabsToo });
    return id;
  }

  /** Everything but tabs. Whoever asks meanwhile gets the same. */
  targets(): Promise<readonly TargetInfo[]> {
    this.#listing ??= this.#list().finally(() => (this.#listing = undefined));
    return this.#listing;
  }

  async #list(): Promise<readonly TargetInfo[]> {
    await this.open();
    return targetsIn(await this.ask("Target.getTargets", {}));
  }

  async tabs(): Promise<readonly TargetInfo[]> {
    return targetsIn(await this.ask("Target.getTargets", { filter: tabsAlone }));
  }

  /** The id of a client's new root session; `undefined` where there is no such target. */
  async attach(root: RootTarget): Promise<string | undefined> {
    if (root.kind === "browser")
      return String((await this.ask("Target.attachToBrowserTarget", {})).sessionId);
    try {
      const params = { targetId: root.target, flatten: true };
      return String((await this.ask("Target.attachToTarget", params)).sessionId);
    } catch (error) {
      if (error instanceof ChromiumRefused && !this.#isClosed) return undefined;
      throw error;
    }
  }

  /** Resolves when it is detached, whoever did it. `parent`: the session that it hangs below, or this one. */
  async detach(session: string, parent?: string): Promise<void> {
    await this.ask("Target.detachFromTarget", { sessionId: session }, parent).catch((error: unknown) => {
      // Detached already, or gone with the browser: either is what was wanted.
      if (!(error instanceof ChromiumRefused) && !this.#isClosed) throw error;
    });
  }

  /**
   * Acknowledges a picture of a screencast in the place of the client from which it is kept: Chromium sends
   * no further ones while a few are not acknowledged.
   */
  acknowledge(picture: Frame, session: string): void {
    const sessionId = findScreencast(picture);
    this.ask("Page.screencastFrameAck", { sessionId }, session).catch(() => {});
  }

  /** Sends a command of the bridge, on this session unless another is named. */
  ask(method: string, params: object, session = this.#id): Promise<Record<string, unknown>> {
    return this.#send(method, params, session);
  }

  async #send(method: string, params: object, session?: string): Promise<Record<string, unknown>> {
    if (this.#isClosed) throw new Error(`${method}: the browser is gone`);
    let id = 0;
    const reply = await within(
      this.clock,
      { what: method, limitMs },
      new Promise<BridgeReply>((resolve) => {
        id = this.calls.add({ kind: "own", resolve });
        this.pipe.send(
          JSON.stringify({ id, method, params, ...(session === undefined ? {} : { sessionId: session }) }),
        );
      }),
    ).finally(() => this.calls.take(id));
    if (reply.error) throw new ChromiumRefused(method, reply.error.message);
    return reply.result ?? {};
  }
}

const targetsIn = ({ targetInfos }: Record<string, unknown>): readonly TargetInfo[] =>
  Array.isArray(targetInfos) ? targetInfos.flatMap((info) => targetInfoOf(info) ?? []) : [];

/**
 * Sees to it that a blank page is opened before the last page of the default context is closed: headful
 * Chromium shows no window without one, and Playwright finds no page. A context of a client's own does not
 * count: it goes with its client.
 * A page that closes itself is not announced; browser/cdp/pages.ts replaces the last one afterwards.
 */
class LastPage {
  readonly #staying = new Set<string>();
  readonly #others = new Set<string>();

  constructor(
    private readonly defaultContext: string | undefined,
    private readonly openBlank: () => void,
  ) {}

  created(info: TargetInfo): void {
    if (info.type === "tab") return;
    const isPage = info.type === "page" && info.subtype === undefined;
    const stays =
      isPage && (this.defaultContext === undefined || info.browserContextId === this.defaultContext);
    (stays ? this.#staying : this.#others).add(info.targetId);
  }

  /** Before a close is sent: the blank page goes out first, on the same pipe, so Chromium opens it first. */
  closing(target: string): void {
    const isLast = this.#staying.size === 1 && this.#staying.has(target);
    // A tab's target closes its page too and is not listed here.
    const isUnknown = !this.#staying.has(target) && !this.#others.has(target);
    if (isLast || (isUnknown && this.#staying.size <= 1)) this.openBlank();
    this.#staying.delete(target);
  }

  destroyed(target: string): void {
    this.#others.delete(target);
    this.#staying.delete(target);
  }
}
