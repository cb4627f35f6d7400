import { Type } from "typebox";
import type { Millis } from "../base/clock.js";
import { groupBy } from "../base/group-by.js";
import {
  BrowserId,
  findBrowserId,
  findNodeId,
  type Partition,
  partitionOf,
  NodeId,
  type ProjectId,
  projectNamedByPartition,
} from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import type { Dataset } from "../pool/ports/dataset-store.js";
import {
  type BeatInDataset,
  type BeatResult,
  type LivingNode,
  NodeFacts,
  type NodeStore,
} from "../pool/ports/node-store.js";
import { partitionKey, nodeKey, type NodePart, nodeParts, nodesKey, type NodesPart } from "./redis/keys.js";
import { flag } from "./partition-scripts.js";
import type { StoreLimits } from "./limits.js";
import { isPending } from "./pending.js";
import type { ScriptStore } from "./redis/redis.js";
import type { ScriptArgs } from "./redis/script-call.js";
import type { ScriptName, ScriptReply } from "./redis/replies.js";

const factsParser = parserOf("what a node says of itself", NodeFacts);
const lostParser = parserOf("a reply of lose-nodes", Type.Array(NodeId));

const yieldingParser = parserOf(
  "a reply of reserve-room",
  Type.Array(Type.Tuple([BrowserId, Type.Number()])),
);

/** A node that stood still for longer than this after the end of its drain is not asked to drain any more. */
const drainKeptMs: Millis = 86_400_000;

const heldIn = (places: readonly string[]): { browsers: number; bytes: number } => ({
  browsers: places.length,
  bytes: places.reduce((sum, text) => sum + Number.parseInt(text, 10), 0),
});

function beatResultOf({ kind, payload }: ScriptReply<"node-beat">): BeatResult {
  if (kind === "taken") return { kind, by: factsParser.json(payload) };
  if (kind === "lost") return { kind };
  return { kind: "accepted", ...(payload !== "" && { drainMs: Number(payload) }) };
}

/** Nodes, their beats, and who has a place on which. */
export class RedisNodeStore implements NodeStore {
  constructor(
    private readonly store: ScriptStore,
    /** The project of partitions that name none. */
    private readonly unnamed: ProjectId,
    private readonly options: {
      readonly limits: StoreLimits;
      readonly overcommit: number;
      /** Retires browsers that stand by; gives those that are sessions by now, and stay. */
      giveWay(browsers: readonly BrowserId[]): Promise<readonly BrowserId[]>;
    },
  ) {}

  async beat(facts: NodeFacts): Promise<BeatResult> {
    return beatResultOf(await this.#beat(facts, ""));
  }

  async beatIn(dataset: Dataset["name"], facts: NodeFacts): Promise<BeatInDataset | undefined> {
    const reply = await this.#beat(facts, dataset);
    return reply.kind === "other" ? undefined : { result: beatResultOf(reply), at: reply.at };
  }

  #beat(facts: NodeFacts, dataset: string): Promise<ScriptReply<"node-beat">> {
    const { nodeLostMs: lostMs } = this.options.limits;
    return this.#run("node-beat", { node: facts.id, facts: JSON.stringify(facts), lostMs, dataset });
  }

  async living(): Promise<readonly LivingNode[]> {
    const { nodeLostMs: lostMs, nodeLateMs } = this.options.limits;
    const reply = await this.#run("living-nodes", { lostMs });
    const lines = reply.payload === "" ? [] : reply.payload.split("\n");
    return lines.map((line) => {
      // A `.` does not match U+2028, which JSON.stringify leaves as it is; a launch's error may have it.
      const [, silentMs, drainsUntil = "-", text = ""] = /^(-?\d+) (\d+|-) ([^]*)$/.exec(line) ?? [];
      const facts = factsParser.json(text);
      const drains = drainsUntil === "-" ? {} : { drainsUntil: Number(drainsUntil) };
      const isStopping = facts.isDraining;
      const isDraining = isStopping || drainsUntil !== "-";
      return { ...facts, isLate: Number(silentMs) > nodeLateMs, isStopping, isDraining, ...drains };
    });
  }

  async drain(node: NodeId, ms: Millis): Promise<Millis | undefined> {
    const reply = await this.#run("drain-node", { node, ms, lostMs: this.options.limits.nodeLostMs });
    return reply.kind === "draining" ? Number(reply.payload) : undefined;
  }

  async endDrain(node: NodeId): Promise<boolean> {
    // Asked before, because the removal may run twice, and finds nothing then.
    const wasThere = await this.store.ask((redis) => redis.hexists(nodesKey("drains"), node));
    await this.store.ask((redis) =>
      redis.multi().hdel(nodesKey("drains"), node).incr(nodesKey("version")).exec(),
    );
    return wasThere === 1;
  }

  async version(): Promise<string> {
    return (await this.store.ask((redis) => redis.get(nodesKey("version")))) ?? "";
  }

  async lost(): Promise<readonly NodeId[]> {
    const args = { lostMs: this.options.limits.nodeLostMs, drainKeptMs };
    const reply = await this.#run("lose-nodes", args);
    return lostParser.json(reply.payload);
  }

  async known(): Promise<readonly NodeId[]> {
    const [beating, lost] = await Promise.all([
      this.store.ask((redis) => redis.zrange(nodesKey("beats"), "0", "-1")),
      this.store.ask((redis) => redis.smembers(nodesKey("lost"))),
    ]);
    return [...beating, ...lost].flatMap((id) => findNodeId(id) ?? []);
  }

  async holder(node: NodeId): Promise<NodeFacts | undefined> {
    const text = await this.store.ask((redis) => redis.hget(nodesKey("facts"), node));
    return text === null ? undefined : factsParser.json(text);
  }

  async isLost(node: NodeId): Promise<boolean> {
    return (await this.store.ask((redis) => redis.sismember(nodesKey("lost"), node))) === 1;
  }

  async forget(node: NodeId): Promise<void> {
    await this.forgetLost(node);
    await this.endDrain(node);
  }

  async forgetLost(node: NodeId): Promise<void> {
    await this.clearRooms(node);
    await this.store.ask((redis) =>
      redis
        .multi()
        .zrem(nodesKey("beats"), node)
        .hdel(nodesKey("facts"), node)
        .incr(nodesKey("version"))
        .srem(nodesKey("lost"), node)
        .exec(),
    );
  }

  async clearRooms(node: NodeId): Promise<void> {
    await this.store.ask((redis) => redis.del(...nodeParts.map((part) => nodeKey(node, part))));
  }

  async reserveRoom(
    facts: NodeFacts,
    { id: browser, bytes, isTrial = false, standsBy = false }: Parameters<NodeStore["reserveRoom"]>[1],
  ): Promise<boolean> {
    const reply = await this.store.run("reserve-room", (key) => nodeKey(facts.id, key as NodePart), {
      browser,
      bytes,
      mostBytes: facts.memoryBytes * this.options.overcommit,
      mostBrowsers: facts.maxBrowsers,
      graceMs: this.options.limits.launchClaimMs,
      isTrial: flag(isTrial),
      restMs: this.options.limits.backoffMaxMs,
      standsBy: flag(standsBy),
    });
    if (reply.kind !== "reserved" || reply.payload === "") return reply.kind === "reserved";
    const stay = await this.#goWithout(facts.id, yieldingParser.json(reply.payload));
    if (stay) await this.freeRoom(facts.id, browser);
    return !stay;
  }

  /** Retires browsers whose places were given to another; whether one is a session by now, and stays. */
  async #goWithout(node: NodeId, yielding: readonly (readonly [BrowserId, number])[]): Promise<boolean> {
    const stay = new Set(await this.options.giveWay(yielding.map(([id]) => id)));
    const kept = yielding.filter(([id]) => stay.has(id));
    await Promise.all(kept.map(([id, bytes]) => this.keepRoom(node, { id, bytes })));
    return kept.length > 0;
  }

  async rest(node: NodeId, ms: Millis): Promise<void> {
    await this.store.ask((redis) =>
      redis.multi().set(nodeKey(node, "rest"), "1", "PX", ms).del(nodeKey(node, "trial")).exec(),
    );
  }

  async wake(node: NodeId): Promise<void> {
    await this.store.ask((redis) => redis.del(nodeKey(node, "rest"), nodeKey(node, "trial")));
  }

  async holdRoom(
    node: NodeId,
    { id, bytes, standsBy = false }: Parameters<NodeStore["holdRoom"]>[1],
  ): Promise<void> {
    const deadline = (await this.store.now()) + this.options.limits.launchClaimMs;
    const place = `${bytes} ${deadline}${standsBy ? " standby" : ""}`;
    await this.store.ask((redis) => redis.hsetnx(nodeKey(node, "room"), id, place));
  }

  /** It has a record, for as long as which no deadline counts. */
  async keepRoom(node: NodeId, { id, bytes }: { id: BrowserId; bytes: number }): Promise<void> {
    await this.store.ask((redis) => redis.hset(nodeKey(node, "room"), id, `${bytes} 0`));
  }

  async freeRoom(node: NodeId, browser: BrowserId): Promise<void> {
    await this.store.ask((redis) => redis.hdel(nodeKey(node, "room"), browser));
  }

  fits(
    { maxBrowsers, memoryBytes }: NodeFacts,
    held: { browsers: number; bytes: number },
    bytes: number,
  ): boolean {
    return (
      held.browsers === 0 ||
      (held.browsers < maxBrowsers && held.bytes + bytes <= memoryBytes * this.options.overcommit)
    );
  }

  async occupancy(node: NodeId): ReturnType<NodeStore["occupancy"]> {
    const places = await this.store.ask((redis) => redis.hvals(nodeKey(node, "room")));
    const standing = places.filter((text) => text.endsWith(" standby"));
    const held = heldIn(places.filter((text) => !text.endsWith(" standby")));
    return standing.length === 0 ? held : { ...held, standby: heldIn(standing) };
  }

  async sweepRooms(node: NodeId): Promise<void> {
    const places = Object.entries(await this.store.ask((redis) => redis.hgetall(nodeKey(node, "room"))));
    const now = await this.store.now();
    const due = places.flatMap(([id, text]) =>
      isPending(Number(text.split(" ")[1]), now, this.options.limits.launchClaimMs)
        ? []
        : (findBrowserId(id) ?? []),
    );
    const gone = await Promise.all(
      [...groupBy(due, partitionOf)].map(([partition, browsers]) => this.#goneOf(node, partition, browsers)),
    );
    const free = gone.flat();
    if (free.length > 0) await this.store.ask((redis) => redis.hdel(nodeKey(node, "room"), ...free));
  }

  async #goneOf(
    node: NodeId,
    partition: Partition,
    browsers: readonly BrowserId[],
  ): Promise<readonly BrowserId[]> {
    const project = projectNamedByPartition(partition) ?? this.unnamed;
    const places = browsers.map((browser) => `${node} ${browser}`);
    const scores = await this.store.ask((redis) =>
      redis.zmscore(partitionKey(project, partition, "nodeIndex"), ...places),
    );
    const unplaced = browsers.filter((_, index) => scores[index] === null);
    // The index tells quickly of those that are there; of those that are not, the record decides.
    const records = await Promise.all(
      unplaced.map((browser) =>
        this.store.ask((redis) => redis.hexists(partitionKey(project, partition, "browsers"), browser)),
      ),
    );
    return unplaced.filter((_, index) => records[index] === 0);
  }

  #run<const Name extends ScriptName>(name: Name, args: ScriptArgs): Promise<ScriptReply<Name>> {
    return this.store.run(name, (key) => nodesKey(key as NodesPart), args);
  }
}
