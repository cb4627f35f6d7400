import { Type } from "typebox";
import { groupBy } from "../base/group-by.js";
import {
  BrowserId,
  findBrowserId,
  findNodeId,
  newRequestId,
  type Partition,
  partitionOf,
} from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import { LaunchingBrowser, type RetireReason } from "../pool/browser.js";
import type { Standby, StandbyStore } from "../pool/ports/standby-store.js";
import { RedisPartitionOverview } from "./partition-overview.js";
import type { PartitionScripts } from "./partition-scripts.js";
import { luaList } from "./records.js";

const claimedParser = parserOf("a reply of claim-standby", Type.Array(LaunchingBrowser));
const takenParser = parserOf("a reply of retire-standby", luaList(BrowserId));
/** What include/node/failing-nodes.lua keeps of each node. */
const failingParser = parserOf(
  "nodes on which launches fail",
  Type.Record(Type.String(), Type.Object({ restsUntil: Type.Number() })),
);
/** One answer has the records of so many at most. */
const readAtOnce = 1000;

/** Browsers that stand by, in the partitions of sessions on demand. */
export class RedisStandbyStore implements StandbyStore {
  readonly #overview: RedisPartitionOverview;

  constructor(private readonly scripts: PartitionScripts) {
    this.#overview = new RedisPartitionOverview(scripts);
  }

  async find(partition: Partition): Promise<Standby> {
    const { scripts } = this;
    const [idle, launching, failing] = await Promise.all([
      scripts.ask((redis) => redis.zrange(scripts.keyOf(partition, "idle"), "0", String(readAtOnce - 1))),
      scripts.ask((redis) =>
        redis.zrange(scripts.keyOf(partition, "launching"), "0", String(readAtOnce - 1)),
      ),
      scripts.ask((redis) => redis.hget(scripts.keyOf(partition, "pool"), "failing")),
    ]);
    const ids = [...launching, ...idle].flatMap((id) => findBrowserId(id) ?? []).slice(0, readAtOnce);
    const { browsers, at } =
      ids.length === 0
        ? { browsers: [], at: failing === null ? 0 : await scripts.now() }
        : await this.#overview.records(partition, ids);
    const resting = Object.entries(failingParser.json(failing ?? "{}")).flatMap(([node, { restsUntil }]) =>
      restsUntil > at ? (findNodeId(node) ?? []) : [],
    );
    const others = browsers.filter(({ standby }) => standby === undefined);
    return {
      browsers: browsers.filter(({ standby }) => standby !== undefined),
      sessionsLaunching: others.filter(({ state }) => state === "launching").length,
      at,
      resting,
    };
  }

  async claim(
    partition: Partition,
    { candidates, key, template, count, request }: Parameters<StandbyStore["claim"]>[1],
  ): Promise<readonly LaunchingBrowser[]> {
    const wanted = candidates.map((one) => ({
      ...one,
      templateKey: one.id,
      generation: 1,
      networkGeneration: 1,
    }));
    const reply = await this.scripts.run({ partition, request }, "claim-standby", {
      candidates: JSON.stringify(wanted),
      standby: key,
      template: JSON.stringify(template),
      count,
    });
    return reply.kind === "claimed" ? claimedParser.json(reply.payload) : [];
  }

  async retire(browsers: readonly BrowserId[], why: RetireReason): Promise<readonly BrowserId[]> {
    const taken = await Promise.all(
      [...groupBy(browsers, partitionOf)].map(([partition, ids]) => this.#retireIn(partition, ids, why)),
    );
    return taken.flat();
  }

  async #retireIn(
    partition: Partition,
    browsers: readonly BrowserId[],
    why: RetireReason,
  ): Promise<readonly BrowserId[]> {
    const target = { partition, request: newRequestId() };
    const args = { browsers: JSON.stringify(browsers), why };
    const { payload } = await this.scripts.run(target, "retire-standby", args);
    return Object.values(takenParser.json(payload));
  }
}
