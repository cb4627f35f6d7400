import type { Partition } from "../../base/ids.js";

interface Batch<Item, Answer> {
  readonly items: Item[];
  readonly answers: Promise<readonly Answer[]>;
}

/**
 * What comes in bursts is asked once per partition and turn of the event loop. Answers stand in the order of
 * the items.
 */
export class Batcher<Item, Answer> {
  readonly #open = new Map<Partition, Batch<Item, Answer>>();

  constructor(
    private readonly ask: (partition: Partition, items: readonly Item[]) => Promise<readonly Answer[]>,
  ) {}

  async add(partition: Partition, item: Item): Promise<Answer | undefined> {
    const { items, answers } = this.#open.get(partition) ?? this.#begin(partition);
    const place = items.push(item) - 1;
    return (await answers)[place];
  }

  #begin(partition: Partition): Batch<Item, Answer> {
    const items: Item[] = [];
    const turn = new Promise<void>((resolve) => void setImmediate(resolve));
    const answers = turn.then(() => {
      this.#open.delete(partition);
      return this.ask(partition, items);
    });
    const batch = { items, answers };
    this.#open.set(partition, batch);
    return batch;
  }
}
