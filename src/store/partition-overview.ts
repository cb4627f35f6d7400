import { LRUCache } from "lru-cache";
import { Type } from "typebox";
import { type Millis, systemClock } from "../base/clock.js";
import {
  type BrowserId,
  findBrowserId,
  findNodeId,
  findPoolId,
  findProfileId,
  type NodeId,
  type Partition,
} from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import { type Browser, browserParser } from "../pool/browser.js";
import type {
  Lack,
  ListedSession,
  NodeBrowsers,
  PartitionOverview,
  PoolSummary,
  BrowsersRead,
} from "../pool/ports/partition-overview.js";
import type { BrowserCounts } from "../pool/pool.js";
import { readPoolParser } from "./records.js";
import type { PartitionScripts } from "./partition-scripts.js";

/** Stands for a stamp that there is none of. */
const noStamp = "none";
/** The pool's own stamp (include/write-record.lua). */
const lastRevision = "revised last";

interface KeptBrowsers {
  readonly stamp: string;
  readonly browsers: readonly Browser[];
  /** Redis's time at the reading, and ours (monotonic). */
  readonly at: Millis;
  readonly readAt: Millis;
}

/** Between two runs of the script Redis's time is reckoned by our clock, and the two drift apart. */
const runEveryMs: Millis = 300_000;

const spreadParser = parserOf(
  "a reply of count-by-node",
  Type.Object({ counts: Type.Record(Type.String(), Type.Number()), after: Type.Optional(Type.String()) }),
);

/** What include/node/failing-nodes.lua and closed-nodes.lua keep of each node. */
const notesParser = parserOf("notes of nodes", Type.Record(Type.String(), Type.Unknown()));

/** What a reap looks through: a pool at rest has none of these. */
const unfinished = [
  "launching",
  "resetting",
  "retiring",
  "discarded",
  "replaceable",
  "waitQueue",
  "waiterRecords",
  "provisional",
  "endedLeases",
] as const;

/** Fields of a pool's record that stand only while something is to be done about nodes or in pieces. */
const notesOfPool = ["closed", "failing", "discards", "indexing", "boundTo"] as const;

const countsOf = (counted: readonly (readonly [string, number])[]): ReadonlyMap<NodeId, number> =>
  new Map(
    counted.flatMap(([node, count]) => {
      const id = findNodeId(node);
      return id ? [[id, count] as const] : [];
    }),
  );

const linesOf = (text: string): readonly string[] => (text === "" ? [] : text.split("\n"));

function parseOwn(text: string): Pick<KeptBrowsers & NodeBrowsers, "stamp" | "browsers" | "poolStamp"> {
  const [stamp = "", poolStamp = "", ...browsers] = linesOf(text);
  return { stamp, poolStamp, browsers: browsers.map(browserParser.json) };
}

/** Readers that go by the index of a partition. */
export class RedisPartitionOverview implements PartitionOverview {
  readonly #own = new LRUCache<string, KeptBrowsers>({ max: 2000 });

  constructor(private readonly scripts: PartitionScripts) {}

  async browsersOf(partition: Partition, node: NodeId): Promise<NodeBrowsers> {
    const place = `${partition} ${node}`;
    const kept = this.#own.get(place);
    const agoMs = kept ? systemClock.monotonic() - kept.readAt : Infinity;
    if (kept && agoMs < runEveryMs) {
      const { stamp, poolStamp } = await this.#stampsOf(partition, node);
      if (stamp === kept.stamp) return { browsers: kept.browsers, at: kept.at + agoMs, poolStamp };
    }
    const reply = await this.scripts.runIndexed({ partition }, "node-browsers", {
      node,
      known: kept?.stamp ?? "",
    });
    const { at, kind, payload } = reply;
    const read = kept && kind === "same" ? { ...kept, poolStamp: payload } : parseOwn(payload);
    const { stamp, browsers, poolStamp } = read;
    this.#own.set(place, { stamp, browsers, at, readAt: systemClock.monotonic() });
    return { browsers, at, poolStamp };
  }

  /**
   * Uses a plain command, because this is asked for each node and pool every few seconds, and a script costs
   * several times as much.
   */
  async #stampsOf(partition: Partition, node: NodeId): Promise<{ stamp: string; poolStamp: string }> {
    const key = this.scripts.keyOf(partition, "nodeStamps");
    const [stamp, poolStamp] = await this.scripts.ask((redis) => redis.hmget(key, node, lastRevision));
    return { stamp: stamp ?? noStamp, poolStamp: poolStamp ?? noStamp };
  }

  async partitionsOf(node: NodeId, partitions: readonly Partition[]): Promise<readonly Partition[]> {
    const has = await Promise.all(
      partitions.map((partition) =>
        this.scripts.ask((redis) => redis.hexists(this.scripts.keyOf(partition, "nodeStamps"), node)),
      ),
    );
    return partitions.filter((_, place) => has[place] === 1);
  }

  async lackOf(partition: Partition): Promise<Lack> {
    const { scripts } = this;
    const [[size, state, hold, obstacle, discards], replaceable, all, retiring] = await Promise.all([
      scripts.ask((redis) =>
        redis.hmget(scripts.keyOf(partition, "pool"), "size", "state", "hold", "obstacle", "discards"),
      ),
      scripts.ask((redis) => redis.scard(scripts.keyOf(partition, "replaceable"))),
      scripts.ask((redis) => redis.hlen(scripts.keyOf(partition, "browsers"))),
      scripts.ask((redis) => redis.zcard(scripts.keyOf(partition, "retiring"))),
    ]);
    // How many of those that are there were discarded is not looked at: a fill finds out.
    const isShort = typeof discards === "string" || all - retiring < Number(size) + replaceable;
    if (state !== "open" || (!isShort && hold === "")) return "nothing";
    return isShort && hold === "capacity" && !obstacle ? "room" : "something";
  }

  async serverId(): Promise<string | undefined> {
    const text = await this.scripts.ask(async (redis) =>
      redis.isCluster ? "" : await redis.info("replication"),
    );
    return /^master_replid:(\w+)/m.exec(text)?.[1];
  }

  async isAtRest(partition: Partition, server: string): Promise<boolean> {
    const { scripts } = this;
    const keys = unfinished.map((part) => scripts.keyOf(partition, part));
    const [[state, size, knownServer, ...notes], left, all] = await Promise.all([
      scripts.ask((redis) =>
        redis.hmget(scripts.keyOf(partition, "pool"), "state", "size", "replicationId", ...notesOfPool),
      ),
      scripts.ask((redis) => redis.exists(...keys)),
      scripts.ask((redis) => redis.hlen(scripts.keyOf(partition, "browsers"))),
    ]);
    const isWhole = state === "open" && typeof size === "string" && all === Number(size);
    return isWhole && knownServer === server && left === 0 && notes.every((note) => note === null);
  }

  async spread(partition: Partition): Promise<{ ofNode: ReadonlyMap<NodeId, number>; at: number }> {
    const counted: (readonly [string, number])[] = [];
    for (let after: string | undefined = ""; ;) {
      const reply = await this.scripts.runIndexed({ partition }, "count-by-node", { after });
      const piece = spreadParser.json(reply.payload);
      counted.push(...Object.entries(piece.counts));
      after = piece.after;
      if (after === undefined) return { ofNode: countsOf(counted), at: reply.at };
    }
  }

  async nodesOf(partition: Partition): Promise<ReadonlySet<NodeId>> {
    const { scripts } = this;
    const [{ ofNode }, notes] = await Promise.all([
      this.spread(partition),
      scripts.ask((redis) => redis.hmget(scripts.keyOf(partition, "pool"), "failing", "closed")),
    ]);
    const noted = notes.flatMap((text) => Object.keys(notesParser.json(text ?? "{}")));
    return new Set([...ofNode.keys(), ...noted.flatMap((node) => findNodeId(node) ?? [])]);
  }

  async leased(partition: Partition, from: number, count: number): Promise<readonly ListedSession[]> {
    const key = this.scripts.keyOf(partition, "leased");
    const rows = await this.scripts.ask((redis) =>
      redis.zrevrange(key, from, from + count - 1, "WITHSCORES"),
    );
    return rows.flatMap((text, place) => {
      const id = place % 2 === 0 ? findBrowserId(text) : undefined;
      return id ? [{ id, createdAt: Number(rows[place + 1]) }] : [];
    });
  }

  async records(partition: Partition, ids: readonly BrowserId[]): Promise<BrowsersRead> {
    const { payload, at } = await this.scripts.run({ partition }, "read-some-browsers", {
      ids: JSON.stringify(ids),
    });
    return { browsers: linesOf(payload).map(browserParser.json), at };
  }

  async findTerms(partition: Partition): Promise<PoolSummary | undefined> {
    const key = this.scripts.keyOf(partition, "pool");
    const [ref, state, name, createdAt, templateKey, rate, follows, uses, revision] = await this.scripts.ask(
      (redis) =>
        redis.hmget(
          key,
          "id",
          "state",
          "name",
          "createdAt",
          "templateKey",
          "fillRate",
          "follows",
          "uses",
          "revision",
        ),
    );
    const id = findPoolId(ref ?? "");
    if (!id || state !== "open") return undefined;
    const [usedAt, ...named] = (uses ?? "").split(" ");
    return {
      // An earlier release writes a specification and leaves what was noted of the one before.
      ...(usedAt === revision && { uses: named }),
      id,
      ...(name ? { name } : {}),
      createdAt: Number(createdAt),
      templateKey: templateKey ?? "",
      fillRatePerMinute: Number(rate),
      ...(typeof follows === "string" ? { follows: findProfileId(follows) ?? null } : {}),
    };
  }

  async counts(partition: Partition): Promise<BrowserCounts> {
    const { payload } = await this.scripts.run({ partition }, "read-pool", {
      fields: JSON.stringify(["id"]),
    });
    return readPoolParser.json(payload).counts;
  }
}
