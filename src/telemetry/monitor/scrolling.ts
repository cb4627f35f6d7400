import type { Clock, Millis } from "../../base/clock.js";

const settledMs: Millis = 300;
/** More elements than this do not scroll at once where a person or an agent scrolls. */
const mostElements = 32;

interface Point {
  readonly x: number;
  readonly y: number;
}

/** One movement of one element, from where it began to where it is over. */
export interface Scroll {
  readonly selector: string;
  readonly from: Point;
  readonly to: Point;
  /** The selector was cut. */
  readonly isCut?: boolean;
}

/** Puts the movements of an element together that follow each other within 300 ms. */
export class Scrolling {
  readonly #moving = new Map<string, { readonly from: Point; readonly cancel: () => void }>();

  constructor(
    private readonly clock: Pick<Clock, "after">,
    private readonly settled: (scroll: Scroll) => void,
  ) {}

  /** False where too many elements are moving for this one to be followed. */
  scrolled({ selector, from, to, isCut = false }: Scroll): boolean {
    const moving = this.#moving.get(selector);
    if (!moving && this.#moving.size >= mostElements) return false;
    moving?.cancel();
    const begun = moving?.from ?? from;
    const cancel = this.clock.after(settledMs, () => {
      this.#moving.delete(selector);
      this.settled({ selector, from: begun, to, isCut });
    });
    this.#moving.set(selector, { from: begun, cancel });
    return true;
  }

  stop(): void {
    for (const { cancel } of this.#moving.values()) cancel();
    this.#moving.clear();
  }
}
