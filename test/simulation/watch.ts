import type { Redis } from "ioredis";
import type { Partition } from "../../src/base/ids.js";
import { partitionKey, type PartitionPart, partitionParts } from "../../src/store/redis/keys.js";
import { browserStates } from "../../src/pool/browser.js";
import type { ProjectId } from "../../src/base/ids.js";
import type { PoolModel } from "./model.js";
import { pictureOf } from "../support/store/picture.js";
import { hold, type Move, type Shadow } from "./shadow.js";

const parts: readonly PartitionPart[] = [
  "events",
  "pool",
  ...browserStates,
  "browsers",
  "leases",
  "replaceable",
  "waitQueue",
  "waiterRecords",
  "discarded",
];
const script = `
local counts = {}
for i = 3, 13 do
  local kind = redis.call("TYPE", KEYS[i]).ok
  counts[i - 2] = kind == "hash" and redis.call("HLEN", KEYS[i]) or kind == "set" and redis.call("SCARD", KEYS[i])
    or kind == "zset" and redis.call("ZCARD", KEYS[i]) or 0
end
local clock = redis.call("TIME")
local pool = redis.call("HMGET", KEYS[2], "kind", "state", "size", "credit", "tokens", "networkGeneration")
for i = 1, 6 do pool[i] = pool[i] or "" end
return { redis.call("XRANGE", KEYS[1], ARGV[1], "+"), counts, pool, clock[1] * 1000 + math.floor(clock[2] / 1000) }
`;

export interface Seen {
  readonly at: number;
  readonly moves: readonly Move[];
  readonly isThere: boolean;
}

/**
 * Reads what a step has done to a partition, its moves and its counts, and checks them against each other.
 */
export class Watch {
  #last = "-";
  #sha = "";

  constructor(
    private readonly world: {
      readonly bed: { readonly redis: Redis; readonly project: ProjectId };
      readonly pool: PoolModel | undefined;
    },
    readonly partition: Partition,
    private readonly shadow: Shadow,
  ) {}

  /** The position in the stream of events up to which it has read. */
  at(): string {
    return this.#last;
  }

  backTo(at: string): void {
    this.#last = at;
  }

  async look(aged: number): Promise<Seen> {
    const { redis, project } = this.world.bed;
    this.#sha ||= String(await redis.script("LOAD", script));
    const keys = parts.map((part) => partitionKey(project, this.partition, part));
    const [entries, counts, pool, at] = (await redis.evalsha(
      this.#sha,
      keys.length,
      ...keys,
      this.#last,
    )) as [[string, string[]][], number[], string[], number];
    const moves = entries.map(([, fields]) => moveOf(fields));
    for (const move of moves) this.shadow.apply(this.partition, move, at + aged);
    const last = entries.at(-1)?.[0];
    if (last) this.#last = `(${last}`;
    const [kind] = pool;
    if (kind === "") this.shadow.clear(this.partition);
    else this.#hold(counts, pool, moves);
    return { at: at + aged, moves, isThere: kind !== "" };
  }

  #hold(counts: readonly number[], pool: readonly string[], moves: readonly Move[]): void {
    const [
      launching = 0,
      idle = 0,
      leased = 0,
      resetting = 0,
      retiring = 0,
      browsers = 0,
      leases = 0,
      replaceable = 0,
      waiters = 0,
      waiting = 0,
      discarded = 0,
    ] = counts;
    const [kind, state, size, credit, tokens] = pool;
    hold(
      browsers === launching + idle + leased + resetting + retiring + discarded,
      () => `${browsers} records, but the sets hold ${counts.slice(0, 5).join("+")}+${discarded}`,
    );
    hold(leases === leased, () => `${leases} leases, ${leased} leased`);
    for (const [index, name] of browserStates.entries()) {
      // What was discarded is in the line no more, and is retired by a move of its own.
      const count = (counts[index] ?? 0) + (name === "idle" ? discarded : 0);
      hold(
        count === this.shadow.counts(this.partition)[name],
        () => `${name}: ${count} in Redis, ${this.shadow.counts(this.partition)[name]} by the moves`,
      );
    }
    if (kind !== "pool") return;
    // Waiters of a control that was taken for dead are remembered outside the queue for a while.
    hold(waiters <= waiting, () => `${waiters} in the queue, ${waiting} remembered`);
    hold(Number(credit) >= 0 && Number(tokens) > -1e-6, () => `credit ${credit}, tokens ${tokens}`);
    // What a deleted one has still is retired in pieces (upkeep.ts).
    if (state !== "open") return;
    const { pool: model } = this.world;
    const mayExceed = model?.partition === this.partition && model.mayExceed === true;
    const live = launching + idle + leased + resetting;
    hold(
      mayExceed || live <= Number(size) + replaceable || idle + launching === 0,
      () => `${live} live, size ${size}, ${replaceable} replaceable, ${idle} idle, ${launching} launching`,
    );
    if (moves.some((move) => move.to === "launching"))
      hold(
        live <= Number(size) + replaceable,
        () => `a claim made ${live} of ${size}, ${replaceable} replaceable`,
      );
  }
}

function moveOf(fields: readonly string[]): Move {
  const field = (name: string): string => fields[fields.indexOf(name) + 1] ?? "";
  return {
    browser: field("browser") as Move["browser"],
    lease: field("lease"),
    from: field("from"),
    to: field("to"),
    why: field("why"),
  };
}

/** Left out: a control's beat changes nothing that counts, and events are judged by themselves. */
const unseen: readonly PartitionPart[] = ["controls", "events"];

/** Everything that a refused request may not change, as texts. */
export async function picturesOf(
  redis: Redis,
  project: ProjectId,
  partitions: readonly Partition[],
): Promise<ReadonlyMap<string, string>> {
  const keys = partitions.flatMap((partition) =>
    partitionParts
      .filter((part) => !unseen.includes(part))
      .map((part) => partitionKey(project, partition, part)),
  );
  return new Map(await Promise.all(keys.map(async (key) => [key, await pictureOf(redis, key)] as const)));
}
