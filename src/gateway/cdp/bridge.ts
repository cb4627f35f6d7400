import type { Clock } from "../../base/clock.js";
import { firstClientId, type Frame, summarize } from "../../browser/cdp/frame.js";
import type { Pipe } from "../../browser/cdp/pipe.js";
import { PendingCalls } from "./pending-calls.js";
import { ClosedTargets } from "./closed-targets.js";
import { bindsContext, LeftSessions } from "./left-sessions.js";
import { ProtectedTargets, refusalOf } from "./protected-targets.js";
import { TargetHolds } from "./target-holds.js";
import { codes, type Command, errorReply, resultReply } from "./command.js";
import { written } from "../gates/judge.js";
import { CommandWriter, whyTooLong } from "./command-writer.js";
import { ControlSession, type BridgeCommand } from "./control-session.js";
import { findTarget, type TargetInfo } from "../../browser/cdp/target-event.js";
import type { BridgeClient, BridgeConnection, BridgeRecorder, RootTarget } from "./connection.js";
import { type CdpSession, CdpSessions } from "./sessions.js";
import { type SessionLimits, SessionQuotas, usualSessions } from "./session-quotas.js";
import {
  findAttached,
  findCrashedTarget,
  findDestroyedTarget,
  findDetachedSession,
  isResult,
  readReply,
  rootReply,
  withId,
  withoutSession,
} from "./message-edits.js";

interface ClientCall {
  readonly kind: "client";
  readonly session: CdpSession<BridgeClient>;
  readonly id: number;
  readonly method: string;
  /** What it creates is a context that goes with the session. */
  readonly bindsContext: boolean;
}

interface BridgeOptions {
  readonly sessions?: SessionLimits | undefined;
  readonly recorder?: BridgeRecorder;
}

/**
 * The clients of one browser on its one pipe. Each has a CDP session of its own
 * (`Target.attachToBrowserTarget`), so that Chromium keeps them apart; ids are rewritten, bodies from the
 * browser are never parsed. All of them hang below one control session.
 */
export class Bridge {
  readonly holds: TargetHolds<BridgeClient>;
  readonly #sessions = new CdpSessions<BridgeClient>();
  readonly filled = new ProtectedTargets({
    isOfExtension: (target) => this.#closed.isOfExtension(target),
    sessions: () => this.#sessions.all(),
  });
  readonly #calls = new PendingCalls<BridgeCommand | ClientCall>();
  readonly #quotas: SessionQuotas<BridgeClient>;
  readonly #writer: CommandWriter;
  readonly #closed = new ClosedTargets();
  readonly #stops: (() => void)[];
  readonly #control: ControlSession;
  readonly #left: LeftSessions<BridgeClient>;
  readonly #recorder: BridgeRecorder | undefined;

  constructor(pipe: Pipe, clock: Clock, { sessions = usualSessions, recorder }: BridgeOptions = {}) {
    this.#control = new ControlSession(pipe, clock, this.#calls);
    this.#left = new LeftSessions({
      late: pipe.lateDetaches,
      control: this.#control,
      isPage: (target) => this.filled.isPage(target),
    });
    this.#quotas = new SessionQuotas(this.#sessions, sessions, () => pipe.lateDetaches.count);
    this.#writer = new CommandWriter(pipe);
    this.#recorder = recorder;
    this.holds = new TargetHolds(clock);
    this.#stops = [
      pipe.onFrame((frame) => this.#receive(frame)),
      pipe.onClosed(() => this.close()),
      this.#writer.start(),
    ];
  }

  get isClosed(): boolean {
    return this.#control.isClosed;
  }

  /**
   * Gives a client its root session; `undefined` where there is no such target. Throws when Chromium does not
   * answer.
   */
  async join(bridgeClient: BridgeClient, root: RootTarget): Promise<BridgeConnection | undefined> {
    await this.#control.open();
    if (root.kind === "target" && this.#closed.has(root.target)) return undefined;
    const id = await this.#control.attach(root);
    if (id === undefined) return undefined;
    if (this.isClosed) throw new Error("the browser is gone");
    const target = root.kind === "target" ? { target: root.target } : {};
    const session = this.#sessions.addRoot({ id, owner: bridgeClient, ...target });
    return { send: (command) => this.#send(session, command), detach: () => this.#detach(session) };
  }

  /** What `/json/list` shows. Whoever asks meanwhile gets the same. */
  targets(): Promise<readonly TargetInfo[]> {
    return this.#control.targets();
  }

  /** Ends every client and forgets the pipe; Chromium itself is left as it is. */
  close(): void {
    if (this.isClosed) return;
    this.#control.close();
    for (const stop of this.#stops) stop();
    for (const call of this.#calls.takeAll()) this.#fail(call, "The browser is gone");
    const roots = this.#sessions.roots();
    for (const root of roots) this.#sessions.remove(root);
    for (const root of roots) root.owner.ended("browser_gone");
  }

  async #detach(root: CdpSession<BridgeClient>): Promise<void> {
    this.holds.forget(root.owner);
    if (this.#sessions.find(root.id) !== root) return;
    const gone = this.#sessions.remove(root);
    for (const { calls } of gone) for (const id of calls.keys()) this.#calls.take(id);
    this.#quotas.forget(root.owner);
    this.#writer.forget(root.owner);
    await this.#left.end(root, gone);
  }

  #send(root: CdpSession<BridgeClient>, command: Command): boolean {
    const session = command.session === undefined ? root : this.#sessions.find(command.session);
    if (session === undefined || session.owner !== root.owner) {
      root.owner.deliver(
        errorReply({ id: command.id }, codes.sessionGone, "Session with given id not found."),
      );
      return false;
    }
    const sendLater = (): void => void (this.#send(root, command) && root.owner.sent(command));
    if (this.holds.keeps(session, command, sendLater)) return false;
    const body = command.written ?? written(command);
    const refused =
      this.#closed.whyRefused(this.#sessions, session, command) ??
      this.filled.whyRefused(this.#sessions, session, command) ??
      this.#quotas.whyRefused(root.owner, command) ??
      this.#left.whyRefused(session, command) ??
      whyTooLong(body);
    if (refused !== undefined) {
      root.owner.deliver(refusalOf(command, refused));
      return false;
    }
    const left = this.#left.find(session, command);
    if (left) return this.#leave(left, session, command);
    this.#left.sent(session, command);
    this.#beforeClose(session, command);
    const { id: asked, method } = command;
    const call = { session, id: asked, method, bindsContext: bindsContext(command) };
    const id = this.#calls.add({ kind: "client", ...call });
    session.calls.set(id, method);
    this.#quotas.asked(root.owner, method);
    this.#writer.write(body, { id, session: session.id, owner: root.owner });
    this.#recorder?.sent(method);
    return true;
  }

  /** Tells a client that a session has ended, as Chromium would. */
  #leave(left: CdpSession<BridgeClient>, from: CdpSession<BridgeClient>, { id }: Command): boolean {
    const params = { sessionId: left.id, targetId: left.target };
    const to = from.isRoot ? {} : { sessionId: from.id };
    from.owner.deliver(JSON.stringify({ method: "Target.detachedFromTarget", params, ...to }));
    const gone = this.#detached(left.id);
    from.owner.deliver(resultReply({ id, ...(from.isRoot ? {} : { session: from.id }) }, {}));
    this.#left.end(left, gone).catch(() => {});
    return true;
  }

  #beforeClose(session: CdpSession<BridgeClient>, { method, params }: Command): void {
    if (method === "Target.closeTarget" && typeof params.targetId === "string")
      this.#control.lastPage?.closing(params.targetId);
    if (method === "Page.close" && session.target !== undefined)
      this.#control.lastPage?.closing(session.target);
  }

  #receive(frame: Frame): void {
    const { id, method, session } = summarize(frame);
    if (id !== undefined) {
      if (id >= firstClientId) this.#answer(frame, id);
      return;
    }
    if (session === undefined || method === undefined) return;
    if (this.#control.has(session)) return this.#controlEvent(frame, method);
    const at = this.#sessions.find(session);
    if (at) this.#forward(frame, method, at);
    else if (method === "Target.attachedToTarget") this.#left.attached(session, frame);
  }

  #answer(frame: Frame, id: number): void {
    const call = this.#calls.take(id);
    if (call?.kind === "own") return call.resolve(readReply(frame));
    if (call === undefined) return;
    const { session, method } = call;
    this.#answered(call, id);
    if (session.kept.delete(id) && isResult(frame)) return this.#fail(call, this.filled.whyKept(method));
    if (call.bindsContext) this.#left.created(session, readReply(frame));
    session.owner.deliver(session.isRoot ? rootReply(frame, call.id, session.id) : withId(frame, call.id));
  }

  #answered({ session, method }: ClientCall, id: number): void {
    session.calls.delete(id);
    this.#quotas.answered(session.owner, method);
  }

  #forward(frame: Frame, method: string, at: CdpSession<BridgeClient>): void {
    if (method === "Target.attachedToTarget") {
      const { session, target } = findAttached(frame) ?? {};
      // The client is not told.
      if (session === undefined || !target || this.#closed.note(target)) return this.#takeOff(session, at.id);
      this.#sessions.addChild(at, { id: session, target: target.targetId });
      if (this.#quotas.hasTooMany(at.owner)) return at.owner.ended("too_many_sessions");
    }
    if (!this.filled.hides(at, method)) at.owner.deliver(at.isRoot ? withoutSession(frame, at.id) : frame);
    else if (method === "Page.screencastFrame") this.#control.acknowledge(frame, at.id);
    // This comes after the event, because Playwright and Puppeteer settle their own calls by it.
    if (method === "Inspector.targetCrashed") this.#failCalls(new Set([at]), "Target crashed");
    if (method === "Target.detachedFromTarget") this.#detached(findDetachedSession(frame));
  }

  #controlEvent(frame: Frame, method: string): void {
    if (method === "Target.detachedFromTarget") return void this.#detached(findDetachedSession(frame));
    if (method === "Target.targetDestroyed") return this.#destroyed(findDestroyedTarget(frame) ?? "");
    if (method === "Target.targetCrashed") {
      this.#recorder?.state("page_crashed");
      return this.#failCalls(this.#sessions.attachedTo(findCrashedTarget(frame) ?? ""), "Target crashed");
    }
    if (method !== "Target.targetCreated" && method !== "Target.targetInfoChanged") return;
    const target = findTarget(frame);
    if (target === undefined) return;
    if (method === "Target.targetCreated") {
      this.#control.lastPage?.created(target);
      this.filled.created(target);
    }
    if (!this.#closed.note(target)) return;
    this.#clear(target.targetId);
    if (target.url !== "") this.#closeTabs().catch(() => {});
  }

  /**
   * Chromium 156 does not tell when the address of a tab changes; that of a PDF's viewer has none at first.
   */
  async #closeTabs(): Promise<void> {
    for (const tab of await this.#control.tabs()) if (this.#closed.note(tab)) this.#clear(tab.targetId);
  }

  #destroyed(target: string): void {
    this.#control.lastPage?.destroyed(target);
    this.#closed.gone(target);
    this.filled.gone(target);
  }

  /** Ends the sessions that clients have on a target. */
  #clear(target: string): void {
    for (const { id, parent } of this.#sessions.attachedTo(target)) this.#takeOff(id, parent?.id);
  }

  /**
   * The session's target goes on if it waits for a debugger. A session that a page attached cannot be
   * detached (Chromium 156: "Not allowed"); its messages are then dropped.
   */
  #takeOff(session: string | undefined, parent: string | undefined): void {
    this.#control.ask("Runtime.runIfWaitingForDebugger", {}, session).catch(() => {});
    this.#control
      .ask("Target.detachFromTarget", { sessionId: session }, parent)
      .catch(() => this.#detached(session));
  }

  #detached(id: string | undefined): ReadonlySet<CdpSession<BridgeClient>> {
    const session = id === undefined ? undefined : this.#sessions.find(id);
    if (!session) return new Set();
    const gone = this.#sessions.remove(session);
    this.#failCalls(gone, "Session was detached");
    for (const { owner, id: over } of gone) owner.detached(over);
    if (session.isRoot) session.owner.ended("target_closed");
    return gone;
  }

  #failCalls(sessions: ReadonlySet<CdpSession<BridgeClient>>, message: string): void {
    for (const { calls } of sessions) for (const id of calls.keys()) this.#failCall(id, message);
  }

  #failCall(id: number, message: string): void {
    const call = this.#calls.take(id);
    if (call?.kind === "client") this.#answered(call, id);
    if (call) this.#fail(call, message);
  }

  #fail(call: BridgeCommand | ClientCall, message: string): void {
    if (call.kind === "own") return call.resolve({ error: { code: codes.sessionGone, message } });
    const { session, id } = call;
    session.owner.deliver(
      errorReply({ id, ...(session.isRoot ? {} : { session: session.id }) }, codes.sessionGone, message),
    );
  }
}
