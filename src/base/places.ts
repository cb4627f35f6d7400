/**
 * Things that come and go with each request, all of which somebody looks at now and then. A place is used
 * again: a Map or a Set is made anew every few changes, and what its old tables name stays in memory until
 * the garbage collector looks at everything.
 */
export class Places<Item> {
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
