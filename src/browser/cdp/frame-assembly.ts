import { type Account, Budget } from "../../base/budget.js";
import { type Frame, headBytes, summarize } from "./frame.js";

/**
 * No longer message is kept, so that a browser that sends without end does not fill memory. A client that has
 * so much unread is cut.
 */
export const longestFrameBytes = 128 * 1024 * 1024;
/** Longer messages stay in parts. */
const longBytes = 256 * 1024;
/** No longer part is read at once. Shorter parts are put together, so that there are few. */
const partBytes = 64 * 1024;
/** No part is shorter than this, so that the head is in one part and the tail is in one. */
const leastBytes = 4096;
const keptParts = 4;

/**
 * Counts the bytes of a browser's unfinished message. It calls `cut` where the message has to be given up.
 */
export type FrameBudget = (cut: () => void) => Account;

/** Counts each frame alone, without a budget that is shared. */
const countAlone: FrameBudget = (cut) =>
  new Budget({ browserBytes: longestFrameBytes, daemonBytes: longestFrameBytes }).open("", cut);

/**
 * Gathers the parts of one message. Of a message that was given up it keeps only the beginning and the end.
 */
export class FrameAssembler {
  #parts: Buffer[] = [];
  #bytes = 0;
  #head: Buffer | undefined;
  readonly #account: Account;

  constructor(counting: FrameBudget = countAlone) {
    this.#account = counting(() => (this.#head = this.#parts[0]?.subarray(0, headBytes)));
  }

  add(part: Buffer): void {
    this.#put(part);
    if (this.#head) this.#parts = this.#parts.slice(-keptParts);
    else this.#account.set(this.#bytes);
  }

  /** Takes the last part and returns the whole frame; undefined for an event that was given up. */
  end(last: Buffer): Frame | undefined {
    if (this.#parts.length === 0) return last;
    this.add(last);
    const isLong = this.#bytes > longBytes;
    const frame = this.#head
      ? givenUp(this.#head, this.#lastPart())
      : isLong
        ? this.#long()
        : Buffer.concat(this.#parts);
    this.clear();
    return frame;
  }

  clear(): void {
    this.#parts = [];
    this.#bytes = 0;
    this.#head = undefined;
    this.#account.close();
  }

  #put(part: Buffer): void {
    const last = this.#parts.at(-1);
    this.#bytes += part.length;
    if (last === undefined || (last.length >= leastBytes && last.length + part.length > partBytes))
      this.#parts.push(part);
    else this.#parts[this.#parts.length - 1] = Buffer.concat([last, part]);
  }

  #lastPart(): Buffer {
    const last = this.#parts.pop() ?? Buffer.alloc(0);
    return last.length < leastBytes ? Buffer.concat([this.#parts.pop() ?? Buffer.alloc(0), last]) : last;
  }

  #long(): readonly Buffer[] {
    const last = this.#lastPart();
    return [...this.#parts, last];
  }
}

/** Builds what is passed on in place of an answer that was too long. Events are dropped. */
function givenUp(head: Buffer, tail: Buffer): Buffer | undefined {
  const { id } = summarize(head);
  const { session } = summarize(tail);
  if (id === undefined) return undefined;
  const error = { code: -32000, message: "The answer is too long" };
  return Buffer.from(JSON.stringify({ id, error, ...(session === undefined ? {} : { sessionId: session }) }));
}
