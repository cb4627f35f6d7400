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

/** The same, and throws the first failure once every item has had its turn. */
export async function attemptEach<Item>(
  ...given: Parameters<typeof forEachConcurrently<Item>>
): Promise<void> {
  const [first] = await forEachConcurrently(...given);
  if (first !== undefined) throw first;
}

/** Does some work one run at a time: all who ask for it during a run share the next. */
export function shareRuns(work: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  const begin = (): Promise<void> => {
    next = undefined;
    return work();
  };
  return () => {
    if (!next) {
      next = last.then(begin);
      last = next.catch(() => {});
    }
    return next;
  };
}
