/**
 * A list of things that come and go with each request, and that somebody looks through now and then. Free
 * places are used again. A Map or a Set would make new tables every few changes, and what the old ones name
 * would stay in memory until the next full garbage collection.
 */
export class FreeList<Item> {
  readonly #items: (Item | undefined)[] = [];
  readonly #free: number[] = [];

  /** Gives its place. */
  add(item: Item): number {
    const place = this.#free.pop() ?? this.#items.length;
    this.#items[place] = item;
    return place;
  }

  /** Whether it was there still: its place may be another's by now. */
  remove(place: number, item: Item): boolean {
    if (this.#items[place] !== item) return false;
    this.#items[place] = undefined;
    this.#free.push(place);
    return true;
  }

  all(): readonly Item[] {
    return this.#items.filter((item) => item !== undefined);
  }
}
