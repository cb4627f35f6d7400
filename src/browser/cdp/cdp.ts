import type { CDPSession } from "playwright-core";
import { isRecord } from "../../base/is-record.js";
import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import { turns } from "../../base/fair-turns.js";
import { bytesOf, firstMonitorId, type Frame, frameHeadOf, frameTailOf, summarize } from "./frame.js";
import { readLists } from "./list-reader.js";
import type { Pipe } from "./pipe.js";
import { findTarget, longestEventBytes, paramsOf } from "./target-event.js";

declare const session: CDPSession;
export type CdpMethod = Parameters<CDPSession["send"]>[0];
export type CdpParams<M extends CdpMethod> = NonNullable<Parameters<typeof session.send<M>>[1]>;
type Reply<M extends CdpMethod> = Awaited<ReturnType<typeof session.send<M>>>;

/** Chromium's own refusal of a command. */
export class CdpRefused extends Error {
  /** `reason` is Chromium's message. */
  constructor(
    readonly method: string,
    readonly reason: string,
  ) {
    super(`${method}: ${reason}`);
    this.name = "CdpRefused";
  }
}

/** What Chromium does not want to do is left; anything else is told. */
export const ignoreRefusal = (error: unknown): void => {
  if (!(error instanceof CdpRefused)) throw error;
};

export class PipeClosed extends Error {
  constructor() {
    super("Chromium closed its pipe");
    this.name = "PipeClosed";
  }
}

interface PendingCommand {
  readonly method: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The part of an answer that is read. */
interface CommandAnswer {
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

type CdpListener = (params: Readonly<Record<string, unknown>>) => void;

const defaultLimitMs = 10_000;
/**
 * The longest answer that is asked for has all cookies, and all that Chromium keeps are shorter than this.
 */
const longestReplyBytes = 32 * 1024 * 1024;
/** The list begins three levels deep: `{"result":{"cookies":[`. */
const listDepth = 3;

/**
 * Our own CDP client on the browser's pipe. Clients of the gateway share the pipe. Their ids are higher than
 * ours and their events belong to sessions of their own, so a glance tells their frames apart, and they are
 * never parsed here.
 */
export class Cdp {
  readonly #pending = new Map<number, PendingCommand>();
  readonly #listeners = new Map<string, CdpListener>();
  /** Reading long answers takes this turn of the event loop. */
  readonly #turn = turns.open();
  #lastId = 0;
  #isClosed = false;

  constructor(
    private readonly pipe: Pipe,
    private readonly clock: Clock,
  ) {
    pipe.onFrame((frame) => this.#take(frame));
    pipe.onClosed(() => this.#close());
  }

  /** Throws `CdpRefused`, `PipeClosed`, or `TimeLimitReached` after `limitMs` (10 s). */
  send<M extends CdpMethod>(
    method: M,
    params: CdpParams<M>,
    to: { session?: string; limitMs?: Millis } = {},
  ): Promise<Reply<M>> {
    if (this.#isClosed) return Promise.reject(new PipeClosed());
    const id = this.#nextId();
    const reply = new Promise((resolve, reject) => this.#pending.set(id, { method, resolve, reject }));
    const address = to.session === undefined ? {} : { sessionId: to.session };
    this.pipe.send(JSON.stringify({ id, method, params, ...address }));
    const limit = { what: method, limitMs: to.limitMs ?? defaultLimitMs };
    return within(this.clock, limit, reply as Promise<Reply<M>>).finally(() => this.#pending.delete(id));
  }

  /** Ends a session on a page, or has it ended once no passkey is armed (late-detaches.ts). */
  async leave(id: string, to: { limitMs?: Millis } = {}): Promise<void> {
    const detach = async (): Promise<void> => {
      await this.send("Target.detachFromTarget", { sessionId: id }, to);
    };
    if (!this.pipe.lateDetaches.takes({ sessions: [{ id, hasPages: false }], detach })) await detach();
  }

  /**
   * Listens to an event of the given session, or of the browser's root session. Each event has one listener,
   * which is given nothing but the target, or the document that is navigated to, where the event is too long
   * to parse. The returned function stops listening.
   */
  on(event: string, listener: CdpListener, from?: string): () => void {
    const key = keyOf(event, from);
    this.#listeners.set(key, listener);
    return () => this.#listeners.delete(key);
  }

  #nextId(): number {
    this.#lastId = (this.#lastId + 1) % firstMonitorId;
    return this.#lastId;
  }

  #take(frame: Frame): void {
    const { id, method, session: from } = summarize(frame);
    if (id !== undefined) {
      const pending = this.#pending.get(id);
      if (pending && Buffer.isBuffer(frame)) settle(pending, answerOf(JSON.parse(frame.toString())));
      else if (pending) this.#takeLong(pending, frame);
      return;
    }
    const listener = method === undefined ? undefined : this.#listeners.get(keyOf(method, from));
    listener?.(readParams(frame));
  }

  #takeLong(pending: PendingCommand, frame: Frame): void {
    if (bytesOf(frame) > longestReplyBytes)
      return settle(pending, { error: { message: `the answer is longer than ${longestReplyBytes} bytes` } });
    readLists({ depth: listDepth, parts: [frame].flat() }, this.#turn).then(
      (message) => settle(pending, answerOf(message)),
      pending.reject,
    );
  }

  #close(): void {
    this.#isClosed = true;
    for (const { reject } of this.#pending.values()) reject(new PipeClosed());
    this.#pending.clear();
  }
}

const keyOf = (event: string, from = ""): string => `${event} ${from}`;

/** Only the target or the document, where there is one, of an event that is too long to parse. */
function readParams(frame: Frame): Readonly<Record<string, unknown>> {
  if (Buffer.isBuffer(frame) && frame.length <= longestEventBytes)
    return paramsOf(JSON.parse(frame.toString()));
  const targetInfo = findTarget(frame);
  return targetInfo ? { targetInfo } : findNavigation(frame);
}

const navigationHeadBytes = 512;
const navigationTailBytes = 512;
const committed =
  /"params":\{"frame":\{"id":"(?<id>[^"]+)",(?:"parentId":"(?<parentId>[^"]+)",)?"loaderId":"(?<loaderId>[^"]+)"/;
const startedHead = /"params":\{"frameId":"(?<frameId>[^"]+)"/;
const startedTail =
  /"loaderId":"(?<loaderId>[^"]+)","navigationType":"(?<navigationType>[A-Za-z]+)"\}(?:\}|,"sessionId":"[^"]+"\})$/;

/**
 * What a `Page.frameNavigated` or a `Page.frameStartedNavigating` that is too long to parse says of its
 * document, which has an address of up to 2 MiB (in the order that Chromium 156 writes). Quotation marks in
 * an address are escaped, so that no page writes what is read here.
 */
function findNavigation(frame: Frame): Readonly<Record<string, unknown>> {
  const head = frameHeadOf(frame).toString("latin1", 0, navigationHeadBytes);
  if (head.startsWith('{"method":"Page.frameNavigated"')) {
    const { groups } = committed.exec(head) ?? {};
    return groups === undefined ? {} : { frame: withoutAbsent(groups) };
  }
  if (!head.startsWith('{"method":"Page.frameStartedNavigating"')) return {};
  const bytes = frameTailOf(frame);
  const tail = bytes.toString("latin1", Math.max(0, bytes.length - navigationTailBytes));
  return { ...startedHead.exec(head)?.groups, ...startedTail.exec(tail)?.groups };
}

const withoutAbsent = (groups: Readonly<Record<string, string | undefined>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(groups).filter(([, value]) => value !== undefined));

function answerOf(message: unknown): CommandAnswer {
  if (!isRecord(message)) return { error: { message: "the answer is no object" } };
  const { result, error } = message;
  return error === undefined
    ? { result }
    : { error: { message: isRecord(error) ? String(error["message"]) : "refused" } };
}

function settle({ method, resolve, reject }: PendingCommand, { result, error }: CommandAnswer): void {
  if (error) reject(new CdpRefused(method, error.message));
  else resolve(result);
}
