/** Does a work on every item, so many at a time, and goes on past failures; gives them back. */
export async function sideBySide<Item>(items: Iterable<Item>, atOnce: number, work: (item: Item) => Promise<unknown>): Promise<readonly unknown[]> {
  const failures: unknown[] = [];
  const left = [...items].toReversed();
  const lane = async (): Promise<void> => {
    for (let item = left.pop(); item !== undefined; item = left.pop()) {
      await work(item).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, left.length) }, lane));
  return failures;
}
