import type { Clock, Millis } from "../../base/clock.js";
import { type Command, unprocessable } from "./command.js";
import type { CdpSession } from "./sessions.js";

/** A client whose commands may have to wait. */
interface HeldClient {
  wait(): void;
  proceed(): void;
  deliver(reply: string): void;
}

type HeldCommand = Pick<Command, "id" | "method" | "session">;

/** Clients wait no longer for a page that is being written into, since it may never answer. */
const longestHoldMs: Millis = 2000;
/** The command that carries a message to another target, which only Chromium knows. */
const carrier = "Target.sendMessageToTarget";

/** What clients say to pages that are just being written into, until that is over. */
export class TargetHolds<Client extends HeldClient> {
  /** How often each target is held. */
  readonly #held = new Map<string, number>();
  readonly #waiting = new Map<Client, (() => void)[]>();

  constructor(private readonly clock: Clock) {}

  /** Until the returned function is called, or a limit is over. */
  hold(targets: readonly string[]): () => void {
    for (const target of targets) this.#held.set(target, this.#countOf(target) + 1);
    let release = (): void => {
      release = () => {};
      cancel();
      this.#release(targets);
    };
    const cancel = this.clock.after(longestHoldMs, () => release());
    return () => release();
  }

  /**
   * Whether a command has to wait; `send` is then called when it need not any more. A client that waits with
   * one waits with all that follow, so that they stay in their order.
   */
  keeps(session: CdpSession<Client>, command: HeldCommand, send: () => void): boolean {
    if (this.#held.size === 0) return false;
    const { owner } = session;
    const queue = this.#waiting.get(owner);
    if (!queue && command.method !== carrier && !this.#isHeld(session)) return false;
    const sendLater = (): void => {
      try {
        send();
      } catch {
        // What a client sends ends nothing but its own command, nor keeps others' from being sent.
        owner.deliver(unprocessable(command));
      }
    };
    if (queue) queue.push(sendLater);
    else {
      this.#waiting.set(owner, [sendLater]);
      owner.wait();
    }
    return true;
  }

  /** The client has gone; what it has said is dropped. */
  forget(client: Client): void {
    this.#waiting.delete(client);
  }

  #isHeld(session: CdpSession<Client>): boolean {
    for (let at: CdpSession<Client> | undefined = session; at; at = at.parent)
      if (at.target !== undefined && this.#held.has(at.target)) return true;
    return false;
  }

  #countOf(target: string): number {
    return this.#held.get(target) ?? 0;
  }

  #release(targets: readonly string[]): void {
    for (const target of targets) {
      const count = this.#countOf(target) - 1;
      if (count > 0) this.#held.set(target, count);
      else this.#held.delete(target);
    }
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [client, queue] of waiting) {
      for (const send of queue) send();
      client.proceed();
    }
  }
}
