import type { Home } from "../../base/ids.js";

interface Batch<Item, Answer> {
  readonly items: Item[];
  readonly answers: Promise<readonly Answer[]>;
}

/** What comes in bursts is asked once per home and turn of the event loop. Answers stand in the order of the items. */
export class Gathered<Item, Answer> {
  readonly #open = new Map<Home, Batch<Item, Answer>>();

  constructor(private readonly ask: (home: Home, items: readonly Item[]) => Promise<readonly Answer[]>) {}

  async add(home: Home, item: Item): Promise<Answer | undefined> {
    const { items, answers } = this.#open.get(home) ?? this.#begin(home);
    const place = items.push(item) - 1;
    return (await answers)[place];
  }

  #begin(home: Home): Batch<Item, Answer> {
    const items: Item[] = [];
    const turn = new Promise<void>((resolve) => void setImmediate(resolve));
    const answers = turn.then(() => {
      this.#open.delete(home);
      return this.ask(home, items);
    });
    const batch = { items, answers };
    this.#open.set(home, batch);
    return batch;
  }
}
