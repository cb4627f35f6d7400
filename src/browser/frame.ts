/** What a CDP message from Chromium says of itself at its head and tail; its body is never parsed. */
export interface Peek {
  /** Of a reply. */
  readonly id?: number;
  /** Of an event. */
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
 * Reads id or method from the head and the session from the tail. Chromium writes `id` or `method` first and the
 * top-level `sessionId` last; a `sessionId` inside `params` or `result` ends in `}}` and is not mistaken for it.
 */
export function peek(frame: Buffer): Peek {
  const head = frame.toString("latin1", 0, headBytes);
  const session = sessionTail.exec(frame.toString("latin1", Math.max(0, frame.length - tailBytes)))?.[1];
  const id = idHead.exec(head)?.[1];
  const method = id === undefined ? methodHead.exec(head)?.[1] : undefined;
  return {
    ...(id === undefined ? {} : { id: Number(id) }),
    ...(method === undefined ? {} : { method }),
    ...(session === undefined ? {} : { session }),
  };
}

/** The lowest message id a gateway's client may use on the pipe; our own commands stay below it. */
export const firstClientId = 2 ** 30;
