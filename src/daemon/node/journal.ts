import { createHash } from "node:crypto";
import { join } from "node:path";
import type { NodeId } from "../../base/ids.js";
import type { Stops } from "../../base/stops.js";
import { Journal } from "../../node/journal/journal.js";
import { JournalFiles } from "../../node/journal/journal-files.js";
import { Recovery, type RecoveryCounts } from "../../node/journal/recovery.js";
import type { Slots } from "../../node/slots.js";
import { schema } from "../../store/redis/schema.js";
import type { DaemonKeys, DaemonParts } from "../parts.js";

/** A node of the largest kind serves some hundred pools, and has some hundred browsers of 2 KiB each. */
const mostBytes = 64 * 2 ** 20;

export interface JournalPart {
  readonly journal: Journal;
  readonly recovery: Recovery;
}

interface JournalParts extends Pick<DaemonParts, "config" | "clock" | "log" | "stores"> {
  readonly keys: Pick<DaemonKeys, "seal">;
  readonly metrics: { readonly epochs: { recovered(counts: Readonly<RecoveryCounts>): void } };
}

/** What this node would write again into a Redis that has forgotten everything. */
export async function openJournal(
  { config, clock, log, keys, metrics, stores }: JournalParts,
  { node, slots }: { node: NodeId; slots: Slots },
  stops: Stops,
): Promise<JournalPart> {
  const { poolStore, nodes, dataset: store } = stores;
  const directory = join(config.dataDir, "journal");
  const files = await JournalFiles.open({ directory, seal: keys.seal, log, mostBytes });
  const redis = redisName(config.redis.url?.reveal() ?? "private");
  const journal = await Journal.open({ node, files, store, poolStore, clock, log, redis });
  stops.add("journal", () => journal.close());
  const recovery = new Recovery({ node, journal, store, slots, nodes, log, meter: metrics.epochs });
  return { journal, recovery };
}

/** Names a Redis by its server and the layout of its keys: the same text in every daemon. */
const redisName = (url: string): string =>
  createHash("sha256")
    .update(`${schema} ${url.replaceAll(/\/\/[^/@]*@/g, "//")}`)
    .digest("hex")
    .slice(0, 16);
