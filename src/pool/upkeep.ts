import type { Millis } from "../base/clock.js";
import { type Home, type NodeId, newRequestId } from "../base/ids.js";
import { type Log, textOf } from "../base/log.js";
import { launchJob } from "./fill.js";
import type { Nodes } from "./nodes.js";
import type { Homes, Jobs, Projects } from "./ports.js";

export interface UpkeepPorts {
  readonly homes: Homes;
  readonly projects: Projects;
  readonly nodes: Nodes;
  readonly jobs: Jobs;
  readonly log: Log;
  fill(home: Home): Promise<void>;
  /** Flushes what a pool has of a profile that was saved since, where it asks for that. */
  refresh(home: Home): Promise<void>;
  /** A lost node's queue goes with it. */
  dropQueue(node: NodeId): Promise<void>;
  readonly maxLeases: number | null;
  /** For how long some control has listened to beats without a gap. */
  listensMs(): Promise<Millis>;
  /** The silence after which a node, or a control, is taken for lost. */
  readonly lostAfterMs: { readonly node: Millis; readonly control: Millis };
}

/** The ticks: each looks at every home, goes past the failures of one, and may overlap with itself. */
export interface Upkeep {
  fill(): Promise<void>;
  reap(): Promise<void>;
  recycle(): Promise<void>;
}

export function makeUpkeep(ports: UpkeepPorts): Upkeep {
  const each = async (what: string, visit: (home: Home) => Promise<unknown>): Promise<void> => {
    for (const home of await ports.projects.homes()) {
      await visit(home).catch((error: unknown) => ports.log.warn({ home, what, error: textOf(error) }, "tick failed on a home"));
    }
  };
  return {
    fill: async () => {
      await ports.listensMs();
      await each("fill", ports.fill);
    },
    reap: async () => {
      // Whoever was silent while nobody listened, as in an outage of Redis, is not lost: it gets its time to be heard.
      const listensMs = await ports.listensMs();
      if (listensMs >= ports.lostAfterMs.node) await reapNodes(ports);
      if (listensMs >= ports.lostAfterMs.control) await each("reap", (home) => reapHome(ports, home));
      for (const facts of await ports.nodes.living()) await ports.nodes.sweepRooms(facts.id);
      await ports.projects.sweepGraves();
      await ports.projects.sweepNames();
      await ports.projects.sweepTombstones();
      await ports.projects.sweepPools();
    },
    recycle: async () => {
      await each("recycle", (home) => ports.homes.recycle(home, { maxLeases: ports.maxLeases, request: newRequestId() }));
      await each("refresh", ports.refresh);
      await ports.projects.sweepEvents();
    },
  };
}

async function reapHome({ homes, jobs }: UpkeepPorts, home: Home): Promise<void> {
  const reaped = await homes.reap(home);
  await jobs.add((reaped?.launch ?? []).flatMap(launchJob));
}

/** What a lost node held is over: its leases end, its records go, since nobody is left to clear up. */
async function reapNodes(ports: UpkeepPorts): Promise<void> {
  for (const node of await ports.nodes.lost()) {
    let found = 0;
    for (const home of await ports.projects.homes()) {
      found += await ports.homes.clearNode(home, { node, why: "node_lost", which: "lost", request: newRequestId() });
    }
    ports.log.warn({ node, browsers: found }, "node lost");
    // A launch may be claimed on it still: it is forgotten when a look finds nothing there any more.
    if (found > 0) continue;
    await ports.nodes.forget(node);
    await ports.dropQueue(node);
  }
}
