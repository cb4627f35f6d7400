import { findProxyId, type ProjectId, type ProxyId } from "../../base/ids.js";
import type { Selector } from "../../spec/bodies.js";
import type { Page, Paging } from "../../spec/paging.js";
import type { ProxyRef, ProxyRefs } from "../../registry/proxies/selectors.js";
import {
  type Proxy,
  type ProxyFinding,
  proxyFindingParser,
  type ProxyRecord,
  proxyRecordParser,
  type ProxyStore,
} from "../../registry/proxies/proxy.js";
import { proxyKey } from "../redis/keys.js";
import type { ScriptStore } from "../redis/redis.js";
import { RegistryScripts } from "./registry-scripts.js";

/** The fields are read in this order; the sealed secrets are read only where they are asked for. */
const shown = ["record", "name", "checked", "checkedAt"] as const;

/** The proxies of one project: an index, newest last, their names, and a hash for each. */
export class RedisProxyStore implements ProxyStore, ProxyRefs {
  readonly #scripts: RegistryScripts<ProxyId>;

  constructor(
    private readonly store: ScriptStore,
    project: ProjectId,
  ) {
    this.#scripts = new RegistryScripts(store, project, { name: "proxy", keyOf: proxyKey });
  }

  async create(ask: {
    id: ProxyId;
    record: ProxyRecord;
    name?: string;
    sealed?: string;
    most: number;
  }): Promise<"created" | "many"> {
    const { id, record, name = "", sealed = "", most } = ask;
    return (
      await this.#scripts.run("create-proxy", id, { record: JSON.stringify(record), name, sealed, most })
    ).kind;
  }

  async find(id: ProxyId): Promise<Proxy | undefined> {
    return parseProxy(id, await this.#scripts.ask((redis) => redis.hmget(this.#scripts.keyOf(id), ...shown)));
  }

  async page({ limit, offset }: Paging): Promise<Page<Proxy>> {
    // One more than is shown tells whether there are more.
    const ids = await this.#scripts.ask((redis) =>
      redis.zrevrange(this.#scripts.part("proxies"), offset, offset + limit),
    );
    const found = await Promise.all(idsIn(ids.slice(0, limit)).map((id) => this.find(id)));
    // One that was removed meanwhile stands in nobody's way any more: those after it have moved up.
    const items = found.flatMap((proxy) => proxy ?? []);
    return { items, hasMore: ids.length > limit, nextOffset: offset + items.length };
  }

  async idsNamed(name: string): Promise<readonly ProxyId[]> {
    const all = await this.#scripts.ask((redis) => redis.hgetall(this.#scripts.part("proxyNames")));
    return idsIn(Object.keys(all).filter((id) => all[id] === name));
  }

  async resolve({ id, name }: Selector): Promise<ProxyRef> {
    const ids = id ? [findProxyId(id)] : await this.idsNamed(name ?? "");
    const [only] = ids;
    if (ids.length > 1) return { kind: "ambiguous", count: ids.length };
    const proxy = only && (await this.find(only));
    return proxy
      ? { kind: "found", id: proxy.id, ...(proxy.name === undefined ? {} : { name: proxy.name }) }
      : { kind: "unknown" };
  }

  async findSealed(id: ProxyId): Promise<string | undefined> {
    return (await this.#scripts.ask((redis) => redis.hget(this.#scripts.keyOf(id), "sealed"))) ?? undefined;
  }

  async rename(id: ProxyId, name: string): Promise<"changed" | "missing"> {
    return (await this.#scripts.run("change-proxy", id, { name, checked: "" })).kind;
  }

  async noteCheck(id: ProxyId, found: ProxyFinding): Promise<"changed" | "missing"> {
    return (await this.#scripts.run("change-proxy", id, { name: "", checked: JSON.stringify(found) })).kind;
  }

  async remove(id: ProxyId): Promise<"removed" | "missing"> {
    const removed = await this.store.askOnce((redis) =>
      redis
        .multi()
        .zrem(this.#scripts.part("proxies"), id)
        .hdel(this.#scripts.part("proxyNames"), id)
        .del(this.#scripts.keyOf(id))
        .exec(),
    );
    return removed?.[0]?.[1] === 1 ? "removed" : "missing";
  }
}

const idsIn = (texts: readonly string[]): readonly ProxyId[] =>
  texts.flatMap((text) => findProxyId(text) ?? []);

function parseProxy(
  id: ProxyId,
  [record, name, checked, checkedAt]: readonly (string | null)[],
): Proxy | undefined {
  if (!record) return undefined;
  return {
    id,
    ...proxyRecordParser.json(record),
    ...(name ? { name } : {}),
    ...(checked ? { checked: { ...proxyFindingParser.json(checked), at: Number(checkedAt) } } : {}),
  };
}
