import { shapeLimits, guessAddressee, unprocessable } from "./cdp/command.js";
import { judgeMessage, type JudgedMessage, type JudgeContext, unjudged } from "./gates/judge.js";
import { measure } from "./cdp/json-shape.js";
import type { Millis } from "../base/clock.js";
import type { FairTurn } from "../base/fair-turns.js";

interface InboxParts extends JudgeContext {
  readonly turn: FairTurn;
  /** Judges in another thread, unless `gone` aborts before; undefined where it could not. */
  judgeElsewhere(message: Buffer, gone: AbortSignal): Promise<JudgedMessage | undefined>;
  act(judged: JudgedMessage): void;
  /** While it is there nothing may reach the browser; see `Standstill`. */
  doubt(): Promise<void> | undefined;
  /** Nothing more may be read until `proceed`. */
  wait(): void;
  proceed(): void;
  /** What is here and not yet judged has become more or less. */
  kept(bytes: number): void;
}

/**
 * A message longer than this is judged in another thread, which takes some 0.2 ms more; reading one that is
 * not takes up to 1 ms.
 */
const longBytes = 64 * 1024;
/** A message of more values than this is judged in another thread, too. */
const manyValues = 2048;
/** Each message counts for at least this much: ws reads it before, and it is written to the browser after. */
const messageMs: Millis = 0.012;

/**
 * The messages of one client, judged in their order: short ones at once as long as it is the browser's turn.
 */
export class Inbox {
  #messages: Buffer[] = [];
  #bytes = 0;
  /** Something is waited for, and nothing is to be judged before it. */
  #isWaiting = false;
  /** Nothing more is read of the client. */
  #isHeld = false;
  #isClosed = false;
  /** Made when a message is judged elsewhere, which most clients never send. */
  #closing: AbortController | undefined;

  constructor(private readonly parts: InboxParts) {}

  add(message: Buffer): void {
    if (this.#isClosed) return;
    const isFree = !this.#isWaiting && !this.parts.turn.isOver && !this.parts.doubt();
    if (isFree) return this.#take(message);
    this.#messages.push(message);
    this.#keep(message.length);
    if (!this.#isWaiting) this.#waitForTurn();
  }

  /** What is here is dropped. */
  close(): void {
    this.#isClosed = true;
    this.#closing?.abort();
    this.#messages = [];
    this.#keep(-this.#bytes);
  }

  #keep(bytes: number): void {
    this.#bytes += bytes;
    if (bytes !== 0) this.parts.kept(this.#bytes);
  }

  #waitForTurn(): void {
    this.#wait();
    this.parts.turn.wait(() => this.#goOnUndoubted());
  }

  /** Goes on once nothing is in doubt. */
  #goOnUndoubted(): void {
    const doubt = this.parts.doubt();
    if (doubt) void doubt.then(() => this.#goOnUndoubted());
    else if (!this.#isClosed) this.#goOn();
  }

  #wait(): void {
    this.#isWaiting = true;
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.parts.wait();
  }

  /**
   * Takes at least one message, so that every client's turn comes. No more is read before all are taken: a
   * short one needs ten times its length while it is here.
   */
  #goOn(): void {
    this.#isWaiting = false;
    do {
      const message = this.#messages.shift();
      if (!message) break;
      this.#keep(-message.length);
      this.#take(message);
      if (this.#isWaiting) return;
    } while (!this.parts.turn.isOver);
    if (this.#messages.length > 0) return this.#waitForTurn();
    this.#isHeld = false;
    this.parts.proceed();
  }

  #take(message: Buffer): void {
    const { turn } = this.parts;
    if (message.length > longBytes) return this.#judgeElsewhere(message);
    const judge = (): void => {
      const shape = measure(message, shapeLimits);
      if (typeof shape !== "string" && shape.values > manyValues) this.#judgeElsewhere(message);
      else
        this.#act(
          () => judgeMessage(message, this.parts, shape),
          () => guessAddressee(message),
        );
    };
    turn.run(judge, { leastMs: messageMs });
  }

  /** What a client sends ends nothing but its own command. */
  #act(judge: () => JudgedMessage, to: () => Parameters<typeof unjudged>[0]): void {
    try {
      this.parts.act(judge());
    } catch {
      this.parts.act({ kind: "fault", reply: unprocessable(to()) });
    }
  }

  #judgeElsewhere(message: Buffer): void {
    const to = guessAddressee(message);
    const { length } = message;
    // Before its bytes are counted, since the client may be cut for them.
    this.#closing ??= new AbortController();
    this.#wait();
    this.#keep(length);
    void this.parts.judgeElsewhere(message, this.#closing.signal).then(async (judged) => {
      await this.parts.doubt();
      if (this.#isClosed) return;
      this.#keep(-length);
      this.#act(
        () => judged ?? unjudged(to, "The message could not be read in time"),
        () => to,
      );
      this.#goOn();
    });
  }
}
