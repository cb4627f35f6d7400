import type { Redis } from "ioredis";
import { Events } from "../../../src/base/events.js";
import {
  type ClaimId,
  type Partition,
  newBrowserId,
  type LeaseId,
  newRequestId,
  type NodeId,
  type ProjectId,
} from "../../../src/base/ids.js";
import type { Log } from "../../../src/base/log.js";
import type { Browser, Lease, RetireReason } from "../../../src/pool/browser.js";
import type { PoolSpec } from "../../../src/spec/launch-template.js";
import type { LaunchCandidate, Job, PoolWrite } from "../../../src/pool/ports/pool-store.js";
import type { PoolSignals } from "../../../src/pool/ports/signals.js";
import { RedisDatasetStore } from "../../../src/store/dataset-store.js";
import { EffectRunner } from "../../../src/store/effects.js";
import { RedisProjectDirectory } from "../../../src/store/organization/project-directory.js";
import type { RedisExtensionStore } from "../../../src/store/project/extension-store.js";
import { PartitionScripts } from "../../../src/store/partition-scripts.js";
import { RedisPoolStore } from "../../../src/store/pool-store.js";
import type { StoreLimits } from "../../../src/store/limits.js";
import { RedisScalingStore } from "../../../src/store/scaling-store.js";
import { RedisStandbyStore } from "../../../src/store/standby-store.js";
import { RedisNodeStore } from "../../../src/store/node-store.js";
import type { RedisProfileStore } from "../../../src/store/project/profile-store.js";
import { RedisProjects } from "../../../src/store/project/projects.js";
import type { RedisProjectStore } from "../../../src/store/project/project-store.js";
import type { RedisOtlpDestinationStore } from "../../../src/store/project/otlp-destination-store.js";
import type { RedisVaultStore } from "../../../src/store/project/vault-store.js";
import type { RedisProxyStore } from "../../../src/store/project/proxy-store.js";
import { connectAlone } from "../../../src/store/redis/connect.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { RedisNodeReports } from "../../../src/store/node-reports.js";
import { defaultLimits } from "./store-limits.js";
import type { TestRedis } from "./redis.js";
import { unsynced } from "./unsynced.js";

const silent: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };

/** The store on a test's Redis, its jobs kept in a list, its messages heard. */
export interface StoreBed {
  readonly redis: Redis;
  readonly store: ScriptStore;
  readonly poolStore: RedisPoolStore;
  readonly dataset: RedisDatasetStore;
  readonly reports: RedisNodeReports;
  readonly projects: RedisProjectStore;
  readonly allProjects: RedisProjects;
  readonly proxies: RedisProxyStore;
  readonly profiles: RedisProfileStore;
  readonly extensions: RedisExtensionStore;
  readonly destinations: RedisOtlpDestinationStore;
  readonly vaults: RedisVaultStore;
  readonly nodes: RedisNodeStore;
  readonly scaling: RedisScalingStore;
  readonly standby: RedisStandbyStore;
  readonly effects: EffectRunner;
  readonly jobs: Job[];
  readonly ended: PoolSignals["lease.ended"][];
  readonly project: ProjectId;
  close(): Promise<void>;
}

export interface BedOptions {
  readonly project: string;
  readonly limits?: Partial<StoreLimits>;
  /** The database of a plain Redis; each bed has its own, so that beds do not meet. */
  readonly database?: number;
  readonly commandTimeoutMs?: number;
  /** Whether the process has died before it carried out what the script left to be done. */
  readonly isEffectLost?: () => boolean;
}

export async function openStoreBed(server: TestRedis, options: BedOptions): Promise<StoreBed> {
  const project = options.project as ProjectId;
  const limits = { ...defaultLimits, ...options.limits };
  const redis = connectAlone({
    url: server.url,
    isCluster: false,
    connectTimeoutMs: 2000,
    commandTimeoutMs: options.commandTimeoutMs ?? 10_000,
  });
  const store = new ScriptStore(redis, silent);
  await store.open(new AbortController().signal);
  if (options.database !== undefined) await redis.select(options.database);
  const unlessLost = <Value>(work: () => Promise<Value>): Promise<Value | void> =>
    options.isEffectLost?.() ? Promise.resolve() : work();
  const allProjects = new RedisProjects(store, {
    vaultWrites: unsynced,
    limits,
    unnamed: project,
    others: async () => [],
  });
  const { projects, proxies, profiles, extensions, destinations, vaults } = allProjects.of(project);
  const nodes = new RedisNodeStore(store, project, {
    limits,
    overcommit: 1,
    giveWay: (browsers) => standby.retire(browsers, "unwanted"),
  });
  const jobs: Job[] = [];
  const ended: PoolSignals["lease.ended"][] = [];
  const signals = new Events<PoolSignals>((fault) => {
    throw fault;
  });
  signals.on("lease.ended", (end) => ended.push(end));
  const effects = new EffectRunner({
    jobs: { add: async (more) => void (await unlessLost(async () => jobs.push(...more))) },
    log: silent,
    signals,
    freeName: (name, owner, at) =>
      unlessLost(() => allProjects.at(at).freeName({ kind: "session", name, owner })),
    freeSession: (lease, partition) => unlessLost(() => allProjects.at(partition).freeSession(lease)),
    freeRoom: (node, browser) => unlessLost(() => nodes.freeRoom(node, browser)),
    moveTombstones: (partition) => unlessLost(() => allProjects.at(partition).moveTombstones(partition)),
  });
  const scripts = new PartitionScripts(store, effects, { unnamed: project, limits });
  const poolStore = new RedisPoolStore(scripts);
  const standby = new RedisStandbyStore(scripts);
  return {
    redis,
    store,
    poolStore,
    dataset: new RedisDatasetStore({
      store,
      scripts,
      projects: allProjects,
      directory: new RedisProjectDirectory(store),
    }),
    reports: new RedisNodeReports(scripts),
    projects,
    allProjects,
    proxies,
    profiles,
    extensions,
    destinations,
    vaults,
    nodes,
    scaling: new RedisScalingStore(scripts),
    standby,
    effects,
    jobs,
    ended,
    project,
    async close() {
      await effects.idle();
      await store.close();
    },
  };
}

export const poolSpec = (over: Partial<PoolSpec> = {}): PoolSpec => ({
  headless: true,
  stealth: false,
  kiosk_mode: false,
  engine: "chromium",
  memory: "1GiB",
  viewport: { width: 800, height: 600, refresh_rate: 60 },
  size: 2,
  fill_rate_per_minute: 6000,
  timeout_seconds: 60,
  reset_on_release: "none",
  ...over,
});

export const writeOf = (spec: PoolSpec, unsupported: readonly string[] = []): PoolWrite => {
  const {
    size: _,
    fill_rate_per_minute: __,
    timeout_seconds: ___,
    reset_on_release: ____,
    name: _____,
    ...template
  } = spec;
  return { spec, template, unsupported };
};

export const launchFacts = { headless: true, stealth: false, kiosk_mode: false, memory: "1GiB" } as const;
export const candidateOn = (partition: Partition, node: NodeId, recycleAt?: number): LaunchCandidate => ({
  id: newBrowserId(partition),
  node,
  facts: JSON.stringify(launchFacts),
  ...(recycleAt === undefined ? {} : { recycleAt }),
});

/** A record whatever its state: a test looks for a field and says itself what it expects. */
export type AnyRecord = Browser & {
  readonly lease?: Lease;
  readonly claim?: ClaimId;
  readonly fence?: LeaseId;
  readonly why?: RetireReason;
};
export const claimOf = (browser: AnyRecord): ClaimId => {
  if (!browser.claim) throw new Error(`${browser.id} has no claim`);
  return browser.claim;
};

export const request = newRequestId;
