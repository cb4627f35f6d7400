import { systemClock } from "../../../src/base/clock.js";
import { makeMaintenance, type MaintenancePorts } from "../../../src/pool/maintenance.js";
import { silentLog } from "../browser/chromium-host.js";
import type { StoreBed } from "./store-bed.js";

/** All ticks of a control that is alone; its reap is that of what spans partitions, too. */
export function upkeepOf(
  bed: StoreBed,
  over: Partial<MaintenancePorts> & Pick<MaintenancePorts, "queues">,
): ReturnType<typeof makeMaintenance> {
  const maintenance = makeMaintenance({
    poolStore: bed.poolStore,
    projects: bed.allProjects,
    nodes: bed.nodes,
    jobs: { add: async () => {} },
    clock: systemClock,
    log: silentLog,
    fill: async () => {},
    refresh: async () => {},
    share: () => true,
    maxLeases: null,
    listensMs: async () => 60_000,
    lostAfterMs: { node: 15_000, control: 5000 },
    ...over,
  });
  const reap = async (): Promise<void> => {
    await maintenance.sweep();
    await maintenance.reap();
  };
  return { ...maintenance, reap };
}
