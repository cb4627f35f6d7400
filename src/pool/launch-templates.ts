import { LRUCache } from "lru-cache";
import { type Partition, partitionOf } from "../base/ids.js";
import { launchFactsOf, type LeasedBrowser } from "./browser.js";
import type { LaunchTemplate } from "../spec/launch-template.js";
import { telemetryOf } from "../spec/telemetry.js";
import { proxyOf } from "./network.js";
import type { PoolStore } from "./ports/pool-store.js";
import { profileOf } from "./session-profile.js";
import type { References } from "../registry/references.js";
import type { Session } from "./session.js";

/** Launch templates never change under their key, so keeping them decides nothing. */
export class LaunchTemplates {
  readonly #kept = new LRUCache<string, LaunchTemplate>({ max: 500 });

  constructor(private readonly poolStore: Pick<PoolStore, "findTemplate">) {}

  /** What was stored under a key just now need not be read. */
  keep(partition: Partition, key: string, template: LaunchTemplate): void {
    this.#kept.set(`${partition} ${key}`, template);
  }

  async find(partition: Partition, key: string): Promise<LaunchTemplate | undefined> {
    const kept = this.#kept.get(`${partition} ${key}`);
    if (kept) return kept;
    const found = await this.poolStore.findTemplate(partition, key);
    if (found) this.#kept.set(`${partition} ${key}`, found);
    return found;
  }
}

/** What the objects that callers are shown are made from. */
export class SessionReader {
  readonly #launches: LaunchTemplates;

  constructor(
    poolStore: PoolStore,
    private readonly refs: Pick<References, "proxies" | "profiles">,
  ) {
    this.#launches = new LaunchTemplates(poolStore);
  }

  find(partition: Partition, key: string): Promise<LaunchTemplate | undefined> {
    return this.#launches.find(partition, key);
  }

  keep(partition: Partition, key: string, template: LaunchTemplate): void {
    this.#launches.keep(partition, key, template);
  }

  /** The session object of a leased browser; undefined where it has ended since its record was read. */
  async findSession(browser: LeasedBrowser, at: number): Promise<Session | undefined> {
    const launch = await this.find(partitionOf(browser.id), browser.templateKey);
    if (!launch) return undefined;
    const { poolId } = launchFactsOf(browser);
    const { proxyName, profile } = hasReferences(launch, browser)
      ? await this.#references(launch, browser)
      : nothingReferred;
    const telemetry = telemetryOf(launch.telemetry, browser.lease);
    return {
      browser,
      launch,
      at,
      ...(telemetry && { telemetry }),
      ...(proxyName === undefined ? {} : { proxyName }),
      ...(profile && { profile }),
      ...(poolId
        ? { pool: { id: poolId, ...(browser.lease.pool ? { name: browser.lease.pool } : {}) } }
        : {}),
    };
  }

  async #references(launch: LaunchTemplate, browser: LeasedBrowser): Promise<Referred> {
    const [proxyName, profile] = await Promise.all([
      this.#proxyName(launch, browser),
      this.#profile(launch, browser),
    ]);
    return { proxyName, profile };
  }

  /** The name is not cached: a proxy may be renamed, and few sessions have one. */
  async #proxyName(launch: LaunchTemplate, { lease }: LeasedBrowser): Promise<string | undefined> {
    const { proxy_id } = proxyOf(launch, lease);
    const found = proxy_id === undefined ? undefined : await this.refs.proxies.resolve({ id: proxy_id });
    return found?.kind === "found" ? found.name : undefined;
  }

  /** The profile is not cached either: a save, a new name and each use change it. */
  async #profile(launch: LaunchTemplate, { lease }: LeasedBrowser): Promise<Session["profile"]> {
    const loaded = profileOf(launch, lease);
    const facts = loaded && (await this.refs.profiles.find(loaded.id));
    return loaded && { ...loaded, ...(facts && { facts }) };
  }
}

/** What a session names that is registered, as it is now. */
interface Referred {
  readonly proxyName: string | undefined;
  readonly profile: Session["profile"];
}
const nothingReferred: Referred = { proxyName: undefined, profile: undefined };

const hasReferences = (launch: LaunchTemplate, { lease }: LeasedBrowser): boolean =>
  proxyOf(launch, lease).proxy_id !== undefined || profileOf(launch, lease) !== undefined;
