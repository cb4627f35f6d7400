import type { Partition, PoolId } from "../base/ids.js";
import type { Browser } from "../pool/browser.js";
import type { PoolSpec } from "../spec/launch-template.js";
import { type BrowserCounts, type FillHold, type FillReason, type Pool, shortfall } from "../pool/pool.js";

/** A browser's record as the scripts write it. */
export const parseBrowser = (text: string): Browser => JSON.parse(text) as Browser;

const fields = [
  "id",
  "name",
  "createdAt",
  "revision",
  "generation",
  "networkGeneration",
  "config",
  "unsupported",
  "failures",
  "lastError",
  "hold",
  "obstacle",
  "fillRate",
  "credit",
  "state",
] as const;
export const poolFields: readonly string[] = fields;

/** A pool's record and counts, or `undefined` where there is none, or it is deleted. */
export function parsePool(values: readonly (string | null)[], counts: BrowserCounts): Pool | undefined {
  const record = Object.fromEntries(fields.map((field, index) => [field, values[index] ?? ""])) as Record<
    (typeof fields)[number],
    string
  >;
  if (record.state !== "open" || record.id === "") return undefined;
  const spec = JSON.parse(record.config) as PoolSpec;
  const fill = holdOf(record, spec, counts);
  return {
    id: record.id as PoolId,
    ...(record.name === "" ? {} : { name: record.name }),
    createdAt: Number(record.createdAt),
    revision: Number(record.revision),
    generation: Number(record.generation),
    networkGeneration: Number(record.networkGeneration),
    spec,
    counts,
    ...(fill ? { fill } : {}),
  };
}

/** Why the pool is below its size, in the order in which a reader can do something about it. */
function holdOf(
  record: Record<(typeof fields)[number], string>,
  spec: PoolSpec,
  counts: BrowserCounts,
): FillHold | undefined {
  if (record.unsupported !== "") return { reason: "not_supported", fields: record.unsupported.split(" ") };
  if (Number(record.failures) > 0 && counts.idle + counts.leased + counts.resetting < spec.size) {
    return { reason: "launch_failing", last_error: record.lastError };
  }
  if (shortfall(spec.size, counts) === 0) return undefined;
  if (Number(record.fillRate) === 0 && Number(record.credit) <= 0) return { reason: "rate_zero" };
  if (record.hold === "" || record.hold === "launch_failing") return undefined;
  const isObstructed = record.hold === "capacity" && record.obstacle !== "";
  return { reason: record.hold as FillReason, ...(isObstructed && { last_error: record.obstacle }) };
}

export const isPartition = (text: string): text is Partition => /^[0-9a-z]{12}$/.test(text);
