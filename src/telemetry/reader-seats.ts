import type { BrowserId } from "../base/ids.js";

/** How many may read at once: of one browser, and of all at this daemon. */
export class ReaderSeats {
  readonly #taken = new Map<BrowserId, number>();
  #all = 0;

  constructor(private readonly limits: { readonly ofBrowser: number; readonly ofAll: number }) {}

  /** What gives the seat back, which may be called twice; undefined where none is free. */
  take(browser: BrowserId): (() => void) | undefined {
    const taken = this.#taken.get(browser) ?? 0;
    if (taken >= this.limits.ofBrowser || this.#all >= this.limits.ofAll) return undefined;
    this.#taken.set(browser, taken + 1);
    this.#all += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#giveBack(browser);
    };
  }

  #giveBack(browser: BrowserId): void {
    const left = (this.#taken.get(browser) ?? 1) - 1;
    if (left === 0) this.#taken.delete(browser);
    else this.#taken.set(browser, left);
    this.#all -= 1;
  }
}
