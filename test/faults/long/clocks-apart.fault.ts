import { MovedClock } from "../../support/daemon/moved-clock.js";
import { useFaultBed } from "../../support/faults/bed.js";
import { expectCycle, expectExpiry } from "../../support/faults/cycles.js";
import { fault } from "../../support/faults/fault.js";

const bed = useFaultBed();
const minuteMs = 60_000;

const start = (role: "control" | "node", clock: MovedClock) =>
  bed.start(role, { node: { id: "far" } }, { environment: clock.environment });

for (const [control, node] of [
  [5, -5],
  [-5, 5],
  [60, -60],
  [-60, 60],
] as const)
  fault(
    `the clocks of a control and a node are ${control} and ${node} minutes off: leases, changes and expiries are as ever`,
    async (tell) => {
      const at = await start("control", new MovedClock(control * minuteMs));
      await start("node", new MovedClock(node * minuteMs));
      await at.makePool({ name: "herd", size: 2, timeout_seconds: 10 });
      await Promise.all([expectExpiry(at), expectCycle(at)]);
      await at.poolWhen("herd", (pool) => pool.available_count === 2);
      tell({ saw: "nothing" });
    },
  );
