import { LRUCache } from "lru-cache";
import { attemptEach } from "../../base/concurrently.js";
import { findProjectId, type Partition, type ProjectId, projectNamedByPartition } from "../../base/ids.js";
import type { Projects } from "../../pool/ports/project-store.js";
import { RedisExtensionStore } from "./extension-store.js";
import { RedisOtlpDestinationStore } from "./otlp-destination-store.js";
import type { StoreLimits } from "../limits.js";
import { RedisProfileStore } from "./profile-store.js";
import { RedisProjectStore } from "./project-store.js";
import { RedisVaultStore } from "./vault-store.js";
import { RedisProxyStore } from "./proxy-store.js";
import { readAccount } from "../organization/reservations.js";
import type { DurableWrites } from "../redis/durable-writes.js";
import type { ScriptStore } from "../redis/redis.js";

/** What is kept of one project, in a slot of its own. */
export interface ProjectStores {
  readonly projects: RedisProjectStore;
  readonly proxies: RedisProxyStore;
  readonly profiles: RedisProfileStore;
  readonly extensions: RedisExtensionStore;
  readonly destinations: RedisOtlpDestinationStore;
  readonly vaults: RedisVaultStore;
}

const projectsAtOnce = 32;
/** Redis keeps streams in pieces of 100: less would save nothing. */
const leastEvents = 100;

interface RedisProjectsParts {
  readonly limits: StoreLimits;
  readonly vaultWrites: Pick<DurableWrites, "write">;
  /** The project of ids that name none. */
  readonly unnamed: ProjectId;
  /** Ids of all other projects that may have anything. */
  others(): Promise<readonly ProjectId[]>;
}

/** All projects: the stores of each, made when first asked for, and what ticks do in every one of them. */
export class RedisProjects implements Projects {
  /** They hold nothing that is not in Redis. */
  readonly #made = new LRUCache<ProjectId, ProjectStores>({ max: 1000 });

  constructor(
    private readonly store: ScriptStore,
    private readonly parts: RedisProjectsParts,
  ) {}

  readonly of = (project: ProjectId): ProjectStores => {
    const known = this.#made.get(project);
    if (known) return known;
    const made = this.#make(project);
    this.#made.set(project, made);
    return made;
  };

  at(partition: Partition): RedisProjectStore {
    return this.ofPartition(partition).projects;
  }

  ofPartition(partition: Partition): ProjectStores {
    return this.of(projectNamedByPartition(partition) ?? this.parts.unnamed);
  }

  async all(): Promise<readonly ProjectStores[]> {
    return [this.parts.unnamed, ...(await this.parts.others())].map((project) => this.of(project));
  }

  async partitions(): Promise<readonly Partition[]> {
    const [own, others] = await Promise.all([
      this.of(this.parts.unnamed).projects.partitions(),
      this.parts
        .others()
        .then((ids) => Promise.all(ids.map((project) => this.of(project).projects.partitions()))),
    ]);
    return [...own, ...others.flat()];
  }

  settlePartition = (partition: Partition): Promise<boolean> => this.at(partition).settlePartition(partition);

  sweepNames = (): Promise<void> => this.#each(({ projects }) => projects.sweepNames());
  sweepPools = (): Promise<void> => this.#each(({ projects }) => projects.sweepPools());
  /** Also in projects of which nothing but a reservation is known any more. */
  async sweepReservations(): Promise<void> {
    const account = await readAccount(this.store);
    const reserving = [...account.projects.keys()].flatMap((id) => findProjectId(id) ?? []);
    const all = new Set([...(await this.all()), ...reserving.map(this.of)]);
    await this.#eachOf([...all], ({ projects }) => projects.sweepReservations(account));
  }
  sweepTombstones = (): Promise<void> => this.#each(({ projects }) => projects.sweepTombstones());
  sweepPendingTombstones = (): Promise<void> =>
    this.#each(({ projects }) => projects.sweepPendingTombstones());

  /** In one project, or in all. */
  async countVaults(scope: ProjectId | null): Promise<number> {
    const all = scope === null ? await this.all() : [this.of(scope)];
    const counts = await Promise.all(all.map(({ vaults }) => vaults.count()));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async sweepEvents(): Promise<void> {
    const partitions = await this.partitions();
    const share = Math.max(leastEvents, Math.floor(this.parts.limits.eventsKeptInAll / partitions.length));
    await Promise.all(partitions.map((partition) => this.at(partition).cutEvents(partition, share)));
  }

  /** What is known here of limits that the API sets. */
  forgetLimits(): void {
    for (const { projects } of this.#made.values()) projects.forgetLimits();
  }

  /** Goes on past the failures of one. */
  async #each(work: (stores: ProjectStores) => Promise<void>): Promise<void> {
    await this.#eachOf(await this.all(), work);
  }

  async #eachOf(
    all: readonly ProjectStores[],
    work: (stores: ProjectStores) => Promise<void>,
  ): Promise<void> {
    await attemptEach(all, projectsAtOnce, work);
  }

  #make(project: ProjectId): ProjectStores {
    return {
      projects: new RedisProjectStore(this.store, project, this.parts.limits),
      proxies: new RedisProxyStore(this.store, project),
      profiles: new RedisProfileStore(this.store, project),
      extensions: new RedisExtensionStore(this.store, project),
      destinations: new RedisOtlpDestinationStore(this.store, project),
      vaults: new RedisVaultStore(this.store, project, {
        writes: this.parts.vaultWrites,
        limits: this.parts.limits,
      }),
    };
  }
}
