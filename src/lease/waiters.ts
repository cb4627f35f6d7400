import type { Clock, Millis } from "../base/clock.js";
import type { RequestId } from "../base/ids.js";
import type { ControlMessage } from "../pool/ports/messages.js";

/**
 * How a wait ended: by a message, by its limit, because its caller has gone, or because this control stops.
 */
export type WaitResult =
  | { readonly kind: "message"; readonly message: ControlMessage }
  | { readonly kind: "timeout" | "gone" | "stopping" };

/** What one request of this control waits for messages by. */
export interface WaitHandle {
  /**
   * Resolves at the first message that was not waited for yet, `limitMs` after the handle was opened, when
   * `gone` aborts, or when this control stops.
   */
  wait(limitMs: Millis, gone: AbortSignal): Promise<WaitResult>;
  close(): void;
}

/** The messages that have come for one request, which takes one at a time. */
class WaitResults {
  readonly #come: WaitResult[] = [];
  #wake: ((end: WaitResult) => void) | undefined;

  put(end: WaitResult): void {
    const wake = this.#wake;
    this.#wake = undefined;
    if (wake) wake(end);
    else this.#come.push(end);
  }

  next(): Promise<WaitResult> {
    const [end] = this.#come.splice(0, 1);
    return end ? Promise.resolve(end) : new Promise((resolve) => (this.#wake = resolve));
  }
}

/** The requests of this control that wait; a message is for one of them, or for nobody. */
export class Waiters {
  readonly #waiting = new Map<RequestId, WaitResults>();
  #isClosed = false;

  constructor(private readonly clock: Clock) {}

  /** Has to be called before the script runs, since its message may come before its reply. */
  open(connection: RequestId): WaitHandle {
    const results = new WaitResults();
    const openedAt = this.clock.monotonic();
    this.#waiting.set(connection, results);
    return {
      close: () => void this.#waiting.delete(connection),
      wait: async (limitMs, gone) => {
        if (this.#isClosed) results.put({ kind: "stopping" });
        const onGone = (): void => results.put({ kind: "gone" });
        const leftMs = Math.max(0, openedAt + limitMs - this.clock.monotonic());
        const cancel = this.clock.after(leftMs, () => results.put({ kind: "timeout" }));
        gone.addEventListener("abort", onGone);
        if (gone.aborted) onGone();
        try {
          return await results.next();
        } finally {
          cancel();
          gone.removeEventListener("abort", onGone);
        }
      },
    };
  }

  /** Delivers a message to its request; false where it does not wait here. */
  deliver(connection: RequestId, message: ControlMessage): boolean {
    const results = this.#waiting.get(connection);
    results?.put({ kind: "message", message });
    return results !== undefined;
  }

  /** A stopping control answers its waiting acquires at once. */
  close(): void {
    this.#isClosed = true;
    for (const results of this.#waiting.values()) results.put({ kind: "stopping" });
  }
}
