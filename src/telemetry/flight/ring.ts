/** The last so many entries. */
export class Ring<Entry> {
  #entries: Entry[] = [];
  #next = 0;

  constructor(private readonly most: number) {}

  push(entry: Entry): void {
    this.#entries[this.#next] = entry;
    this.#next = (this.#next + 1) % this.most;
  }

  get last(): Entry | undefined {
    return this.#entries.at(this.#next - 1);
  }

  /** The oldest first. */
  list(): readonly Entry[] {
    const isFull = this.#entries.length === this.most;
    return isFull
      ? [...this.#entries.slice(this.#next), ...this.#entries.slice(0, this.#next)]
      : this.#entries;
  }

  clear(): void {
    this.#entries = [];
    this.#next = 0;
  }
}
