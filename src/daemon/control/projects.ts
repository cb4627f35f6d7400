import { makeForgetProjects } from "../../access/forget-projects.js";
import type { KnownProjects } from "../../access/api-key.js";
import type { ProjectContents, ProjectDirectory, ProjectOperations } from "../../access/project.js";
import { makeProjectOperations } from "../../access/project-operations.js";
import {
  type BrowserId,
  findProjectId,
  newRequestId,
  onDemandIn,
  partitionOf,
  type ProjectId,
} from "../../base/ids.js";
import type { ReleaseRequest } from "../../pool/ports/pool-store.js";
import { retireLeft } from "../../pool/pool-operations.js";
import { eraseEvents } from "../../telemetry/sweep-events.js";
import type { DaemonParts } from "../parts.js";
import type { Stores } from "../stores.js";
import { removeRegistered } from "./project-registries.js";

/** Undefined where projects are not enabled. */
export const openProjects = ({ config, stores }: DaemonParts): ProjectOperations | undefined =>
  config.projects.enabled
    ? makeProjectOperations({
        directory: stores.directory,
        contents: contentsOf(stores),
        maxProjects: config.projects.maxProjects,
        limits: stores.limits,
        concurrentSessions: config.limits.concurrentSessions,
      })
    : undefined;

/** docs/projects.md: what was deleted is looked after until nothing is left of it. */
export function forgetProjects({ stores }: DaemonParts): () => Promise<void> {
  const { directory, limits, projects } = stores;
  const contents = contentsOf(stores);
  return makeForgetProjects({
    directory,
    limits,
    findRunning: (id) => findRunning(stores, id),
    removeRegistered: (id) => removeRegistered(projects.of(id)),
    async isEmpty(id) {
      const left = projects.of(id).projects;
      if ((await contents.isRunning(id)) || (await contents.hasRegistered(id))) return false;
      if ((await stores.standby.find(onDemandIn(id))).browsers.length > 0) return false;
      return (await left.partitions()).length === 1 && (await left.countTombstones()) === 0;
    },
    async erase(id) {
      await eraseEvents(stores.events, id);
      await projects.of(id).projects.erase();
    },
  });
}

/** Launches end by themselves: nobody waits for them. */
async function findRunning({ poolStore, projects }: Stores, id: ProjectId) {
  const left = projects.of(id).projects;
  const [pools, { browsers }] = await Promise.all([left.pools(), poolStore.browsers(onDemandIn(id))]);
  const sessions = browsers.filter(({ state }) => state === "leased");
  if (pools.length + sessions.length === 0) return undefined;
  return async (): Promise<void> => {
    for (const pool of pools) {
      await poolStore.deletePool(partitionOf(pool), { force: true, request: newRequestId() });
      await retireLeft(poolStore, partitionOf(pool));
      await left.settlePool(pool);
    }
    for (const { id: browser } of sessions) await poolStore.release(partitionOf(browser), endOf(browser));
  };
}
const endOf = (browser: BrowserId): ReleaseRequest => ({
  browser,
  reuse: false,
  why: "deleted",
  isRetry: false,
  request: newRequestId(),
});

export const namesIn = (directory: ProjectDirectory): KnownProjects => ({
  async nameOf(text) {
    const id = findProjectId(text);
    return id && (await directory.find(id))?.name;
  },
});

const contentsOf = ({ poolStore, projects, standby }: Stores): ProjectContents => ({
  async isRunning(id) {
    // Browsers that stand by, or are launched for that, belong to nobody. Looked at before leases: a launch
    // that has ended since is one of them.
    if ((await standby.find(onDemandIn(id))).sessionsLaunching > 0) return true;
    const { leased } = await poolStore.counts(onDemandIn(id));
    return leased > 0 || (await projects.of(id).projects.pools()).length > 0;
  },
  async hasRegistered(id) {
    const { extensions, profiles, proxies, destinations, vaults } = projects.of(id);
    const first = { limit: 1, offset: 0 };
    const [loaded, saved, routed, exported, kept] = await Promise.all([
      extensions.all(),
      profiles.page(first),
      proxies.page(first),
      destinations.all(),
      vaults.all(),
    ]);
    const registered = [loaded, saved.items, routed.items, exported, kept];
    return registered.some(({ length }) => length > 0);
  },
});
