import { expect } from "vitest";
import { CurlFailure } from "../../../src/egress/curl.js";
import { proxyEndpoints } from "../../../src/egress/port.js";
import type { Slot } from "../../../src/node/slot.js";
import { openSite, type Site } from "../browser/chromium-site.js";
import { until } from "../browser/chromium-until.js";
import { type Held, PoolBed } from "../store/pool-bed.js";
import { request } from "../store/store-bed.js";
import { type NodeBed, openNodeBed } from "./node-bed.js";

type PoolSettings = Parameters<typeof PoolBed.create>[1];

export interface LeasedBrowser {
  readonly pool: PoolBed;
  readonly slot: Slot;
  readonly held: Held;
}

/** A node whose browsers may reach one site. */
export class NetworkBed {
  private constructor(
    readonly node: NodeBed,
    private readonly site: Site,
  ) {}

  static async open(name: string): Promise<NetworkBed> {
    const [node, site] = await Promise.all([openNodeBed(name), openSite()]);
    return new NetworkBed(node, site);
  }

  /** Fails where a browser's proxy is left. */
  async close(): Promise<void> {
    await this.node.close();
    await this.site.close();
    expect([...proxyEndpoints]).toEqual([]);
  }

  /** A pool of one; without a slot where its browser could not be launched. */
  async launch(settings: PoolSettings = {}) {
    const pool = await PoolBed.create(this.node.bed, { size: 1, ...settings });
    const [browser] = await pool.claim(1);
    if (!browser) throw new Error("nothing was claimed");
    await this.node.launch(browser);
    return { pool, browser, slot: this.node.slots.find(browser.id) };
  }

  async lend(settings: PoolSettings = {}): Promise<LeasedBrowser> {
    const { pool, slot } = await this.launch(settings);
    if (!slot) throw new Error("nothing was launched");
    return { pool, slot, held: await pool.lend() };
  }

  /** Writes a change into the lease's record; nobody tells the node. */
  change(pool: PoolBed, { id, lease }: Held, network: { allowedHosts?: string; proxy?: string }) {
    return this.node.bed.poolStore.touch(pool.partition, {
      browser: id,
      lease,
      change: { set: {}, clear: [], touched: true, network },
      request: request(),
    });
  }

  /** What a request through the browser's way out comes to: `200`, or which rule denies it. */
  async reach(slot: Slot): Promise<unknown> {
    const asked = { url: this.site.origin, method: "GET", headers: {}, timeoutMs: 60_000 };
    return await slot.curl(asked, new AbortController().signal).then(
      ({ status }) => status,
      (error: unknown) => (error instanceof CurlFailure ? error.by : error),
    );
  }

  /** A first change, to a list without the site, is in the record and in force once the node has looked. */
  async changedAtNextLook({ pool, slot, held }: LeasedBrowser): Promise<void> {
    await this.node.clock.advance(1000);
    await until("it in the record", async () => (await pool.record(held.id)).lease?.network !== undefined);
    expect(await this.reach(slot)).toBe("allowed_hosts");
  }
}
