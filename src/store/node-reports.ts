import { type BrowserId, type ClaimId, partitionOf, type LeaseId, newRequestId } from "../base/ids.js";
import type { Browser, RetireReason, UnknownLeaseOutcome, TrafficUsage } from "../pool/browser.js";
import type { LeaseUsage, NodeReports } from "../pool/ports/node-reports.js";
import { Batcher } from "./redis/batcher.js";
import { flag, type PartitionScripts, wordOf } from "./partition-scripts.js";
import { parseBrowser } from "./records.js";
import type { ScriptReply } from "./redis/redis.js";

/** What nodes report. Every call is a request of its own; the claim makes a repeat harmless. */
export class RedisNodeReports implements NodeReports {
  readonly #freed = new Batcher<readonly [BrowserId, ClaimId], boolean>(async (partition, freed) => {
    const reply = await this.scripts.run({ partition, request: newRequestId() }, "browser-ready", {
      freed: JSON.stringify(freed),
    });
    return JSON.parse(reply.payload) as boolean[];
  });

  readonly #used = new Batcher<readonly [BrowserId, LeaseId, TrafficUsage], void>(async (partition, used) => {
    await this.scripts.run({ partition }, "note-usage", { used: JSON.stringify(used) });
    return [];
  });

  constructor(private readonly scripts: PartitionScripts) {}

  async connect(
    browser: BrowserId,
    lease: LeaseId,
  ): Promise<
    { kind: "connected"; registrations: number; startUrl?: string } | { kind: "over"; why: string }
  > {
    const reply = await this.scripts.run({ partition: partitionOf(browser) }, "connect", { browser, lease });
    return reply.kind === "connected"
      ? { kind: "connected", ...(JSON.parse(reply.payload) as { registrations: number; startUrl?: string }) }
      : { kind: "over", why: reply.payload };
  }

  async expire(ask: { browser: BrowserId; lease: LeaseId; registrations: number }): Promise<boolean> {
    return (await this.#run(ask.browser, "expire", { ...ask })).kind === "expired";
  }

  async beginLaunch(
    browser: BrowserId,
    claim: ClaimId,
  ): Promise<{ browser: Browser; mayReset: boolean } | undefined> {
    const reply = await this.#run(browser, "begin-launch", { browser, claim });
    if (reply.kind !== "begun") return undefined;
    const { browser: record, reset } = JSON.parse(reply.payload) as { browser: unknown; reset: string };
    return { browser: parseBrowser(JSON.stringify(record)), mayReset: reset === "none" || reset === "state" };
  }

  async launched(browser: BrowserId, claim: ClaimId, isolation: string): Promise<"launched" | "stale"> {
    const reply = await this.#run(browser, "launched", { browser, claim, isolation });
    return reply.kind === "launched" ? "launched" : "stale";
  }

  async launchFailed(browser: BrowserId, claim: ClaimId, text: string): Promise<"failed" | "stale"> {
    const reply = await this.#run(browser, "launch-failed", { browser, claim, text });
    return reply.kind === "failed" ? "failed" : "stale";
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
    return { kind: reply.kind === "retiring" ? "retiring" : "already", claim: reply.payload as ClaimId };
  }

  async unknownLease(
    browser: BrowserId,
    { lease, isAltered }: { lease: LeaseId; isAltered: boolean },
  ): Promise<{ kind: UnknownLeaseOutcome; claim?: ClaimId }> {
    const reply = await this.#run(browser, "unknown-lease", { browser, lease, altered: flag(isAltered) });
    const { payload } = reply;
    return {
      kind: wordOf(reply, ["kept", "retiring", "already", "held", "unknown"]),
      ...(payload !== "" && { claim: payload as ClaimId }),
    };
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
    return (await this.scripts.run({ partition: partitionOf(ask.browser) }, "network-applied", { ...ask }))
      .kind === "applied"
      ? "applied"
      : "stale";
  }

  #run(browser: BrowserId, name: string, args: Record<string, string | number>): Promise<ScriptReply> {
    return this.scripts.run({ partition: partitionOf(browser), request: newRequestId() }, name, args);
  }
}
