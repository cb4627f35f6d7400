/** Bytes in, bytes out: a step of a pipeline (`stream.pipeline`). */
export type StreamStep = (source: AsyncIterable<Buffer>) => AsyncGenerator<Buffer, void>;

/** The same bytes in pieces of exactly this size, the last one excepted. */
export async function* inChunks(
  source: AsyncIterable<Buffer>,
  sizeBytes: number,
): AsyncGenerator<Buffer, void> {
  let held: Buffer[] = [];
  let length = 0;
  for await (const chunk of source) {
    held.push(chunk);
    length += chunk.length;
    if (length < sizeBytes) continue;
    const joined = Buffer.concat(held, length);
    let at = 0;
    for (; length - at >= sizeBytes; at += sizeBytes) yield joined.subarray(at, at + sizeBytes);
    held = at === length ? [] : [joined.subarray(at)];
    length -= at;
  }
  if (length > 0) yield Buffer.concat(held, length);
}

/** What `work` makes of each item, in the items' order, `width` of them in the making at once. */
export async function* mapInOrder<Item, Made>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Made>,
  width: number,
): AsyncGenerator<Made, void> {
  const making: Promise<Made>[] = [];
  for await (const item of items) {
    const made = work(item);
    // A failure is reported when its turn comes, or never where an earlier one has failed.
    made.catch(() => {});
    making.push(made);
    if (making.length >= width) yield await next(making);
  }
  while (making.length > 0) yield await next(making);
}

function next<Made>(making: Promise<Made>[]): Promise<Made> {
  const first = making.shift();
  if (!first) throw new Error("nothing is in the making");
  return first;
}
