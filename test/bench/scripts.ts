import { setMaxListeners } from "node:events";
import { startRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";
import { servedFences } from "./scale/acquires.js";
import { SimulatedFleet } from "./scale/fleet.js";
import { type MeteredScript, mostMs, ScriptMeter } from "./scale/script-meter.js";
import { fleetSize } from "./scale/sizes.js";
import { leasedAtOnce, parts } from "./scale/steps.js";
import { systemClock } from "../../src/base/clock.js";
import type { Report } from "./support/report.js";

interface Longest extends MeteredScript {
  readonly step: string;
}

/** The longest run of each script in a pool that has half the browsers of a large fleet (docs/scale.md). */
export async function benchScripts(): Promise<Report> {
  setMaxListeners(0);
  const { nodes, largest } = fleetSize();
  const server = await startRedis();
  const bed = await openStoreBed(server, { project: "scripts", commandTimeoutMs: 600_000 });
  const fleet = new SimulatedFleet(bed, { ...fleetSize(), pools: 2, browsers: 3 * largest, largest: 1 });
  const meter = await ScriptMeter.on(bed.store, bed.redis);
  const fences = await servedFences(server, bed);
  const found: Longest[] = [];
  try {
    await fleet.create();
    for (const steps of parts) found.push(...(await measure(bed, { fleet, meter, steps, size: largest })));
  } finally {
    await fleet.stop();
    await fences.close();
    await bed.close();
    await server.stop();
  }
  for (const [text, times] of fleet.faults) console.error(`failed ${times} times: ${text}`);
  return report(found, { nodes, largest });
}

async function measure(
  bed: StoreBed,
  {
    fleet,
    meter,
    steps,
    size,
  }: { fleet: SimulatedFleet; meter: ScriptMeter; steps: (typeof parts)[number]; size: number },
): Promise<readonly Longest[]> {
  const partition = await fleet.addPool(size);
  await fleet.stock(partition, size, leasedAtOnce);
  const found: Longest[] = [];
  for (const [step, work] of Object.entries(steps)) {
    await fleet.beatAll();
    meter.take();
    const began = systemClock.monotonic();
    await work({ bed, fleet, partition });
    found.push(...meter.take().map((one) => ({ ...one, step })));
    console.error(`${step}: ${(systemClock.monotonic() - began).toFixed(0)} ms`);
  }
  await fleet.settled();
  await fleet.forget(partition);
  return found;
}

function report(found: readonly Longest[], { nodes, largest }: { nodes: number; largest: number }): Report {
  const longest = new Map<string, Longest>();
  for (const one of found)
    if (one.longestMs > (longest.get(one.name)?.longestMs ?? 0)) longest.set(one.name, one);
  const rows = [...longest.values()].toSorted((one, other) => other.longestMs - one.longestMs);
  const [worst] = rows;
  return {
    title: "The longest run of each script",
    method: [
      `One pool of ${largest} browsers on ${nodes} nodes: records in a real Redis, changed by the product's own modules.`,
      "Processor time of Redis's main thread for one call, the reading of it and the answer included, of calls beside which nothing else ran; the row of each script is that of the step in which it took longest.",
    ],
    head: ["script", "longest ms", "median ms", "runs", `over ${mostMs} ms`, "commands", "in"],
    rows: rows.map(({ name, longestMs, medianMs, times, over, commands, step }) => [
      name,
      longestMs.toFixed(2),
      medianMs.toFixed(2),
      String(times),
      String(over),
      String(commands),
      step,
    ]),
    bars: [
      {
        what: `no script longer than ${mostMs} ms`,
        is: worst ? `${worst.name} ${worst.longestMs.toFixed(2)} ms` : "none was measured",
        isMet: worst !== undefined && worst.longestMs <= mostMs,
      },
    ],
  };
}
