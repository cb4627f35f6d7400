import { Type } from "typebox";
import {
  type BrowserId,
  ClaimId,
  isOnDemand,
  partitionOf,
  LeaseId,
  newRequestId,
  type Partition,
} from "../base/ids.js";
import { parserOf } from "../base/parser.js";
import {
  LaunchingBrowser,
  leasedParser,
  type RetireReason,
  type TrafficUsage,
  type UnknownLeaseOutcome,
} from "../pool/browser.js";
import type { LeaseUsage, NodeReports } from "../pool/ports/node-reports.js";
import { flag, type PartitionScripts } from "./partition-scripts.js";
import { WarmScripts } from "./warm-scripts.js";
import { luaList } from "./records.js";
import type { ScriptArgs } from "./redis/script-call.js";
import type { ScriptName, ScriptReply } from "./redis/replies.js";

const freedParser = parserOf("a reply of browser-ready", Type.Array(Type.Boolean()));
const registeredParser = parserOf(
  "a reply of register-node",
  Type.Object({ resumed: luaList(LeaseId), void: luaList(LeaseId) }),
);
const begunParser = parserOf(
  "a reply of begin-launch",
  Type.Object({ browser: LaunchingBrowser, reset: Type.String() }),
);
const claimParser = parserOf("a claim", ClaimId);

interface ReportBatch<Item, Answer> {
  readonly items: Item[];
  readonly answers: Promise<readonly Answer[]>;
}

/**
 * What comes in bursts is asked once per partition and turn of the event loop, at its end: a turn later it
 * would stand before what a caller asks next. Answers stand in the order of the items.
 */
class Batcher<Item, Answer> {
  readonly #open = new Map<Partition, ReportBatch<Item, Answer>>();

  constructor(
    private readonly scripts: Pick<PartitionScripts, "atTurnEnd">,
    private readonly ask: (partition: Partition, items: readonly Item[]) => Promise<readonly Answer[]>,
  ) {}

  async add(partition: Partition, item: Item): Promise<Answer | undefined> {
    const { items, answers } = this.#open.get(partition) ?? this.#begin(partition);
    const place = items.push(item) - 1;
    return (await answers)[place];
  }

  #begin(partition: Partition): ReportBatch<Item, Answer> {
    const items: Item[] = [];
    const answers = new Promise<readonly Answer[]>((resolve) => {
      this.scripts.atTurnEnd(() => {
        this.#open.delete(partition);
        resolve(this.ask(partition, items));
      });
    });
    const batch = { items, answers };
    this.#open.set(partition, batch);
    return batch;
  }
}

type Freed = readonly [BrowserId, ClaimId];
type UsageReport = readonly [BrowserId, LeaseId, TrafficUsage];

/** What nodes report. Every call is a request of its own; the claim makes a repeat harmless. */
export class RedisNodeReports implements NodeReports {
  readonly #warm: WarmScripts;
  readonly #freed: Batcher<Freed, boolean>;
  readonly #used: Batcher<UsageReport, void>;

  constructor(private readonly scripts: PartitionScripts) {
    this.#warm = new WarmScripts(scripts.clock);
    this.#freed = new Batcher(scripts, (partition, freed) => this.#tellFreed(partition, freed));
    this.#used = new Batcher(scripts, (partition, used) => this.#tellUsed(partition, used));
  }

  async connect(browser: BrowserId, lease: LeaseId): ReturnType<NodeReports["connect"]> {
    const reply = await this.scripts.run({ partition: partitionOf(browser) }, "connect", { browser, lease });
    return reply.kind === "connected"
      ? { kind: "connected", browser: leasedParser.json(reply.payload) }
      : { kind: "over", why: reply.payload };
  }

  async register(
    partition: Partition,
    { node, present, opened }: Parameters<NodeReports["register"]>[1],
  ): ReturnType<NodeReports["register"]> {
    const reply = await this.scripts.run({ partition }, "register-node", {
      node,
      present: JSON.stringify(present),
      opened: JSON.stringify(opened),
    });
    if (reply.kind === "known") return undefined;
    const told = registeredParser.json(reply.payload);
    return { resumed: Object.values(told.resumed), void: Object.values(told.void) };
  }

  async expire(ask: { browser: BrowserId; lease: LeaseId; registrations: number }): Promise<boolean> {
    return (await this.#run(ask.browser, "expire", { ...ask })).kind === "expired";
  }

  async beginLaunch(
    browser: BrowserId,
    claim: ClaimId,
  ): Promise<{ browser: LaunchingBrowser; mayReset: boolean } | undefined> {
    const reply = await this.#run(browser, "begin-launch", { browser, claim });
    if (reply.kind !== "begun") return undefined;
    const { browser: record, reset } = begunParser.json(reply.payload);
    return { browser: record, mayReset: reset === "none" || reset === "state" };
  }

  async launched(browser: BrowserId, claim: ClaimId, isolation: string): Promise<"launched" | "stale"> {
    const reply = await this.#run(browser, "launched", { browser, claim, isolation });
    return reply.kind;
  }

  async launchFailed(browser: BrowserId, claim: ClaimId, text: string): Promise<"failed" | "stale"> {
    const reply = await this.#run(browser, "launch-failed", { browser, claim, text });
    return reply.kind;
  }

  async freed(browser: BrowserId, claim: ClaimId): Promise<"freed" | "stale"> {
    return (await this.#freed.add(partitionOf(browser), [browser, claim])) ? "freed" : "stale";
  }

  async end(
    browser: BrowserId,
    why: RetireReason,
    text: string,
  ): Promise<{ kind: "retiring" | "already"; claim: ClaimId } | { kind: "unknown" }> {
    const reply = await this.#run(browser, "retire-browser", { browser, why, text });
    if (reply.kind === "unknown") return { kind: "unknown" };
    return { kind: reply.kind, claim: claimParser.value(reply.payload) };
  }

  async unknownLease(
    browser: BrowserId,
    { lease, isAltered }: { lease: LeaseId; isAltered: boolean },
  ): Promise<{ kind: UnknownLeaseOutcome; claim?: ClaimId }> {
    const reply = await this.#run(browser, "unknown-lease", { browser, lease, altered: flag(isAltered) });
    const { kind, payload } = reply;
    return { kind, ...(payload !== "" && { claim: claimParser.value(payload) }) };
  }

  async gone(browser: BrowserId, claim: ClaimId, used?: LeaseUsage): Promise<void> {
    await this.#run(browser, "remove-browser", {
      browser,
      claim,
      lease: used?.lease ?? "",
      usage: used ? JSON.stringify(used.usage) : "",
    });
  }

  async used(browser: BrowserId, { lease, usage }: LeaseUsage): Promise<void> {
    await this.#used.add(partitionOf(browser), [browser, lease, usage]);
  }

  async applied(ask: {
    browser: BrowserId;
    lease: LeaseId;
    revision: number;
    outcome: "applied" | "refused";
  }): Promise<"applied" | "stale"> {
    const partition = partitionOf(ask.browser);
    return (await this.scripts.run({ partition }, "network-applied", { ...ask })).kind;
  }

  async #tellFreed(partition: Partition, freed: readonly Freed[]): Promise<readonly boolean[]> {
    const target = { partition, request: newRequestId() };
    const args = { freed: JSON.stringify(freed) };
    if (!isOnDemand(partition) && this.#warm.areAsked(partition)) {
      const warm = await this.scripts.run(target, "browser-ready-warm", args);
      if (warm.kind === "freed") return freedParser.json(warm.payload);
      this.#warm.leave(partition);
    }
    const reply = await this.scripts.run(target, "browser-ready", args);
    return freedParser.json(reply.payload);
  }

  async #tellUsed(partition: Partition, used: readonly UsageReport[]): Promise<readonly void[]> {
    await this.scripts.run({ partition }, "note-usage", { used: JSON.stringify(used) });
    return [];
  }

  #run<const Name extends ScriptName>(
    browser: BrowserId,
    name: Name,
    args: ScriptArgs,
  ): Promise<ScriptReply<Name>> {
    return this.scripts.run({ partition: partitionOf(browser), request: newRequestId() }, name, args);
  }
}
