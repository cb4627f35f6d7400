import type { Readable, Writable } from "node:stream";
import { headBytes, peek } from "./frame.js";

/** Raw CDP over the two pipes of `--remote-debugging-pipe`: NUL-terminated JSON messages. */
export interface Pipe {
  /** Sends one message. Silently dropped once the pipe is closed: the sender hears of that by `onClosed`. */
  send(text: string): void;
  /** One message in parts. */
  sendParts(parts: readonly (string | Uint8Array)[]): void;
  /** Every message, whole, without its NUL. The buffer belongs to the listener. The result stops listening. */
  onFrame(listener: (frame: Buffer) => void): () => void;
  onClosed(listener: () => void): () => void;
  /** What was sent and Chromium has not yet read. */
  backlogBytes(): number;
  /** All that was sent has been read. */
  onDrained(listener: () => void): () => void;
  /** Stops reading, so that Chromium feels the pressure; counted: as many `resume` as `hold`. */
  hold(): void;
  resume(): void;
}

/** A browser that sends without end does not fill memory; clients are cut when they have so much unread. */
const longestFrameBytes = 128 * 1024 * 1024;
/** So that one browser's events are not everybody's round of the event loop: at some 8 µs each, half a millisecond. */
const framesPerRound = 64;
const keptParts = 4;

/** Gathers the parts of one message; of one that is too long only its beginning and its end. */
class Gathered {
  #parts: Buffer[] = [];
  #bytes = 0;
  #head: Buffer | undefined;

  add(part: Buffer): void {
    this.#parts.push(part);
    this.#bytes += part.length;
    if (this.#bytes <= longestFrameBytes) return;
    this.#head ??= Buffer.concat(this.#parts.slice(0, keptParts)).subarray(0, headBytes);
    this.#parts = this.#parts.slice(-keptParts);
  }

  /** With its last part, all of it; undefined where nobody can be told of it. */
  end(last: Buffer): Buffer | undefined {
    if (this.#parts.length === 0) return last;
    this.add(last);
    const whole = Buffer.concat(this.#parts);
    const frame = this.#head ? overlong(this.#head, whole) : whole;
    this.clear();
    return frame;
  }

  clear(): void {
    this.#parts = [];
    this.#bytes = 0;
    this.#head = undefined;
  }
}

/** In place of an answer that is not passed on. Events are dropped. */
function overlong(head: Buffer, tail: Buffer): Buffer | undefined {
  const { id } = peek(head);
  const { session } = peek(tail);
  if (id === undefined) return undefined;
  const error = { code: -32000, message: `The answer is longer than ${longestFrameBytes} bytes` };
  return Buffer.from(JSON.stringify({ id, error, ...(session === undefined ? {} : { sessionId: session }) }));
}

/** Cuts what is read at its NULs. `later` puts off what is left of a chunk when there was enough for one round. */
function makeSplitter(onFrame: (frame: Buffer) => void, later: (rest: () => void) => void): { take(chunk: Buffer): void; clear(): void } {
  const gathered = new Gathered();
  const take = (chunk: Buffer): void => {
    let from = 0;
    for (let frames = 0; frames < framesPerRound; frames += 1) {
      const end = chunk.indexOf(0, from);
      if (end === -1) return from < chunk.length ? gathered.add(chunk.subarray(from)) : undefined;
      const frame = gathered.end(chunk.subarray(from, end));
      from = end + 1;
      if (frame) onFrame(frame);
    }
    if (from < chunk.length) later(() => take(chunk.subarray(from)));
  };
  return { take, clear: () => gathered.clear() };
}

/** Adds to a set; the result takes it out again. */
const listen = <Listener>(listeners: Set<Listener>, listener: Listener): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Counted: as many `resume` as `hold`. */
function makeHolds(output: Readable): Pick<Pipe, "hold" | "resume"> {
  let holds = 0;
  return {
    hold() {
      holds += 1;
      output.pause();
    },
    resume() {
      holds = Math.max(0, holds - 1);
      if (holds === 0) output.resume();
    },
  };
}

export function openPipe(input: Writable, output: Readable): Pipe {
  const frames = new Set<(frame: Buffer) => void>();
  const closings = new Set<() => void>();
  let isClosed = false;
  const holds = makeHolds(output);
  const splitter = makeSplitter(
    (frame) => {
      for (const listener of frames) listener(frame);
    },
    (rest) => {
      holds.hold();
      setImmediate(() => {
        holds.resume();
        if (!isClosed) rest();
      });
    },
  );
  const close = (): void => {
    if (isClosed) return;
    isClosed = true;
    splitter.clear();
    for (const listener of closings) listener();
  };
  output.on("data", splitter.take).on("close", close).on("error", close);
  input.on("close", close).on("error", close);

  return {
    send(text) {
      if (!isClosed) input.write(`${text}\0`);
    },
    sendParts(parts) {
      if (isClosed) return;
      input.cork();
      for (const part of parts) input.write(part);
      input.write("\0");
      input.uncork();
    },
    onFrame: (listener) => listen(frames, listener),
    onClosed: (listener) => listen(closings, listener),
    backlogBytes: () => input.writableLength,
    onDrained(listener) {
      input.on("drain", listener);
      return () => input.off("drain", listener);
    },
    ...holds,
  };
}
