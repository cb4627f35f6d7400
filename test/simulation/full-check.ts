import type { AnyRecord } from "../support/store/store-bed.js";
import { type BrowserId, type Partition } from "../../src/base/ids.js";
import { browserParser, browserStates } from "../../src/pool/browser.js";
import { partitionKey, type PartitionPart, nodeKey } from "../../src/store/redis/keys.js";
import { checkIndex } from "../support/store/index-check.js";
import { hold } from "./shadow.js";
import type { World } from "./world.js";

/** Checks every key of every partition against the others. */
export async function checkAll(world: World): Promise<void> {
  for (const partition of world.partitions()) await checkPartition(world, partition);
  await checkRooms(world);
}

async function checkPartition(world: World, partition: Partition): Promise<void> {
  const { redis, project } = world.bed;
  const key = (part: PartitionPart): string => partitionKey(project, partition, part);
  const [texts, leases, waiting, sets, templateKeys, pool] = await Promise.all([
    redis.hvals(key("browsers")),
    redis.hgetall(key("leases")),
    redis.hkeys(key("waiterRecords")),
    Promise.all(
      [...browserStates, "discarded", "provisional", "waitQueue"].map((part) =>
        redis.zrange(key(part as PartitionPart), "0", "-1"),
      ),
    ),
    redis.hkeys(key("templates")),
    redis.hmget(key("pool"), "networkGeneration", "kind"),
  ]);
  const replaceable = await redis.smembers(key("replaceable"));
  const browsers = new Map<BrowserId, AnyRecord>(
    texts.map(browserParser.json).map((browser) => [browser.id, browser]),
  );
  const [network, kind] = pool;
  for (const browser of browsers.values()) {
    const isDiscarded = sets[browserStates.length]?.includes(browser.id);
    const holding = browserStates.filter((_, index) => sets[index]?.includes(browser.id));
    if (isDiscarded)
      hold(
        holding.length === 0 && browser.state === "idle",
        () => `${browser.id} was discarded, is ${browser.state} and stands in ${holding.join()}`,
      );
    hold(
      isDiscarded || (holding.length === 1 && holding[0] === browser.state),
      () => `${browser.id} is ${browser.state} and stands in ${holding.join()}`,
    );
    checkRecord(browser, leases);
    hold(
      browser.state === "retiring" || templateKeys.includes(browser.templateKey),
      () => `the template of ${browser.id} is gone`,
    );
    if (browser.state === "idle" && !isDiscarded)
      hold(
        browser.networkGeneration === Number(network),
        () => `${browser.id} is idle under an older network`,
      );
    hold(kind !== "on-demand" || browser.state !== "idle", () => `${browser.id} is idle on demand`);
  }
  await checkIndex(world.bed, partition, [...browsers.values()]);
  const [provisional = [], waiters = []] = sets.slice(-2);
  for (const [lease, id] of Object.entries(leases)) {
    hold(
      browsers.get(id as BrowserId)?.lease?.id === lease,
      () => `${lease} is noted for ${id}, which does not say so`,
    );
  }
  for (const lease of provisional) hold(lease in leases, () => `${lease} is provisional and over`);
  for (const id of replaceable)
    hold(
      browsers.has(id as BrowserId) && browsers.get(id as BrowserId)?.state !== "retiring",
      () => `${id} is replaceable and over`,
    );
  if (kind === "pool")
    hold(
      waiters.every((id) => waiting.includes(id)),
      () => "somebody in the queue is not remembered",
    );
  const shadows = [...world.shadow.leases.values()].filter((lease) => lease.partition === partition);
  for (const lease of shadows)
    hold(leases[lease.id] === lease.browser, () => `${lease.id} was granted and is not noted`);
}

function checkRecord(browser: AnyRecord, leases: Record<string, string>): void {
  const { id, state, lease, claim } = browser;
  hold(
    (lease !== undefined) === (state === "leased"),
    () => `${id} is ${state}${lease ? " with" : " without"} a lease`,
  );
  if (lease) hold(leases[lease.id] === id, () => `${id} holds ${lease.id}, which is not noted`);
  if (["launching", "resetting", "retiring"].includes(state))
    hold(claim !== undefined, () => `${id} is ${state} without a claim`);
}

/** Checks that each browser on a node has reserved room there. */
async function checkRooms(world: World): Promise<void> {
  const { redis, poolStore } = world.bed;
  const records = (
    await Promise.all(world.partitions().map((partition) => poolStore.browsers(partition)))
  ).flatMap(({ browsers }) => browsers);
  for (const { id } of world.nodes) {
    const places = await redis.hkeys(nodeKey(id, "room"));
    const homeless = records.find((browser) => browser.node === id && !places.includes(browser.id));
    hold(!homeless, () => `${homeless?.id} has no place on ${id}`);
  }
}
