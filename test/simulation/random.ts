/** Draws numbers in an order that a seed determines (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from 0 up to, but not including, `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  between(least: number, most: number): number {
    return least + this.below(most - least + 1);
  }

  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[this.below(items.length)];
  }

  /** Removes any one item from a list and gives it. */
  take<Item>(items: Item[]): Item | undefined {
    return items.splice(this.below(items.length), 1)[0];
  }

  id(length: number): string {
    const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz";
    return Array.from({ length }, () => alphabet[this.below(alphabet.length)]).join("");
  }
}
