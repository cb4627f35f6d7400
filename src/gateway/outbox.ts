import type { Account } from "../base/budget.js";
import { bytesOf, type Frame } from "../browser/cdp/frame.js";

interface OutboxParts {
  send(frame: Frame | string): void;
  /** While it is there nothing of the browser may reach the client; see `Standstill`. */
  doubt(): Promise<void> | undefined;
  /** Bytes that are here. */
  readonly kept: Account;
}

/**
 * What the browser says to one client: sent at once, and where it is in doubt whether the browser is still
 * that client's, in its order once that is settled.
 */
export class Outbox {
  #frames: (Frame | string)[] = [];
  #bytes = 0;
  #isClosed = false;

  constructor(private readonly parts: OutboxParts) {}

  add(frame: Frame | string): void {
    if (this.#isClosed) return;
    const doubt = this.parts.doubt();
    if (!doubt && this.#frames.length === 0) return this.parts.send(frame);
    this.#frames.push(frame);
    this.#bytes += sizeOf(frame);
    if (this.#frames.length === 1) void doubt?.then(() => this.#sendKept());
    this.parts.kept.set(this.#bytes);
  }

  /** What is here is dropped. */
  close(): void {
    this.#isClosed = true;
    this.#forget();
    this.parts.kept.close();
  }

  #sendKept(): void {
    // Standing still once more puts what is here in doubt once more.
    const doubt = this.parts.doubt();
    if (doubt) return void doubt.then(() => this.#sendKept());
    const frames = this.#frames;
    this.#forget();
    this.parts.kept.set(0);
    for (const frame of frames) this.parts.send(frame);
  }

  #forget(): void {
    this.#frames = [];
    this.#bytes = 0;
  }
}

const sizeOf = (frame: Frame | string): number => (typeof frame === "string" ? frame.length : bytesOf(frame));
