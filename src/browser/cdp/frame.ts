/**
 * One message, without its NUL. A long one is in parts, since putting it together would take everybody's
 * time; the first has its head, the last its tail.
 */
export type Frame = Buffer | readonly Buffer[];

const nothing = Buffer.alloc(0);
export const frameHeadOf = (frame: Frame): Buffer => (Buffer.isBuffer(frame) ? frame : (frame[0] ?? nothing));
export const frameTailOf = (frame: Frame): Buffer =>
  Buffer.isBuffer(frame) ? frame : (frame.at(-1) ?? nothing);
export const bytesOf = (frame: Frame): number =>
  Buffer.isBuffer(frame) ? frame.length : frame.reduce((bytes, part) => bytes + part.length, 0);
/** The whole message, for a reader who needs all of it. */
export const wholeOf = (frame: Frame): Buffer => (Buffer.isBuffer(frame) ? frame : Buffer.concat(frame));

/** What a CDP message from Chromium says about itself at its head and its tail; its body is never parsed. */
interface FrameSummary {
  /** Only a reply has one. */
  readonly id?: number;
  /** Only an event has one. */
  readonly method?: string;
  /** The CDP session, absent for the browser's root session. */
  readonly session?: string;
}

export const headBytes = 128;
const tailBytes = 64;
const idHead = /^\{"id":(-?\d+),/;
const methodHead = /^\{"method":"([A-Za-z0-9.]+)"/;
const sessionTail = /,"sessionId":"([0-9A-Za-z-]{1,40})"\}$/;

/**
 * Reads id or method from the head and the session from the tail. Chromium writes `id` or `method` first and
 * the top-level `sessionId` last (Chromium 156, docs/chromium.md#cdp); a `sessionId` inside `params` or
 * `result` ends in `}}` and is not mistaken for it.
 */
export function summarize(frame: Frame): FrameSummary {
  const head = frameHeadOf(frame).toString("latin1", 0, headBytes);
  const tail = frameTailOf(frame);
  const session = sessionTail.exec(tail.toString("latin1", Math.max(0, tail.length - tailBytes)))?.[1];
  const id = idHead.exec(head)?.[1];
  const method = id === undefined ? methodHead.exec(head)?.[1] : undefined;
  return {
    ...(id === undefined ? {} : { id: Number(id) }),
    ...(method === undefined ? {} : { method }),
    ...(session === undefined ? {} : { session }),
  };
}

/**
 * The lowest message id of a monitor on the pipe (telemetry/monitor); ids of other commands of ours are
 * lower.
 */
export const firstMonitorId = 2 ** 29;
/** The lowest message id a gateway's client may use on the pipe; our own commands stay below it. */
export const firstClientId = 2 ** 30;
