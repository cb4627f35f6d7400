import type { TargetInfo } from "../../browser/cdp/target-event.js";

/**
 * Sees to it that a blank page is opened before the last page of the default context is closed: headful
 * Chromium shows no window without one, and Playwright finds no page. A context of a client's own does not
 * count: it goes with its client.
 * A page that closes itself is not announced; browser/cdp/pages.ts replaces the last one afterwards.
 */
export class LastPage {
  readonly #staying = new Set<string>();
  readonly #others = new Set<string>();

  constructor(
    private readonly defaultContext: string | undefined,
    private readonly openBlank: () => void,
  ) {}

  created(info: TargetInfo): void {
    if (info.type === "tab") return;
    const isPage = info.type === "page" && info.subtype === undefined;
    const stays =
      isPage && (this.defaultContext === undefined || info.browserContextId === this.defaultContext);
    (stays ? this.#staying : this.#others).add(info.targetId);
  }

  /** Before a close is sent: the blank page goes out first, on the same pipe, so Chromium opens it first. */
  closing(target: string): void {
    const isLast = this.#staying.size === 1 && this.#staying.has(target);
    // A tab's target closes its page too and is not listed here.
    const isUnknown = !this.#staying.has(target) && !this.#others.has(target);
    if (isLast || (isUnknown && this.#staying.size <= 1)) this.openBlank();
    this.#staying.delete(target);
  }

  destroyed(target: string): void {
    this.#others.delete(target);
    this.#staying.delete(target);
  }
}
