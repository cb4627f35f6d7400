import type { Clock, Millis } from "../base/clock.js";
import type { RequestId } from "../base/ids.js";
import type { ControlMessage } from "./ports.js";

/** How a wait ended: by a message, by its time, by its caller's going, or because this control stops. */
export type WaitEnd =
  | { readonly kind: "message"; readonly message: ControlMessage }
  | { readonly kind: "timeout" | "gone" | "stopping" };

/** One place where a request of this control waits for messages. */
export interface Place {
  /** Resolves at the first message, after `limitMs`, when `gone` aborts, or when the desk closes. */
  wait(limitMs: Millis, gone: AbortSignal): Promise<WaitEnd>;
  leave(): void;
}

/** The requests of this control that wait; a message is for one of them, or for nobody. */
export class Desk {
  readonly #places = new Map<RequestId, (end: WaitEnd) => void>();
  #isClosed = false;

  constructor(private readonly clock: Clock) {}

  /** Taken before the script runs, since its message may come before its reply. */
  take(connection: RequestId): Place {
    let settle: (end: WaitEnd) => void = () => {};
    const end = new Promise<WaitEnd>((resolve) => {
      settle = resolve;
    });
    this.#places.set(connection, settle);
    const leave = (): void => void this.#places.delete(connection);
    return {
      leave,
      wait: async (limitMs, gone) => {
        if (this.#isClosed) settle({ kind: "stopping" });
        const onGone = (): void => settle({ kind: "gone" });
        const cancel = this.clock.after(limitMs, () => settle({ kind: "timeout" }));
        gone.addEventListener("abort", onGone);
        if (gone.aborted) onGone();
        try {
          return await end;
        } finally {
          cancel();
          gone.removeEventListener("abort", onGone);
          leave();
        }
      },
    };
  }

  /** Delivers a message to its request, if it waits here. */
  deliver(connection: RequestId, message: ControlMessage): void {
    this.#places.get(connection)?.({ kind: "message", message });
  }

  /** A stopping control answers its waiting acquires at once. */
  close(): void {
    this.#isClosed = true;
    for (const settle of this.#places.values()) settle({ kind: "stopping" });
  }
}
