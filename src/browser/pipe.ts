import type { Readable, Writable } from "node:stream";

/** Raw CDP over the two pipes of `--remote-debugging-pipe`: NUL-terminated JSON messages. */
export interface Pipe {
  /** Sends one message. Silently dropped once the pipe is closed: the sender hears of that by `onClosed`. */
  send(text: string): void;
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

/** Cuts what is read at its NULs; `clear` forgets the beginning of a message that will never be whole. */
function makeSplitter(onFrame: (frame: Buffer) => void): { take(chunk: Buffer): void; clear(): void } {
  let parts: Buffer[] = [];
  return {
    take(chunk) {
      let from = 0;
      for (let end = chunk.indexOf(0); end !== -1; end = chunk.indexOf(0, from)) {
        const last = chunk.subarray(from, end);
        const frame = parts.length === 0 ? last : Buffer.concat([...parts, last]);
        parts = [];
        from = end + 1;
        onFrame(frame);
      }
      if (from < chunk.length) parts.push(chunk.subarray(from));
    },
    clear() {
      parts = [];
    },
  };
}

/** Adds to a set; the result takes it out again. */
const listen = <Listener>(listeners: Set<Listener>, listener: Listener): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export function openPipe(input: Writable, output: Readable): Pipe {
  const frames = new Set<(frame: Buffer) => void>();
  const closings = new Set<() => void>();
  const splitter = makeSplitter((frame) => {
    for (const listener of frames) listener(frame);
  });
  let holds = 0;
  let isClosed = false;
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
    onFrame: (listener) => listen(frames, listener),
    onClosed: (listener) => listen(closings, listener),
    backlogBytes: () => input.writableLength,
    onDrained(listener) {
      input.on("drain", listener);
      return () => input.off("drain", listener);
    },
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
