import { Type } from "typebox";
import type { Millis } from "../base/clock.js";
import {
  type BrowserId,
  newRequestId,
  NodeId,
  type Partition,
  partitionOf,
  type PoolId,
  type RequestId,
} from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import { type Browser, browserParser, LaunchingBrowser, type RetireReason } from "../pool/browser.js";
import type { BrowserCounts, Pool } from "../pool/pool.js";
import type {
  BrowsersRead,
  Lack,
  ListedSession,
  NodeBrowsers,
  PoolSummary,
} from "../pool/ports/partition-overview.js";
import type {
  LaunchCandidate,
  LaunchDemand,
  PoolStore,
  PoolWrite,
  RefreshPlace,
} from "../pool/ports/pool-store.js";
import { namedBy } from "../registry/references.js";
import { LaunchTemplate, resetModeOf } from "../spec/launch-template.js";
import { RedisLeaseStore } from "./lease-store.js";
import { RedisPartitionOverview } from "./partition-overview.js";
import { flag, type PartitionScripts } from "./partition-scripts.js";
import { luaList, parsePool, poolFields, readPoolParser } from "./records.js";
import type { ScriptArgs } from "./redis/script-call.js";

const templateParser = parserOf("a launch template", LaunchTemplate);
const demandParser = parserOf(
  "a reply of launch-demand",
  Type.Object({
    count: Type.Number(),
    resting: Type.Optional(Type.Array(NodeId)),
    trying: Type.Optional(Type.Array(NodeId)),
    failedLately: Type.Optional(Type.Boolean()),
  }),
);
const claimedParser = parserOf("a reply of claim-launches", Type.Array(LaunchingBrowser));
const reapedParser = parserOf(
  "a reply of reap",
  Type.Object({ launch: luaList(LaunchingBrowser), state: Type.String(), isMore: Type.Boolean() }),
);
const refreshedParser = parserOf(
  "a reply of refresh",
  Type.Object({ from: Type.Optional(Type.String()), isClean: Type.Boolean() }),
);
const clearedParser = parserOf(
  "a reply of clear-node",
  Type.Object({ count: Type.Number(), isMore: Type.Boolean() }),
);

/** All records of a partition are read in pieces of about so many, between which Redis serves others. */
const scannedAtOnce = 500;
/** A node has fewer browsers than this many pieces. */
const mostPieces = 200;

/**
 * Partitions, each in a slot of its own: what their leases do, and what their pools do.
 */
export class RedisPoolStore extends RedisLeaseStore implements PoolStore {
  readonly #overview: RedisPartitionOverview;

  constructor(scripts: PartitionScripts) {
    super(scripts);
    this.#overview = new RedisPartitionOverview(scripts);
  }

  async createPool(
    partition: Partition,
    ask: { id: PoolId; write: PoolWrite; request: RequestId },
  ): Promise<void> {
    await this.scripts.run({ partition, request: ask.request }, "create-pool", {
      id: ask.id,
      ...writeArgs(ask.write, 1),
    });
  }

  async updatePool(
    partition: Partition,
    ask: Parameters<PoolStore["updatePool"]>[1],
  ): ReturnType<PoolStore["updatePool"]> {
    const reply = await this.scripts.run({ partition, request: ask.request }, "update-pool", {
      ...writeArgs(ask.write, ask.revision + 1),
      revision: String(ask.revision),
      revisedAt: ask.revisedAt === undefined ? "" : String(ask.revisedAt),
      isNewLaunch: flag(ask.isNewLaunch),
      isNewNetwork: flag(ask.isNewNetwork),
      isNewRefresh: flag(ask.isNewRefresh ?? false),
      discard: flag(ask.discard),
    });
    return reply.kind;
  }

  async deletePool(
    partition: Partition,
    ask: { force: boolean; request: RequestId },
  ): Promise<"deleted" | "leased" | "missing"> {
    const reply = await this.scripts.run({ partition, request: ask.request }, "delete-pool", {
      force: flag(ask.force),
    });
    return reply.kind;
  }

  async flush(partition: Partition, request: RequestId): ReturnType<PoolStore["flush"]> {
    return (await this.scripts.run({ partition, request }, "flush", {})).kind;
  }

  async refresh(partition: Partition, ask: Parameters<PoolStore["refresh"]>[1]): Promise<RefreshPlace> {
    const { before, after, request } = ask;
    const reply = await this.scripts.run({ partition, request }, "refresh", {
      before,
      from: after?.from ?? "",
      isClean: flag(after?.isClean ?? true),
    });
    return reply.kind === "missing" ? { isClean: true } : refreshedParser.json(reply.payload);
  }

  async retireLeft(
    partition: Partition,
    { isToSize, request }: { isToSize: boolean; request: RequestId },
  ): Promise<"more" | "rid"> {
    const args = { isToSize: flag(isToSize) };
    return (await this.scripts.run({ partition, request }, "retire-left", args)).kind;
  }

  async findPool(partition: Partition): Promise<Pool | undefined> {
    const reply = await this.scripts.run({ partition }, "read-pool", { fields: JSON.stringify(poolFields) });
    const { values, counts } = readPoolParser.json(reply.payload);
    return parsePool(values, counts);
  }

  now = (): Promise<Millis> => this.scripts.now();

  async findBrowser(id: BrowserId): Promise<{ browser: Browser; at: number } | undefined> {
    const reply = await this.scripts.run({ partition: partitionOf(id) }, "read-browser", { browser: id });
    return reply.kind === "found" ? { browser: browserParser.json(reply.payload), at: reply.at } : undefined;
  }

  async browsers(partition: Partition): Promise<{ browsers: readonly Browser[]; at: number }> {
    const key = this.scripts.keyOf(partition, "browsers");
    const texts = new Map<string, string>();
    let cursor = "0";
    do {
      const from = cursor;
      const [next, found] = await this.scripts.ask((redis) => redis.hscan(key, from, "COUNT", scannedAtOnce));
      for (let place = 0; place < found.length; place += 2)
        texts.set(found[place] ?? "", found[place + 1] ?? "");
      cursor = next;
    } while (cursor !== "0");
    return { browsers: [...texts.values()].map(browserParser.json), at: await this.now() };
  }

  browsersOf = (partition: Partition, node: NodeId): Promise<NodeBrowsers> =>
    this.#overview.browsersOf(partition, node);
  partitionsOf = (node: NodeId, partitions: readonly Partition[]): Promise<readonly Partition[]> =>
    this.#overview.partitionsOf(node, partitions);
  spread = (partition: Partition): ReturnType<RedisPartitionOverview["spread"]> =>
    this.#overview.spread(partition);
  nodesOf = (partition: Partition): Promise<ReadonlySet<NodeId>> => this.#overview.nodesOf(partition);
  leased = (partition: Partition, from: number, count: number): Promise<readonly ListedSession[]> =>
    this.#overview.leased(partition, from, count);
  records = (partition: Partition, ids: readonly BrowserId[]): Promise<BrowsersRead> =>
    this.#overview.records(partition, ids);
  findTerms = (partition: Partition): Promise<PoolSummary | undefined> => this.#overview.findTerms(partition);
  lackOf = (partition: Partition): Promise<Lack> => this.#overview.lackOf(partition);
  serverId = (): Promise<string | undefined> => this.#overview.serverId();
  isAtRest = (partition: Partition, server: string): Promise<boolean> =>
    this.#overview.isAtRest(partition, server);
  counts = (partition: Partition): Promise<BrowserCounts> => this.#overview.counts(partition);

  async networkChanges(partition: Partition): Promise<string> {
    // A control of an earlier release writes no stamp.
    return (
      await this.scripts.ask((redis) =>
        redis.hmget(this.scripts.keyOf(partition, "pool"), "networkChanges", "networkStamp"),
      )
    ).join(" ");
  }

  async findTemplate(partition: Partition, key: string): Promise<LaunchTemplate | undefined> {
    const text = await this.scripts.ask((redis) =>
      redis.hget(this.scripts.keyOf(partition, "templates"), key),
    );
    return text === null ? undefined : templateParser.json(text);
  }

  async wanted(partition: Partition, most: number): Promise<LaunchDemand> {
    const { payload } = await this.scripts.run({ partition }, "launch-demand", { most });
    return { resting: [], trying: [], failedLately: false, ...demandParser.json(payload) };
  }

  async claimLaunches(
    partition: Partition,
    ask: { candidates: readonly LaunchCandidate[]; madeFor?: string; obstacle?: string; request: RequestId },
  ): Promise<readonly LaunchingBrowser[]> {
    const reply = await this.scripts.run({ partition, request: ask.request }, "claim-launches", {
      candidates: JSON.stringify(ask.candidates),
      madeFor: ask.madeFor ?? "",
      obstacle: ask.obstacle ?? "",
    });
    return reply.kind === "claimed" ? claimedParser.json(reply.payload) : [];
  }

  async reap(partition: Partition): ReturnType<PoolStore["reap"]> {
    const reply = await this.scripts.run({ partition }, "reap", {});
    if (reply.kind === "missing") return { launch: [], isOpen: false, isMore: false };
    const { launch, state, isMore } = reapedParser.json(reply.payload);
    return { launch: Object.values(launch), isOpen: state === "open", isMore };
  }

  async recycle(partition: Partition, ask: Parameters<PoolStore["recycle"]>[1]): Promise<number> {
    const { maxLeases, drains, request } = ask;
    const args = { maxLeases: maxLeases ?? "", node: drains?.node ?? "", drainMs: drains?.ms ?? 0 };
    return Number((await this.scripts.runIndexed({ partition, request }, "recycle", args)).payload);
  }

  async silenceNode(partition: Partition, node: NodeId, silentMs: Millis): Promise<void> {
    await this.scripts.run({ partition, request: newRequestId() }, "silence-node", { node, silentMs });
  }

  async reopenNode(partition: Partition, node: NodeId): Promise<void> {
    await this.scripts.run({ partition, request: newRequestId() }, "reopen-node", { node });
  }

  async clearNode(
    partition: Partition,
    ask: { node: NodeId; why: RetireReason; which: "idle" | "all" | "lost"; request: RequestId },
  ): Promise<number> {
    const { node, why, which } = ask;
    const args = { node, why, which };
    let [request, total] = [ask.request, 0];
    // Records of a lost node are gone after each piece, others are counted anew by the next.
    for (let piece = 0; piece < mostPieces; piece += 1) {
      const reply = await this.scripts.runIndexed({ partition, request }, "clear-node", args);
      const { count, isMore } = clearedParser.json(reply.payload);
      total = which === "lost" ? total + count : count;
      if (!isMore) break;
      request = newRequestId();
    }
    return total;
  }
}

/** A rate is multiplied by sizes: Redis counts with nothing infinite. No node launches a part of this. */
const fastestFill = 1e9;

const writeArgs = ({ spec, template, unsupported }: PoolWrite, revision: number): ScriptArgs => ({
  name: spec.name ?? "",
  spec: JSON.stringify(spec),
  template: JSON.stringify(template),
  size: spec.size,
  fillRate: Math.min(spec.fill_rate_per_minute, fastestFill),
  fields: JSON.stringify({
    unsupported: unsupported.join(" "),
    timeoutSeconds: String(spec.timeout_seconds),
    reset: resetModeOf(spec),
    follows: (spec.refresh_on_profile_update && spec.profile_id) || "",
    uses: [revision, ...namedBy(spec)].join(" "),
  }),
});
