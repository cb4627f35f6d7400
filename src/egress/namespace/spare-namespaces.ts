import type { Clock, Millis } from "../../base/clock.js";
import { type Log, textOf } from "../../base/log.js";
import type { ProxyListener } from "../parts.js";

/**
 * The listener of one browser's proxy, inside that browser's network namespace. `close` lets go of the
 * namespace; the kernel removes it once its last process and socket are gone too.
 */
export interface NamespaceListener extends ProxyListener {
  readonly tier: "namespace";
  /** Path of the network namespace, as /proc/<daemon pid>/fd/<n>. */
  readonly namespace: string;
  /** Path of the user namespace that owns it, where it was made without root; it is entered first. */
  readonly userNamespace?: string;
}

interface SpareNamespacesParts {
  /** Makes one; calls do not overlap. */
  make(): Promise<NamespaceListener>;
  /** Ends whatever makes them; the next `make` starts it again. */
  end(): Promise<void>;
  /** A launch that waits longer than this is refused. */
  readonly waitMs: Millis;
  /** How many are kept ready. */
  readonly size: number;
  readonly clock: Clock;
  readonly log: Log;
}

interface PendingTake {
  readonly resolve: (listener: NamespaceListener) => void;
  readonly reject: (error: unknown) => void;
}

/** What makes namespaces is a process of 40 MB: it is ended when nobody has wanted one for so long. */
const restAfterMs = 10_000;

/** Namespaces made ahead, so that a launch waits for none, and filled up behind it. */
export class SpareNamespaces {
  readonly #ready: NamespaceListener[] = [];
  readonly #waiters: PendingTake[] = [];
  #work: Promise<void> | undefined;
  #cancelRest = (): void => {};
  #isClosed = false;

  constructor(private readonly parts: SpareNamespacesParts) {
    this.#fill();
  }

  /**
   * The first to ask is the first served. Throws, with a text for people, where none can be made any more.
   */
  take(): Promise<NamespaceListener> {
    if (this.#isClosed) return Promise.reject(new Error("no network namespaces are made any more"));
    const listener = this.#ready.shift();
    const taken = listener ? Promise.resolve(listener) : this.#wait();
    this.#fill();
    return taken;
  }

  #wait(): Promise<NamespaceListener> {
    return new Promise((resolve, reject) => {
      const { clock, waitMs } = this.parts;
      const cancel = clock.after(waitMs, () => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1);
        reject(new Error(`no network namespace could be had within ${waitMs} ms`));
      });
      const settled =
        <Value>(settle: (value: Value) => void) =>
        (value: Value): void => {
          cancel();
          settle(value);
        };
      const waiter: PendingTake = { resolve: settled(resolve), reject: settled(reject) };
      this.#waiters.push(waiter);
    });
  }

  /** Lets go of all that nobody has taken. Resolves when nothing is left of them or of what makes them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRest();
    for (const { reject } of this.#waiters.splice(0)) reject(new Error("the daemon is stopping"));
    for (const listener of this.#ready.splice(0)) listener.close();
    await this.parts.end();
    await this.#work;
  }

  #fill(): void {
    this.#do(
      () => this.#fillUp(),
      () => (this.#cancelRest = this.parts.clock.after(restAfterMs, () => this.#rest())),
    );
  }

  /** What makes them ends. Where one could not be made ahead, it is tried again then. */
  #rest(): void {
    this.#do(
      () => this.parts.end(),
      () => void (this.#ready.length < this.parts.size && this.#fill()),
    );
  }

  /** Only one work runs at a time; those who came while it ended are served before what follows it. */
  #do(work: () => Promise<void>, next: () => void): void {
    if (this.#work !== undefined) return;
    this.#cancelRest();
    this.#work = work().finally(() => {
      this.#work = undefined;
      if (this.#isClosed) return;
      if (this.#waiters.length > 0) this.#fill();
      else next();
    });
  }

  async #fillUp(): Promise<void> {
    while (!this.#isClosed && (this.#waiters.length > 0 || this.#ready.length < this.parts.size)) {
      const mayGoOn = await this.parts.make().then(
        (listener) => this.#give(listener),
        (error: unknown) => this.#fail(error),
      );
      if (!mayGoOn) return;
    }
  }

  #give(listener: NamespaceListener): boolean {
    const waiter = this.#waiters.shift();
    if (this.#isClosed) listener.close();
    else if (waiter) waiter.resolve(listener);
    else this.#ready.push(listener);
    return true;
  }

  /**
   * Each failure is reported to one who waits; with nobody left it is not tried again before the next one
   * comes.
   */
  #fail(error: unknown): boolean {
    const waiter = this.#waiters.shift();
    waiter?.reject(error);
    if (!waiter && !this.#isClosed)
      this.parts.log.warn({ why: textOf(error) }, "no network namespace could be made ahead");
    return this.#waiters.length > 0;
  }
}
