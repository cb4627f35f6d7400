import type { Clock, Millis } from "../base/clock.js";
import { within } from "../base/deadline.js";
import { firstClientId, peek } from "../browser/frame.js";
import type { Pipe } from "../browser/pipe.js";
import { Calls } from "./calls.js";
import { codes, type Command, errorReply } from "./command.js";
import { LastPage, type TargetInfo } from "./last-page.js";
import { type Session, Sessions } from "./sessions.js";
import {
  findAttached, findCrashedTarget, findDestroyedTarget, findDetachedSession, rootReply, withId, withoutSession,
} from "./splice.js";

/** A client, as the bridge sees it. */
export interface Member {
  deliver(frame: Buffer | string): void;
  /** Its root session is over; nothing more will come. */
  ended(reason: "target_closed" | "browser_gone"): void;
  /** Chromium is behind with reading: send no more until it has caught up. */
  wait(): void;
  proceed(): void;
}

/** Where a client's root session is attached: the browser, or one target as `/devtools/page/…` asks for. */
export type Root = { readonly kind: "browser" } | { readonly kind: "target"; readonly target: string };

/** A client's place on the bridge. */
export interface Seat {
  send(command: Command): void;
  /** Detaches the root session, whereupon Chromium ends what the client attached and disposes its contexts. */
  leave(): Promise<void>;
}

type Own = { readonly kind: "own"; readonly resolve: (reply: Reply) => void };
type Theirs = { readonly kind: "theirs"; readonly session: Session<Member>; readonly id: number };
type Reply = { readonly result?: Record<string, unknown>; readonly error?: { readonly code: number; readonly message: string } };

/** A refusal of Chromium to a command of the bridge. */
export class CommandFailed extends Error {
  constructor(method: string, message: string) {
    super(`${method}: ${message}`);
    this.name = "CommandFailed";
  }
}

/**
 * Chromium ends the browser when a message on its pipe exceeds 100 MiB (kReceiveBufferSizeForDevTools in
 * content/browser/devtools/devtools_pipe_handler.cc); the margin is for the NUL and the read that completes it.
 */
const maxPipeBytes = 100 * 1024 * 1024 - 128 * 1024;
const backlogBytes = 32 * 1024 * 1024;
const limitMs: Millis = 5000;

/**
 * The clients of one browser on its one pipe. Each has a CDP session of its own (`Target.attachToBrowserTarget`), so that
 * Chromium keeps them apart; ids are rewritten, bodies from the browser are never parsed.
 *
 * All of them hang below one control session, which also tells of crashed and closed targets.
 */
export class Bridge {
  readonly #sessions = new Sessions<Member>();
  readonly #calls = new Calls<Own | Theirs>();
  readonly #waiting = new Set<Member>();
  readonly #stops: (() => void)[];
  #lastPage: LastPage | undefined;
  #control: string | undefined;
  #opening: Promise<string> | undefined;
  #isClosed = false;

  constructor(private readonly pipe: Pipe, private readonly clock: Clock) {
    this.#stops = [
      pipe.onFrame((frame) => this.#take(frame)),
      pipe.onClosed(() => this.close()),
      pipe.onDrained(() => this.#proceed()),
    ];
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Gives a client its root session; `undefined` where there is no such target. Throws when Chromium does not answer. */
  async join(member: Member, root: Root): Promise<Seat | undefined> {
    const control = await this.#open();
    const session = await this.#attach(control, root);
    if (session === undefined) return undefined;
    if (this.#isClosed) throw new Error("the browser is gone");
    const target = root.kind === "target" ? { target: root.target } : {};
    const seated = this.#sessions.addRoot({ id: session, owner: member, ...target });
    return {
      send: (command) => this.#send(seated, command),
      leave: () => this.#leave(seated),
    };
  }

  /** What `/json/list` shows. */
  async targets(): Promise<readonly TargetInfo[]> {
    const { targetInfos } = await this.#ask("Target.getTargets", {}, await this.#open());
    return targetInfos as readonly TargetInfo[];
  }

  /** Ends every client and forgets the pipe; Chromium itself is left as it is. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    for (const call of this.#calls.takeWhere(() => true)) this.#fail(call, "The browser is gone");
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
    const openBlank = (): void => void this.#ask("Target.createTarget", { url: "about:blank" }, control).catch(() => {});
    this.#lastPage = new LastPage(typeof own === "string" ? own : undefined, openBlank);
    await this.#ask("Target.setDiscoverTargets", { discover: true }, control);
    return control;
  }

  async #attach(control: string, root: Root): Promise<string | undefined> {
    if (root.kind === "browser") return String((await this.#ask("Target.attachToBrowserTarget", {}, control)).sessionId);
    try {
      return String((await this.#ask("Target.attachToTarget", { targetId: root.target, flatten: true }, control)).sessionId);
    } catch (error) {
      if (error instanceof CommandFailed && !this.#isClosed) return undefined;
      throw error;
    }
  }

  async #leave(root: Session<Member>): Promise<void> {
    if (this.#sessions.find(root.id) !== root) return;
    const gone = this.#sessions.remove(root);
    this.#calls.takeWhere((call) => call.kind === "theirs" && gone.has(call.session));
    this.#waiting.delete(root.owner);
    await this.#ask("Target.detachFromTarget", { sessionId: root.id }, this.#control).catch((error: unknown) => {
      // Detached already, or gone with the browser: either is what was wanted.
      if (!(error instanceof CommandFailed) && !this.#isClosed) throw error;
    });
  }

  #send(root: Session<Member>, command: Command): void {
    const session = command.session === undefined ? root : this.#sessions.find(command.session);
    if (session === undefined || session.owner !== root.owner) {
      return root.owner.deliver(errorReply({ id: command.id }, codes.sessionGone, "Session with given id not found."));
    }
    const body = bodyOf(command, session.id);
    if (isTooLong(body)) {
      return root.owner.deliver(errorReply(command, codes.refused, "The message is longer than Chromium accepts"));
    }
    this.#beforeClose(session, command);
    this.pipe.send(`{"id":${this.#calls.add({ kind: "theirs", session, id: command.id })},${body}`);
    if (this.pipe.backlogBytes() > backlogBytes) this.#hold(root.owner);
  }

  #beforeClose(session: Session<Member>, { method, params }: Command): void {
    if (method === "Target.closeTarget" && typeof params.targetId === "string") this.#lastPage?.closing(params.targetId);
    if (method === "Page.close" && session.target !== undefined) this.#lastPage?.closing(session.target);
  }

  #hold(member: Member): void {
    if (this.#waiting.has(member)) return;
    this.#waiting.add(member);
    member.wait();
  }

  #proceed(): void {
    for (const member of this.#waiting) member.proceed();
    this.#waiting.clear();
  }

  async #ask(method: string, params: object, session?: string): Promise<Record<string, unknown>> {
    if (this.#isClosed) throw new Error(`${method}: the browser is gone`);
    let id = 0;
    const reply = await within(this.clock, { what: method, limitMs }, new Promise<Reply>((resolve) => {
      id = this.#calls.add({ kind: "own", resolve });
      this.pipe.send(JSON.stringify({ id, method, params, ...(session === undefined ? {} : { sessionId: session }) }));
    })).finally(() => this.#calls.take(id));
    if (reply.error) throw new CommandFailed(method, reply.error.message);
    return reply.result ?? {};
  }

  #take(frame: Buffer): void {
    const { id, method, session } = peek(frame);
    if (id !== undefined) {
      if (id >= firstClientId) this.#answer(frame, id);
      return;
    }
    if (session === undefined || method === undefined) return;
    if (session === this.#control) return this.#hear(frame, method);
    const at = this.#sessions.find(session);
    if (at) this.#forward(frame, method, at);
  }

  #answer(frame: Buffer, id: number): void {
    const call = this.#calls.take(id);
    if (call?.kind === "own") return call.resolve(JSON.parse(frame.toString()) as Reply);
    if (call === undefined) return;
    const { session } = call;
    session.owner.deliver(session.isRoot ? rootReply(frame, call.id, session.id) : withId(frame, call.id));
  }

  #forward(frame: Buffer, method: string, at: Session<Member>): void {
    if (method === "Target.attachedToTarget") {
      const child = findAttached(frame);
      if (child) this.#sessions.addChild(at, { id: child.session, target: child.target });
    }
    at.owner.deliver(at.isRoot ? withoutSession(frame, at.id) : frame);
    // After the event, which is what Playwright and Puppeteer settle their own calls by.
    if (method === "Inspector.targetCrashed") this.#failCalls(new Set([at]), "Target crashed");
    if (method === "Target.detachedFromTarget") this.#detached(findDetachedSession(frame));
  }

  /** Events of the control session. */
  #hear(frame: Buffer, method: string): void {
    if (method === "Target.detachedFromTarget") return this.#detached(findDetachedSession(frame));
    if (method === "Target.targetDestroyed") return this.#lastPage?.destroyed(findDestroyedTarget(frame) ?? "");
    if (method === "Target.targetCrashed") {
      return this.#failCalls(this.#sessions.attachedTo(findCrashedTarget(frame) ?? ""), "Target crashed");
    }
    if (method !== "Target.targetCreated") return;
    const { params } = JSON.parse(frame.toString()) as { params: { targetInfo: TargetInfo } };
    this.#lastPage?.created(params.targetInfo);
  }

  #detached(id: string | undefined): void {
    const session = id === undefined ? undefined : this.#sessions.find(id);
    if (!session) return;
    this.#failCalls(this.#sessions.remove(session), "Session was detached");
    if (session.isRoot) session.owner.ended("target_closed");
  }

  #failCalls(sessions: ReadonlySet<Session<Member>>, message: string): void {
    if (sessions.size === 0) return;
    const isMeant = (call: Own | Theirs): boolean => call.kind === "theirs" && sessions.has(call.session);
    for (const call of this.#calls.takeWhere(isMeant)) this.#fail(call, message);
  }

  #fail(call: Own | Theirs, message: string): void {
    if (call.kind === "own") return call.resolve({ error: { code: codes.sessionGone, message } });
    const { session, id } = call;
    session.owner.deliver(errorReply({ id, ...(session.isRoot ? {} : { session: session.id }) }, codes.sessionGone, message));
  }
}

/** All but the id. Throws where the params are nested too deeply for JSON.stringify. */
const bodyOf = ({ method, params }: Command, session: string): string =>
  `"method":${JSON.stringify(method)},"params":${JSON.stringify(params)},"sessionId":"${session}"}`;

// A UTF-16 unit is at most three bytes of UTF-8.
const isTooLong = (text: string): boolean => text.length * 3 > maxPipeBytes && Buffer.byteLength(text) > maxPipeBytes;
