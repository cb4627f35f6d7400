import type { Clock, Millis } from "../../base/clock.js";
import { within } from "../../base/deadline.js";
import { isRecord } from "../../base/is-record.js";
import { CdpRefused, PipeClosed } from "../../browser/cdp/cdp.js";
import {
  bytesOf,
  firstClientId,
  firstMonitorId,
  type Frame,
  summarize,
  wholeOf,
} from "../../browser/cdp/frame.js";
import type { Pipe } from "../../browser/cdp/pipe.js";
import type { ProtocolRecord } from "./protocol-record.js";

/** One message of a session, which is read only where it is wanted. */
export interface SessionEvent {
  readonly method: string;
  readonly session: string;
  readonly frame: Frame;
}

interface ConnectionParts {
  readonly pipe: Pipe;
  readonly clock: Clock;
  /** Called with every event of every session on the pipe, those of clients too. */
  onEvent(event: SessionEvent): void;
  onClosed(): void;
}

interface PendingCall {
  readonly method: string;
  readonly resolve: (result: ProtocolRecord) => void;
  readonly reject: (error: Error) => void;
}

/** Chromium has answered with more than is read. */
export class AnswerTooLong extends CdpRefused {
  constructor(method: string) {
    super(method, "the answer is too long");
    this.name = "AnswerTooLong";
  }
}

const limitMs: Millis = 5000;
/** The longest answer that is asked for is a screenshot in base64; longer ones are not read. */
const longestReplyBytes = 2 * 1024 * 1024;

/**
 * No id comes again while an answer to it may still come, whichever monitor of whichever browser has sent it.
 */
let lastId = firstMonitorId;
function nextId(): number {
  lastId = lastId + 1 < firstClientId ? lastId + 1 : firstMonitorId;
  return lastId;
}

/** The monitor's own sessions in a browser, beside those of clients and of the daemon. */
export class MonitorConnection {
  readonly #pending = new Map<number, PendingCall>();
  readonly #stops: (() => void)[];
  #root: string | undefined;
  #isClosed = false;
  /** Nobody listens any more. */
  #isLeft = false;

  constructor(private readonly parts: ConnectionParts) {
    this.#stops = [
      parts.pipe.onFrame((frame) => this.#take(frame)),
      parts.pipe.onClosed(() => {
        this.#end();
        if (!this.#isLeft) parts.onClosed();
      }),
    ];
  }

  /** The session that all others hang below; undefined until it is open. */
  get root(): string | undefined {
    return this.#root;
  }

  /** Throws where Chromium does not answer. */
  async open(): Promise<string> {
    const { sessionId } = await this.#send("Target.attachToBrowserTarget", {});
    this.#root = String(sessionId);
    return this.#root;
  }

  /** Throws `CdpRefused` (`AnswerTooLong` is one), `PipeClosed`, or `TimeLimitReached`. */
  async send(method: string, params: object, session = this.#root): Promise<ProtocolRecord> {
    if (this.#isLeft) throw new PipeClosed();
    return await this.#send(method, params, session);
  }

  async #send(method: string, params: object, session?: string): Promise<ProtocolRecord> {
    if (this.#isClosed) throw new PipeClosed();
    const id = nextId();
    const reply = new Promise<ProtocolRecord>((resolve, reject) =>
      this.#pending.set(id, { method, resolve, reject }),
    );
    const address = session === undefined ? {} : { sessionId: session };
    this.parts.pipe.send(JSON.stringify({ id, method, params, ...address }));
    return await within(this.parts.clock, { what: method, limitMs }, reply).finally(() =>
      this.#pending.delete(id),
    );
  }

  /**
   * Ends one of its sessions, the first; the others hang below it. While a passkey is armed Chromium ends it
   * later (late-detaches.ts).
   */
  async leave(sessions: readonly string[]): Promise<void> {
    const detach = async (): Promise<void> => {
      await this.#send("Target.detachFromTarget", { sessionId: sessions[0] }, this.#root);
    };
    await this.#leave(sessions, detach);
  }

  /** Ends all of its sessions; Chromium then forgets what they have asked for. `below`: all but the root. */
  async close(below: readonly string[]): Promise<void> {
    const root = this.#root;
    this.#isLeft = true;
    const detach = async (): Promise<void> => {
      try {
        if (root !== undefined) await this.#send("Target.detachFromTarget", { sessionId: root });
      } finally {
        this.#end();
      }
    };
    await this.#leave(root === undefined ? [] : [root, ...below], detach);
  }

  async #leave(ids: readonly string[], detach: () => Promise<void>): Promise<void> {
    const sessions = ids.map((id) => ({ id, hasPages: id === this.#root }));
    if (!this.parts.pipe.lateDetaches.takes({ sessions, detach })) await detach();
  }

  #end(): void {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    for (const { reject } of this.#pending.values()) reject(new PipeClosed());
    this.#pending.clear();
  }

  #take(frame: Frame): void {
    const { id, method, session } = summarize(frame);
    if (id === undefined) {
      if (method !== undefined && session !== undefined && !this.#isLeft)
        this.parts.onEvent({ method, session, frame });
      return;
    }
    const pending = this.#pending.get(id);
    if (pending) settle(pending, frame);
  }
}

function settle({ method, resolve, reject }: PendingCall, frame: Frame): void {
  if (bytesOf(frame) > longestReplyBytes) return reject(new AnswerTooLong(method));
  const reply: unknown = JSON.parse(wholeOf(frame).toString());
  const { result, error } = isRecord(reply) ? reply : {};
  if (isRecord(error)) reject(new CdpRefused(method, String(error["message"])));
  else resolve(isRecord(result) ? result : {});
}
