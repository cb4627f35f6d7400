import { LRUCache } from "lru-cache";
import type { BrowserId, Home, NodeId, PoolId, ProfileId } from "../base/ids.js";
import type { Browser } from "../pool/browser.js";
import type { Leased, Overview, PoolTerms, Read } from "../pool/overview.js";
import type { Counts } from "../pool/pool.js";
import type { Client } from "./connect.js";
import { parseBrowser } from "./records.js";
import type { Args, Reply } from "./redis.js";

interface Ports {
  run(home: Home, script: string, args: Args): Promise<Reply>;
  ask<Value>(command: (redis: Client) => Promise<Value>): Promise<Value>;
  keyOf(home: Home, part: "pool" | "leased" | "changed"): string;
}

interface Kept {
  readonly stamp: string;
  readonly browsers: readonly Browser[];
}

const linesOf = (text: string): readonly string[] => (text === "" ? [] : text.split("\n"));

/** Readers that go by the index of a home. */
export class RedisOverview implements Overview {
  readonly #own = new LRUCache<string, Kept>({ max: 2000 });

  constructor(private readonly ports: Ports) {}

  async browsersOf(home: Home, node: NodeId): Promise<Read> {
    const place = `${home} ${node}`;
    const kept = this.#own.get(place);
    const reply = await this.ports.run(home, "own", { node, known: kept?.stamp ?? "" });
    if (kept && reply.kind === "same") return { browsers: kept.browsers, at: reply.at };
    const [stamp = "", ...texts] = linesOf(reply.payload);
    const browsers = texts.map(parseBrowser);
    this.#own.set(place, { stamp, browsers });
    return { browsers, at: reply.at };
  }

  async homesOf(node: NodeId, homes: readonly Home[]): Promise<readonly Home[]> {
    const has = await Promise.all(homes.map((home) => this.ports.ask((redis) => redis.hexists(this.ports.keyOf(home, "changed"), node))));
    return homes.filter((_, place) => has[place] === 1);
  }

  async spread(home: Home): Promise<{ ofNode: ReadonlyMap<NodeId, number>; at: number }> {
    const { payload, at } = await this.ports.run(home, "spread", {});
    return { ofNode: new Map(Object.entries(JSON.parse(payload) as Record<NodeId, number>) as [NodeId, number][]), at };
  }

  async leased(home: Home, from: number, count: number): Promise<readonly Leased[]> {
    const key = this.ports.keyOf(home, "leased");
    const rows = await this.ports.ask((redis) => redis.zrevrange(key, from, from + count - 1, "WITHSCORES"));
    return rows.flatMap((text, place) => (place % 2 === 0 ? [{ id: text as BrowserId, createdAt: Number(rows[place + 1]) }] : []));
  }

  async records(home: Home, ids: readonly BrowserId[]): Promise<Read> {
    const { payload, at } = await this.ports.run(home, "records", { ids: JSON.stringify(ids) });
    return { browsers: linesOf(payload).map(parseBrowser), at };
  }

  async findTerms(home: Home): Promise<PoolTerms | undefined> {
    const key = this.ports.keyOf(home, "pool");
    const [id, state, name, createdAt, generation, rate, follows, uses, revision] = await this.ports.ask((redis) =>
      redis.hmget(key, "id", "state", "name", "createdAt", "generation", "fillRate", "follows", "uses", "revision"));
    if (!id || state !== "open") return undefined;
    const [usedAt, ...named] = (uses ?? "").split(" ");
    return {
      // An earlier release writes a configuration and leaves what was noted of the one before.
      ...(usedAt === revision && { uses: named }),
      id: id as PoolId, ...(name ? { name } : {}), createdAt: Number(createdAt), generation: generation ?? "", fillRatePerMinute: Number(rate),
      ...(typeof follows === "string" ? { follows: follows === "" ? null : (follows as ProfileId) } : {}),
    };
  }

  async counts(home: Home): Promise<Counts> {
    const { payload } = await this.ports.run(home, "pool", { fields: JSON.stringify(["id"]) });
    return (JSON.parse(payload) as { counts: Counts }).counts;
  }
}
