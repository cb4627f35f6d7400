/**
 * Does some work on every item, so many at a time. It goes on past failures and returns them. An item is
 * taken from the iterable when its turn comes.
 */
export async function forEachConcurrently<Item>(
  items: Iterable<Item>,
  atOnce: number,
  work: (item: Item) => Promise<unknown>,
): Promise<readonly unknown[]> {
  const failures: unknown[] = [];
  const left = items[Symbol.iterator]();
  const lane = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true; next = left.next()) {
      await work(next.value).catch((error: unknown) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return failures;
}
