import { type Static, type TSchema, Type } from "typebox";
import { PoolId } from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import { PoolSpec } from "../spec/launch-template.js";
import { BrowserCounts, type FillHold, fillReasons, type Pool, shortfall } from "../pool/pool.js";

/** A list as cjson writes it: an empty one is an empty object. */
export const luaList = <const Item extends TSchema>(item: Item) =>
  Type.Unsafe<Static<Item>[]>(
    Type.Union([Type.Array(item), Type.Object({}, { additionalProperties: false })]),
  );

/** What read-pool answers: the fields it was asked for, and how many browsers are in each state. */
export const readPoolParser = parserOf(
  "a reply of read-pool",
  Type.Object({ values: luaList(Type.Union([Type.String(), Type.Null()])), counts: BrowserCounts }),
);
const specParser = parserOf("the specification of a pool", PoolSpec);
const poolIdParser = parserOf("the id of a pool", PoolId);
const reasonParser = parserOf("what holds a pool up", Type.Enum([...fillReasons]));

const fields = [
  "id",
  "name",
  "createdAt",
  "revision",
  "revisedAt",
  "generation",
  "networkGeneration",
  "spec",
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
  const spec = specParser.json(record.spec);
  const fill = holdOf(record, spec, counts);
  return {
    id: poolIdParser.value(record.id),
    ...(record.name === "" ? {} : { name: record.name }),
    createdAt: Number(record.createdAt),
    revision: Number(record.revision),
    ...(record.revisedAt !== "" && { revisedAt: Number(record.revisedAt) }),
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
  return { reason: reasonParser.value(record.hold), ...(isObstructed && { last_error: record.obstacle }) };
}
