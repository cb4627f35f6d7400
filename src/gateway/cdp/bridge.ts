import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import { firstClientId, type Frame, summarize } from "../../browser/cdp/frame.js";
import type { Pipe } from "../../browser/cdp/pipe.js";
import { PendingCalls } from "./pending-calls.js";
import { ClosedTargets } from "./closed-targets.js";
import { codes, type Command, errorReply } from "./command.js";
import { written } from "../gates/judge.js";
import { LastPage, type TargetInfo } from "./last-page.js";
import type { BridgeClient, RootTarget, BridgeConnection } from "./connection.js";
import { type CdpSession, CdpSessions } from "./sessions.js";
import { SessionQuotas, usualSessions } from "./session-quotas.js";
import {
  type ChromiumError,
  findAttached,
  findCrashedTarget,
  findDestroyedTarget,
  findDetachedSession,
  findTarget,
  readReply,
  rootReply,
  withId,
  withoutSession,
} from "./message-edits.js";

type Own = { readonly kind: "own"; readonly resolve: (reply: Reply) => void };
type Theirs = {
  readonly kind: "theirs";
  readonly session: CdpSession<BridgeClient>;
  readonly id: number;
  readonly method: string;
};
type Reply = { readonly result?: Record<string, unknown> } & ChromiumError;

/** A refusal of Chromium to a command of the bridge. */
export class ChromiumRefused extends Error {
  constructor(method: string, message: string) {
    super(`${method}: ${message}`);
    this.name = "CommandFailed";
  }
}

/**
 * Chromium ends the browser when a message on its pipe exceeds 100 MiB (kReceiveBufferSizeForDevTools in
 * content/browser/devtools/devtools_pipe_handler.cc); the margin is for the id, the session, the NUL and the
 * read that completes it.
 */
const maxBodyBytes = 100 * 1024 * 1024 - 129 * 1024;
/** Without a filter Chromium tells of all but the browser and the tabs, in one of which a PDF's viewer is. */
const tabsToo = [{ type: "browser", exclude: true }, {}];
const tabsAlone = [{ type: "tab" }, { exclude: true }];
const backlogBytes = 32 * 1024 * 1024;
const limitMs: Millis = 5000;

/**
 * The clients of one browser on its one pipe. Each has a CDP session of its own
 * (`Target.attachToBrowserTarget`), so that Chromium keeps them apart; ids are rewritten, bodies from the
 * browser are never parsed.
 * All of them hang below one control session, which also tells of crashed and closed targets.
 */
export class Bridge {
  readonly #sessions = new CdpSessions<BridgeClient>();
  readonly #calls = new PendingCalls<Own | Theirs>();
  readonly #shares: SessionQuotas<BridgeClient>;
  readonly #waiting = new Set<BridgeClient>();
  readonly #closed = new ClosedTargets();
  readonly #stops: (() => void)[];
  #lastPage: LastPage | undefined;
  #control: string | undefined;
  #opening: Promise<string> | undefined;
  #listing: Promise<readonly TargetInfo[]> | undefined;
  #isClosed = false;

  constructor(
    private readonly pipe: Pipe,
    private readonly clock: Clock,
    limits = usualSessions,
  ) {
    this.#shares = new SessionQuotas(this.#sessions, limits);
    this.#stops = [
      pipe.onFrame((frame) => this.#take(frame)),
      pipe.onClosed(() => this.close()),
      pipe.onDrained(() => this.#proceed()),
    ];
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Gives a client its root session; `undefined` where there is no such target. Throws when Chromium does not
   * answer.
   */
  async join(bridgeClient: BridgeClient, root: RootTarget): Promise<BridgeConnection | undefined> {
    const control = await this.#open();
    const session = await this.#attach(control, root);
    if (session === undefined) return undefined;
    if (this.#isClosed) throw new Error("the browser is gone");
    const target = root.kind === "target" ? { target: root.target } : {};
    const seated = this.#sessions.addRoot({ id: session, owner: bridgeClient, ...target });
    return { send: (command) => this.#send(seated, command), leave: () => this.#leave(seated) };
  }

  /** What `/json/list` shows. Whoever asks meanwhile gets the same. */
  targets(): Promise<readonly TargetInfo[]> {
    this.#listing ??= this.#list().finally(() => (this.#listing = undefined));
    return this.#listing;
  }

  async #list(): Promise<readonly TargetInfo[]> {
    const { targetInfos } = await this.#ask("Target.getTargets", {}, await this.#open());
    return targetInfos as readonly TargetInfo[];
  }

  /** Ends every client and forgets the pipe; Chromium itself is left as it is. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    for (const call of this.#calls.takeAll()) this.#fail(call, "The browser is gone");
    const roots = this.#sessions.roots();
    for (const root of roots) this.#sessions.remove(root);
    for (const root of roots) root.owner.ended("browser_gone");
  }

  #open(): Promise<string> {
    this.#opening ??= this.#openControl().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #openControl(): Promise<string> {
    const control = String((await this.#ask("Target.attachToBrowserTarget", {})).sessionId);
    this.#control = control;
    const { defaultBrowserContextId: own } = await this.#ask("Target.getBrowserContexts", {}, control);
    const openBlank = (): void =>
      void this.#ask("Target.createTarget", { url: "about:blank" }, control).catch(() => {});
    this.#lastPage = new LastPage(typeof own === "string" ? own : undefined, openBlank);
    await this.#ask("Target.setDiscoverTargets", { discover: true, filter: tabsToo }, control);
    return control;
  }

  async #attach(control: string, root: RootTarget): Promise<string | undefined> {
    if (root.kind === "browser")
      return String((await this.#ask("Target.attachToBrowserTarget", {}, control)).sessionId);
    if (this.#closed.has(root.target)) return undefined;
    try {
      return String(
        (await this.#ask("Target.attachToTarget", { targetId: root.target, flatten: true }, control))
          .sessionId,
      );
    } catch (error) {
      if (error instanceof ChromiumRefused && !this.#isClosed) return undefined;
      throw error;
    }
  }

  async #leave(root: CdpSession<BridgeClient>): Promise<void> {
    if (this.#sessions.find(root.id) !== root) return;
    const gone = this.#sessions.remove(root);
    for (const session of gone) for (const id of session.calls) this.#calls.take(id);
    this.#shares.forget(root.owner);
    this.#waiting.delete(root.owner);
    await this.#ask("Target.detachFromTarget", { sessionId: root.id }, this.#control).catch(
      (error: unknown) => {
        // Detached already, or gone with the browser: either is what was wanted.
        if (!(error instanceof ChromiumRefused) && !this.#isClosed) throw error;
      },
    );
  }

  #send(root: CdpSession<BridgeClient>, command: Command): void {
    const session = command.session === undefined ? root : this.#sessions.find(command.session);
    if (session === undefined || session.owner !== root.owner) {
      return root.owner.deliver(
        errorReply({ id: command.id }, codes.sessionGone, "Session with given id not found."),
      );
    }
    const body = command.written ?? written(command);
    const tooLong = isTooLong(body) ? "The message is longer than Chromium accepts" : undefined;
    const refused =
      this.#closed.whyRefused(this.#sessions, session, command) ??
      this.#shares.whyRefused(root.owner, command) ??
      tooLong;
    if (refused !== undefined) return root.owner.deliver(errorReply(command, codes.refused, refused));
    this.#beforeClose(session, command);
    const id = this.#calls.add({ kind: "theirs", session, id: command.id, method: command.method });
    session.calls.add(id);
    this.#shares.asked(root.owner, command.method);
    this.#write(id, body, session.id);
    if (this.pipe.backlogBytes() > backlogBytes) this.#hold(root.owner);
  }

  #write(id: number, body: string | Uint8Array, session: string): void {
    if (typeof body === "string") this.pipe.send(`{"id":${id},${body},"sessionId":"${session}"}`);
    else this.pipe.sendParts([`{"id":${id},`, body, `,"sessionId":"${session}"}`]);
  }

  #beforeClose(session: CdpSession<BridgeClient>, { method, params }: Command): void {
    if (method === "Target.closeTarget" && typeof params.targetId === "string")
      this.#lastPage?.closing(params.targetId);
    if (method === "Page.close" && session.target !== undefined) this.#lastPage?.closing(session.target);
  }

  #hold(bridgeClient: BridgeClient): void {
    if (this.#waiting.has(bridgeClient)) return;
    this.#waiting.add(bridgeClient);
    bridgeClient.wait();
  }

  #proceed(): void {
    for (const bridgeClient of this.#waiting) bridgeClient.proceed();
    this.#waiting.clear();
  }

  async #ask(method: string, params: object, session?: string): Promise<Record<string, unknown>> {
    if (this.#isClosed) throw new Error(`${method}: the browser is gone`);
    let id = 0;
    const reply = await within(
      this.clock,
      { what: method, limitMs },
      new Promise<Reply>((resolve) => {
        id = this.#calls.add({ kind: "own", resolve });
        this.pipe.send(
          JSON.stringify({ id, method, params, ...(session === undefined ? {} : { sessionId: session }) }),
        );
      }),
    ).finally(() => this.#calls.take(id));
    if (reply.error) throw new ChromiumRefused(method, reply.error.message);
    return reply.result ?? {};
  }

  #take(frame: Frame): void {
    const { id, method, session } = summarize(frame);
    if (id !== undefined) {
      if (id >= firstClientId) this.#answer(frame, id);
      return;
    }
    if (session === undefined || method === undefined) return;
    if (session === this.#control) return this.#hear(frame, method);
    const at = this.#sessions.find(session);
    if (at) this.#forward(frame, method, at);
  }

  #answer(frame: Frame, id: number): void {
    const call = this.#calls.take(id);
    if (call?.kind === "own") return call.resolve(readReply<Reply>(frame));
    if (call === undefined) return;
    const { session } = call;
    this.#answered(call, id);
    session.owner.deliver(session.isRoot ? rootReply(frame, call.id, session.id) : withId(frame, call.id));
  }

  #answered({ session, method }: Theirs, id: number): void {
    session.calls.delete(id);
    this.#shares.answered(session.owner, method);
  }

  #forward(frame: Frame, method: string, at: CdpSession<BridgeClient>): void {
    if (method === "Target.attachedToTarget") {
      const { session, target } = findAttached(frame) ?? {};
      // The client is not told.
      if (session === undefined || !target || this.#closed.note(target)) return this.#takeOff(session, at.id);
      this.#sessions.addChild(at, { id: session, target: target.targetId });
      if (this.#shares.hasTooMany(at.owner)) return at.owner.ended("too_many_sessions");
    }
    at.owner.deliver(at.isRoot ? withoutSession(frame, at.id) : frame);
    // After the event, which is what Playwright and Puppeteer settle their own calls by.
    if (method === "Inspector.targetCrashed") this.#failCalls(new Set([at]), "Target crashed");
    if (method === "Target.detachedFromTarget") this.#detached(findDetachedSession(frame));
  }

  /** Events of the control session. */
  #hear(frame: Frame, method: string): void {
    if (method === "Target.detachedFromTarget") return this.#detached(findDetachedSession(frame));
    if (method === "Target.targetDestroyed") return this.#destroyed(findDestroyedTarget(frame) ?? "");
    if (method === "Target.targetCrashed") {
      return this.#failCalls(this.#sessions.attachedTo(findCrashedTarget(frame) ?? ""), "Target crashed");
    }
    if (method !== "Target.targetCreated" && method !== "Target.targetInfoChanged") return;
    const target = findTarget(frame);
    if (target === undefined) return;
    if (method === "Target.targetCreated") this.#lastPage?.created(target);
    if (!this.#closed.note(target)) return;
    this.#clear(target.targetId);
    if (target.url !== "") this.#closeTabs().catch(() => {});
  }

  /**
   * Chromium does not tell when the address of a tab changes (156); that of a PDF's viewer has none at first.
   */
  async #closeTabs(): Promise<void> {
    const { targetInfos } = await this.#ask("Target.getTargets", { filter: tabsAlone }, this.#control);
    for (const tab of targetInfos as readonly TargetInfo[])
      if (this.#closed.note(tab)) this.#clear(tab.targetId);
  }

  #destroyed(target: string): void {
    this.#lastPage?.destroyed(target);
    this.#closed.gone(target);
  }

  /** Ends the sessions that clients have on a target. */
  #clear(target: string): void {
    for (const { id, parent } of this.#sessions.attachedTo(target))
      this.#takeOff(id, parent?.id ?? this.#control);
  }

  /**
   * Its target goes on if it waits for a debugger. What a page attached to cannot be detached (156: "Not
   * allowed"), and stays unheard.
   */
  #takeOff(session: string | undefined, parent: string | undefined): void {
    this.#ask("Runtime.runIfWaitingForDebugger", {}, session).catch(() => {});
    this.#ask("Target.detachFromTarget", { sessionId: session }, parent).catch(() => this.#detached(session));
  }

  #detached(id: string | undefined): void {
    const session = id === undefined ? undefined : this.#sessions.find(id);
    if (!session) return;
    this.#failCalls(this.#sessions.remove(session), "Session was detached");
    if (session.isRoot) session.owner.ended("target_closed");
  }

  #failCalls(sessions: ReadonlySet<CdpSession<BridgeClient>>, message: string): void {
    for (const session of sessions) for (const id of session.calls) this.#failCall(id, message);
  }

  #failCall(id: number, message: string): void {
    const call = this.#calls.take(id);
    if (call?.kind === "theirs") this.#answered(call, id);
    if (call) this.#fail(call, message);
  }

  #fail(call: Own | Theirs, message: string): void {
    if (call.kind === "own") return call.resolve({ error: { code: codes.sessionGone, message } });
    const { session, id } = call;
    session.owner.deliver(
      errorReply({ id, ...(session.isRoot ? {} : { session: session.id }) }, codes.sessionGone, message),
    );
  }
}

/** With room for the id and the session. A UTF-16 unit is at most three bytes of UTF-8. */
const isTooLong = (body: string | Uint8Array): boolean =>
  body.length * 3 > maxBodyBytes && Buffer.byteLength(body) > maxBodyBytes;
