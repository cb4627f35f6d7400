import { LRUCache } from "lru-cache";
import { type Home, homeOf } from "../base/ids.js";
import { factsOf, type Browser } from "./browser.js";
import type { LaunchConfig } from "./launch-config.js";
import { proxyOf } from "./network.js";
import type { Homes } from "./ports.js";
import type { ProxyRefs } from "./proxies.js";
import type { Session } from "./session.js";

/** Launch configurations never change under their key, so keeping them decides nothing. */
export class Configs {
  readonly #kept = new LRUCache<string, LaunchConfig>({ max: 500 });

  constructor(private readonly homes: Homes, private readonly proxies: ProxyRefs) {}

  async find(home: Home, key: string): Promise<LaunchConfig | undefined> {
    const kept = this.#kept.get(`${home} ${key}`);
    if (kept) return kept;
    const found = await this.homes.findLaunchConfig(home, key);
    if (found) this.#kept.set(`${home} ${key}`, found);
    return found;
  }

  /** The session object of a leased browser; undefined where it has ended since its record was read. */
  async findSession(browser: Browser, at: number): Promise<Session | undefined> {
    const launch = await this.find(homeOf(browser.id), browser.config);
    if (!launch) return undefined;
    const { poolId } = factsOf(browser);
    const { proxy_id } = proxyOf(launch, browser.lease);
    const proxyName = proxy_id === undefined ? undefined : await this.#nameOf(proxy_id);
    return {
      browser, launch, at, ...(proxyName === undefined ? {} : { proxyName }),
      ...(poolId ? { pool: { id: poolId, ...(browser.lease?.pool ? { name: browser.lease.pool } : {}) } } : {}),
    };
  }

  /** Not kept: a proxy may be renamed, and few sessions have one. */
  async #nameOf(proxy: string): Promise<string | undefined> {
    const found = await this.proxies.resolve({ id: proxy });
    return found.kind === "found" ? found.name : undefined;
  }
}
