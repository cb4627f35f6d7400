import type { Partition } from "../../../src/base/ids.js";
import type { Browser } from "../../../src/pool/browser.js";
import { partitionKey, type PartitionPart } from "../../../src/store/redis/keys.js";
import type { StoreBed } from "./store-bed.js";

type Indexed = Browser & { readonly replaceable?: boolean; readonly recycleAt?: number };

/** What of the index is not as the records say; undefined where all is. */
export async function indexFault(
  { redis, project }: Pick<StoreBed, "redis" | "project">,
  partition: Partition,
  browsers: readonly Browser[],
): Promise<string | undefined> {
  const key = (part: PartitionPart): string => partitionKey(project, partition, part);
  const inService = (browsers as readonly Indexed[]).filter(({ state }) => state !== "retiring");
  const fresh = inService.filter(({ replaceable }) => !replaceable);
  const [places, generations, ages, changed] = await Promise.all([
    redis.zrange(key("nodeIndex"), "0", "-1"),
    redis.zrange(key("generationIndex"), "0", "-1", "WITHSCORES"),
    redis.zrange(key("ageIndex"), "0", "-1"),
    redis.hkeys(key("nodeStamps")),
  ]);
  const served = new Set(await redis.zrange(key("leaseCountIndex"), "0", "-1", "WITHSCORES"));
  const scores = new Map(
    generations.flatMap((id, place) =>
      place % 2 === 0 ? [[id, Number(generations[place + 1])] as const] : [],
    ),
  );
  const differ = (what: string, is: readonly string[], should: readonly string[]): string | undefined => {
    const [one, other] = [is.toSorted().join(), should.toSorted().join()];
    return one === other ? undefined : `${what}: ${one} in place of ${other}`;
  };
  return (
    differ(
      "places",
      places,
      browsers.map(({ node, id }) => `${node} ${id}`),
    ) ??
    differ(
      "generations",
      [...scores].map(String),
      inService.map(({ id, generation }) => `${id},${generation}`),
    ) ??
    differ(
      "ages",
      ages,
      fresh.filter(({ recycleAt }) => recycleAt !== undefined).map(({ id }) => id),
    ) ??
    differ(
      "served",
      fresh.filter(({ id }) => served.has(id)).map(({ id }) => id),
      fresh.filter(({ served: count }) => count > 0).map(({ id }) => id),
    ) ??
    differ(
      "changed",
      changed.filter((field) => field !== "moved last" && field !== "revised last"),
      [...new Set(browsers.map(({ node }) => node))],
    )
  );
}

export async function checkIndex(
  bed: Pick<StoreBed, "redis" | "project">,
  partition: Partition,
  browsers: readonly Browser[],
): Promise<void> {
  const fault = await indexFault(bed, partition, browsers);
  if (fault !== undefined) throw new Error(`the index of ${partition} is not what the records say: ${fault}`);
}
