const mostWords = 100;

/**
 * Values of a label that is a reason. A text in place of a word, and a word too many, would make a series of
 * its own each time.
 */
export class ReasonLabels {
  readonly #known = new Set<string>();

  of(reason: string): string {
    if (this.#known.has(reason)) return reason;
    if (this.#known.size >= mostWords || !/^[a-z][a-z0-9_]{0,39}$/.test(reason)) return "other";
    this.#known.add(reason);
    return reason;
  }
}
