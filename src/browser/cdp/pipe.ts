import type { Readable, Writable } from "node:stream";
import type { Millis } from "../../base/clock.js";
import { type FairTurn, turns } from "../../base/fair-turns.js";
import type { Frame } from "./frame.js";
import { type FrameBudget, FrameAssembler } from "./frame-assembly.js";
import { LateDetaches } from "./late-detaches.js";

/** Raw CDP over the two pipes of `--remote-debugging-pipe`: NUL-terminated JSON messages. */
export interface Pipe {
  /**
   * Sends one message. Once the pipe is closed messages are dropped silently; `onClosed` tells the sender.
   */
  send(text: string): void;
  /** Sends one message that comes in parts. */
  sendParts(parts: readonly (string | Uint8Array)[]): void;
  /**
   * Calls the listener with every message, once all of it is there. Its bytes belong to all listeners. The
   * returned function stops listening.
   */
  onFrame(listener: (frame: Frame) => void): () => void;
  onClosed(listener: () => void): () => void;
  /** The bytes that were sent and that Chromium has not read yet. */
  backlogBytes(): number;
  /** Calls the listener when all that was sent has been read. */
  onDrained(listener: () => void): () => void;
  /**
   * Stops reading, so that Chromium has to wait. Calls are counted: reading goes on after as many `resume` as
   * `hold`.
   */
  hold(): void;
  resume(): void;
  /** Whoever leaves a session on a page asks there first. */
  readonly lateDetaches: LateDetaches;
}

/**
 * Each message counts for at least this much, which includes the work that its listeners put off. So a turn
 * has 64 messages at most.
 */
const frameMs: Millis = 0.008;
/** The time that it takes to read 64 KiB, the most that comes at once. */
const chunkMs: Millis = 0.03;
/** What a browser may say in the long run. */
const longRun = { share: 1 / 16, bytesPerSecond: 16 * 1024 * 1024 };

interface Splitting {
  readonly turn: FairTurn;
  readonly counting?: FrameBudget | undefined;
  take(frame: Frame): void;
  /**
   * Called when there was enough for one round of the event loop: nothing more is to be read until `proceed`.
   */
  wait(): void;
  proceed(): void;
}

interface Splitter {
  take(chunk: Buffer): void;
  /** Ends the reading of a browser that is gone, after what it has said before. */
  finish(): void;
}

/** Splits what is read at its NULs, as long as it is the browser's turn. */
function makeSplitter({ turn, counting, ...reader }: Splitting): Splitter {
  const assembler = new FrameAssembler(counting);
  const takeFrame = (last: Buffer): void => {
    const frame = assembler.end(last);
    if (frame) reader.take(frame);
  };
  let waiting: Buffer[] = [];
  const later = (rest: Buffer): void => {
    waiting.push(rest);
    reader.wait();
    turn.wait(() => {
      reader.proceed();
      const next = waiting.shift();
      if (next) take(next);
    });
  };
  const take = (chunk: Buffer): void => {
    let from = 0;
    do {
      const end = chunk.indexOf(0, from);
      if (end === -1) {
        const rest = chunk.subarray(from);
        return turn.run(() => assembler.add(rest), { leastMs: chunkMs, bytes: rest.length });
      }
      turn.run(() => takeFrame(chunk.subarray(from, end)), { leastMs: frameMs, bytes: end - from });
      from = end + 1;
    } while (from < chunk.length && !turn.isOver);
    if (from < chunk.length) later(chunk.subarray(from));
  };
  return {
    take: (chunk) => (turn.isOver ? later(chunk) : take(chunk)),
    finish() {
      const left = Buffer.concat(waiting);
      waiting = [];
      for (let from = 0, end = left.indexOf(0); end !== -1; from = end + 1, end = left.indexOf(0, from))
        takeFrame(left.subarray(from, end));
      assembler.clear();
    },
  };
}

/** Adds a listener to a set; the returned function removes it. */
const listen = <Listener>(listeners: Set<Listener>, listener: Listener): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Holds are counted: each `hold` needs one `resume`. */
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

export interface PipeParts {
  readonly turn?: FairTurn;
  readonly counting?: FrameBudget;
}

export function openPipe(
  input: Writable,
  output: Readable,
  { turn = turns.open(longRun), counting }: PipeParts = {},
): Pipe {
  const frames = new Set<(frame: Frame) => void>();
  const closings = new Set<() => void>();
  let isClosed = false;
  const holds = makeHolds(output);
  const splitter = makeSplitter({
    turn,
    counting,
    wait: () => holds.hold(),
    proceed: () => holds.resume(),
    take(frame) {
      for (const listener of frames) listener(frame);
    },
  });
  const close = (): void => {
    if (isClosed) return;
    isClosed = true;
    splitter.finish();
    for (const listener of closings) listener();
  };
  output.on("data", splitter.take).on("close", close).on("error", close);
  input.on("close", close).on("error", close);

  const send = (text: string): void => {
    if (!isClosed) input.write(`${text}\0`);
  };

  return {
    send,
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
    lateDetaches: new LateDetaches(send),
  };
}
