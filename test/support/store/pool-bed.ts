import {
  type BrowserId,
  type ControlId,
  type Partition,
  partitionOf,
  type LeaseId,
  newLeaseId,
  newPoolId,
  type NodeId,
  type PoolId,
  type RequestId,
} from "../../../src/base/ids.js";
import type { LaunchingBrowser, LeasedBrowser } from "../../../src/pool/browser.js";
import type { PoolSpec } from "../../../src/spec/launch-template.js";
import type { Pool } from "../../../src/pool/pool.js";
import type { RefreshPlace, ReleaseRequest, Waiter } from "../../../src/pool/ports/pool-store.js";
import type { AcquireReply } from "../../../src/pool/ports/store-replies.js";
import { partitionKey, type PartitionPart } from "../../../src/store/redis/keys.js";
import { age } from "./age.js";
import { pictureOf } from "./picture.js";
import {
  type AnyRecord,
  candidateOn,
  claimOf,
  poolSpec,
  request,
  type StoreBed,
  writeOf,
} from "./store-bed.js";

export const nodeA = "node-a" as NodeId;
export const nodeB = "node-b" as NodeId;
export const controlA = "controlaaaaa" as ControlId;
export const controlB = "controlbbbbb" as ControlId;

export interface Asked {
  readonly waiter: Waiter;
  readonly reply: AcquireReply;
}
export interface Held {
  readonly browser: LeasedBrowser;
  readonly id: BrowserId;
  readonly lease: LeaseId;
}
interface AskOptions extends Partial<Waiter> {
  readonly body?: string;
  readonly mayWait?: boolean;
}

/** One pool, seen as a test wants to see it. */
export class PoolBed {
  readonly partition: Partition;
  revision = 1;

  private constructor(
    readonly bed: StoreBed,
    readonly id: PoolId,
    public spec: PoolSpec,
  ) {
    this.partition = partitionOf(id);
  }

  static async create(
    bed: StoreBed,
    over: Partial<PoolSpec> = {},
    unsupported: readonly string[] = [],
  ): Promise<PoolBed> {
    const pool = new PoolBed(bed, newPoolId(), poolSpec(over));
    await bed.poolStore.createPool(pool.partition, {
      id: pool.id,
      write: writeOf(pool.spec, unsupported),
      request: request(),
    });
    return pool;
  }

  /** A pool whose browsers are all idle. */
  static async filled(bed: StoreBed, over: Partial<PoolSpec> = {}): Promise<PoolBed> {
    const pool = await PoolBed.create(bed, over);
    await pool.launch(pool.spec.size);
    return pool;
  }

  claim(
    count: number,
    options: { node?: NodeId; recycleAt?: number } = {},
  ): Promise<readonly LaunchingBrowser[]> {
    const candidates = Array.from({ length: count }, () =>
      candidateOn(this.partition, options.node ?? nodeA, options.recycleAt),
    );
    return this.bed.poolStore.claimLaunches(this.partition, { candidates, request: request() });
  }

  /** Claims launches and reports them healthy, in order. */
  async launch(
    count: number,
    options: { node?: NodeId; recycleAt?: number } = {},
  ): Promise<readonly BrowserId[]> {
    const claimed = await this.claim(count, options);
    for (const browser of claimed) await this.bed.reports.launched(browser.id, claimOf(browser), "{}");
    return claimed.map((browser) => browser.id);
  }

  async ask(options: AskOptions = {}): Promise<Asked> {
    const { body, mayWait = true, ...over } = options;
    const id = request();
    const waiter: Waiter = { id, lease: newLeaseId(), control: controlA, connection: id, ...over };
    const idempotencyKey =
      waiter.key === undefined ? {} : { idempotencyKey: { key: waiter.key, body: body ?? "body" } };
    return {
      waiter,
      reply: await this.bed.poolStore.acquire(this.partition, {
        pool: this.id,
        waiter,
        mayWait,
        ...idempotencyKey,
      }),
    };
  }

  async lend(options: AskOptions = {}): Promise<Held> {
    return heldOf((await this.ask(options)).reply);
  }

  async release(held: Held, over: Partial<ReleaseRequest> = {}): Promise<string> {
    const reply = await this.bed.poolStore.release(this.partition, {
      browser: held.id,
      lease: held.lease,
      reuse: true,
      why: "released",
      isRetry: false,
      request: request(),
      ...over,
    });
    return reply.kind;
  }

  /** Releases as the official client does, which names no lease. */
  async releaseUnnamed(
    id: BrowserId,
    over: { isRetry?: boolean; request?: RequestId } = {},
  ): Promise<string> {
    const reply = await this.bed.poolStore.release(this.partition, {
      browser: id,
      reuse: true,
      why: "released",
      isRetry: false,
      request: request(),
      ...over,
    });
    return reply.kind;
  }

  async update(
    change: Partial<PoolSpec>,
    flags: {
      revisedAt?: number;
      isNewLaunch?: boolean;
      isNewNetwork?: boolean;
      discard?: boolean;
      request?: RequestId;
    } = {},
  ): Promise<string> {
    const spec = { ...this.spec, ...change };
    const outcome = await this.bed.poolStore.updatePool(this.partition, {
      revision: this.revision,
      write: writeOf(spec),
      isNewLaunch: false,
      isNewNetwork: false,
      discard: false,
      request: request(),
      ...flags,
    });
    if (outcome === "updated") {
      this.spec = spec;
      this.revision = (await this.found()).revision;
    }
    return outcome;
  }

  /** All pieces of what pool/refresh.ts does. */
  async refresh(before: number): Promise<void> {
    let after: RefreshPlace | undefined;
    do {
      const ask = { before, ...(after && { after }), request: request() };
      after = await this.bed.poolStore.refresh(this.partition, ask);
    } while (after.from !== undefined);
  }

  async found(): Promise<Pool> {
    const pool = await this.bed.poolStore.findPool(this.partition);
    if (!pool) throw new Error("the pool is gone");
    return pool;
  }

  async counts(): Promise<Pool["counts"]> {
    return (await this.found()).counts;
  }

  async browsers(): Promise<readonly AnyRecord[]> {
    return (await this.bed.poolStore.browsers(this.partition)).browsers;
  }

  async record(id: BrowserId): Promise<AnyRecord> {
    const found = await this.bed.poolStore.findBrowser(id);
    if (!found) throw new Error(`${id} is gone`);
    return found.browser;
  }

  async state(id: BrowserId): Promise<string> {
    return (await this.bed.poolStore.findBrowser(id))?.browser.state ?? "gone";
  }

  connect(held: Held): ReturnType<StoreBed["reports"]["connect"]> {
    return this.bed.reports.connect(held.id, held.lease);
  }

  async freed(id: BrowserId): Promise<string> {
    return this.bed.reports.freed(id, claimOf(await this.record(id)));
  }

  /** The nodes end all that is retiring. */
  async clear(): Promise<void> {
    for (const browser of await this.browsers()) {
      if (browser.state === "retiring") await this.bed.reports.gone(browser.id, claimOf(browser));
    }
  }

  age(ms: number): Promise<void> {
    return age(this.bed.redis, `remuda:*{${this.partition}}:*`, ms);
  }

  beat(control: ControlId = controlA): Promise<void> {
    return this.bed.poolStore.beat(this.partition, control);
  }

  key(part: PartitionPart): string {
    return partitionKey(this.bed.project, this.partition, part);
  }

  async field(name: string): Promise<number> {
    return Number(await this.bed.redis.hget(this.key("pool"), name));
  }

  /** The moves of the pool as `from to why`, oldest first. */
  async moves(): Promise<readonly string[]> {
    const events = await this.bed.redis.xrange(this.key("events"), "-", "+");
    return events.map(([, fields]) => {
      const field = (name: string): string => fields[fields.indexOf(name) + 1] ?? "";
      return `${field("from")} ${field("to")} ${field("why")}`;
    });
  }

  /** All there is of the pool in Redis, but for kept answers. */
  async dump(): Promise<Record<string, string>> {
    const keys = (await this.bed.redis.keys(`remuda:*{${this.partition}}:*`))
      .filter((key) => !key.includes(":answer:"))
      .toSorted();
    return Object.fromEntries(
      await Promise.all(keys.map(async (key) => [key, await pictureOf(this.bed.redis, key)] as const)),
    );
  }
}

export function heldOf(reply: AcquireReply): Held {
  if (reply.kind !== "granted" || !reply.browser.lease) throw new Error(`nothing was granted: ${reply.kind}`);
  return { browser: reply.browser, id: reply.browser.id, lease: reply.browser.lease.id };
}
