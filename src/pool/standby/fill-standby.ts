import type { Millis } from "../../base/clock.js";
import {
  type BrowserId,
  defaultProject,
  newBrowserId,
  newRequestId,
  type NodeId,
  type Partition,
  type ProjectId,
  projectNamedByPartition,
} from "../../base/ids.js";
import { memoryBytes } from "../../spec/bodies.js";
import type { LaunchTemplate } from "../../spec/launch-template.js";
import type { Browser, LaunchFacts } from "../browser.js";
import { launchJob } from "../fill.js";
import { NodeCapacities, Placement } from "../placement.js";
import type { NodeStore } from "../ports/node-store.js";
import type { Jobs } from "../ports/pool-store.js";
import type { Standby, StandbyStore } from "../ports/standby-store.js";
import type { StandbyShape } from "./shapes.js";

interface StandbyFillPorts {
  readonly standby: StandbyStore;
  readonly nodes: NodeStore;
  readonly jobs: Jobs;
  readonly shapes: readonly StandbyShape[];
  /** When a browser counts as old; null means never. */
  readonly maxAgeMs: Millis | null;
  /** Whether anybody may create sessions in the project. */
  isActive(project: ProjectId): Promise<boolean>;
}

/** Launches for those who wait are not to wait long for these. */
const launchingAtOnce = 2;

/**
 * Keeps as many browsers standing by in a partition of sessions on demand as the configuration says, where
 * there is room: retires what is old or not wanted, and launches what is missing, few at a time. Idempotent;
 * may overlap with itself.
 */
export const makeFillStandby = (ports: StandbyFillPorts) => {
  const { standby, shapes, nodes, jobs } = ports;
  return async (partition: Partition): Promise<void> => {
    const found = await standby.find(partition);
    const project = projectNamedByPartition(partition) ?? defaultProject;
    const declared = shapes.filter((shape) => shape.project === project);
    if (declared.length + found.browsers.length === 0) return;
    const wanted = (await ports.isActive(project)) ? declared : [];
    const surplus = surplusOf(found, wanted, ports.maxAgeMs);
    if (surplus.length > 0) await standby.retire(surplus, "recycled");
    const gone = new Set(surplus);
    const kept = found.browsers.filter(({ id }) => !gone.has(id));
    let free = launchingAtOnce - kept.filter(({ state }) => state === "launching").length;
    for (const shape of wanted) {
      const missing = shape.count - kept.filter((browser) => browser.standby === shape.key).length;
      const most = Math.min(missing, free);
      if (most <= 0) continue;
      const claimed = await launch({ standby, nodes, jobs }, partition, { shape, most, kept, found });
      free -= claimed;
    }
  };
};

/** Those of no shape that is wanted, the old, and the youngest of those that are too many. */
function surplusOf(
  { browsers, at }: Standby,
  wanted: readonly StandbyShape[],
  maxAgeMs: Millis | null,
): readonly BrowserId[] {
  const left = new Map(wanted.map(({ key, count }) => [key, count]));
  const isOld = ({ createdAt }: Browser): boolean => maxAgeMs !== null && at - createdAt > maxAgeMs;
  return browsers.flatMap((browser) => {
    const count = left.get(browser.standby ?? "") ?? 0;
    if (count === 0 || isOld(browser)) return [browser.id];
    left.set(browser.standby ?? "", count - 1);
    return [];
  });
}

interface Launching {
  readonly shape: StandbyShape;
  readonly most: number;
  readonly kept: readonly Browser[];
  readonly found: Standby;
}

/** How many launches it has claimed. */
async function launch(
  { standby, nodes, jobs }: Pick<StandbyFillPorts, "standby" | "nodes" | "jobs">,
  partition: Partition,
  { shape: { key, template, count }, most, kept, found: { resting } }: Launching,
): Promise<number> {
  const capacities = await NodeCapacities.read(nodes, { standsBy: true });
  const placement = new Placement(capacities, { engine: template.engine, ofPool: spreadOf(kept), resting });
  const ids = Array.from({ length: most }, () => newBrowserId(partition));
  const placed = await placement.reserveAll(ids, memoryBytes(template.memory));
  if (placed.size === 0) return 0;
  const facts = JSON.stringify(factsOf(template));
  const candidates = [...placed].map(([id, node]) => ({ id, node, facts }));
  const claimed = await standby.claim(partition, {
    candidates,
    key,
    template,
    count,
    request: newRequestId(),
  });
  const isClaimed = new Set(claimed.map(({ id }) => id));
  const unused = candidates.filter(({ id }) => !isClaimed.has(id));
  await Promise.all(unused.map(({ id, node }) => nodes.freeRoom(node, id)));
  await jobs.add(claimed.map(launchJob));
  return claimed.length;
}

function spreadOf(browsers: readonly Browser[]): ReadonlyMap<NodeId, number> {
  const counts = new Map<NodeId, number>();
  for (const { node } of browsers) counts.set(node, (counts.get(node) ?? 0) + 1);
  return counts;
}

const factsOf = ({ headless, stealth, kiosk_mode, memory }: LaunchTemplate): LaunchFacts => ({
  headless,
  stealth,
  kiosk_mode,
  memory,
});
