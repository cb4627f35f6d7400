import type { ServerResponse } from "node:http";
import { keyOf, type Principal } from "../access/principal.js";
import type { Clock, Millis } from "../base/clock.js";
import { type Log, textOf } from "../base/log.js";

interface OpenRequestsParts {
  /** Which of these API keys let nobody in any more. */
  endedAmong(ids: readonly string[]): Promise<readonly string[]>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Well within the 5 s that docs/access.md promises, also where one look takes its whole limit. */
const lookMs: Millis = 1000;

/**
 * Requests whose answer is not whole yet: a wait for a browser, a stream, a long download. A credential is
 * judged when a request comes; one that ends afterwards ends what it has opened, by a look every second.
 */
export class OpenRequests {
  readonly #open = new Map<ServerResponse, Principal>();
  #stop: (() => void) | undefined;
  #isLooking = false;

  constructor(private readonly parts: OpenRequestsParts) {}

  /** The root key never ends. Who has hung up while they were judged has nothing open. */
  add(principal: Principal, response: ServerResponse): void {
    if (keyOf(principal) === undefined && principal.expiresAt === undefined) return;
    if (response.destroyed) return;
    this.#stop ??= this.parts.clock.every(lookMs, () => void this.#look());
    this.#open.set(response, principal);
    response.once("close", () => this.leave(response));
  }

  /** Lets a request be answered whatever becomes of its credential. */
  leave(response: ServerResponse): void {
    this.#open.delete(response);
  }

  close(): void {
    this.#stop?.();
  }

  async #look(): Promise<void> {
    if (this.#isLooking || this.#open.size === 0) return;
    this.#isLooking = true;
    try {
      this.#cut(await this.#judge());
    } catch (error) {
      this.parts.log.warn({ error: textOf(error) }, "open requests were not looked at");
    } finally {
      this.#isLooking = false;
    }
  }

  /**
   * The connection is closed, which ends a wait as if its caller had gone; a repeat is refused. A reply whose
   * turn has not come would close it only then.
   */
  #cut(isOver: (principal: Principal) => boolean): void {
    for (const [response, principal] of this.#open) if (isOver(principal)) response.req.socket.destroy();
  }

  async #judge(): Promise<(principal: Principal) => boolean> {
    const ids = new Set([...this.#open.values()].flatMap((principal) => keyOf(principal) ?? []));
    const ended = new Set(ids.size > 0 ? await this.parts.endedAmong([...ids]) : []);
    const now = this.parts.clock.now();
    return (principal) => (principal.expiresAt ?? Infinity) <= now || ended.has(keyOf(principal) ?? "");
  }
}
