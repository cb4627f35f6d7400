import { setMaxListeners } from "node:events";
import { startRedis } from "../support/store/redis.js";
import { openStoreBed, type StoreBed } from "../support/store/store-bed.js";
import { servedFences } from "./scale/acquires.js";
import { costOf, type SlowScript } from "./scale/cost.js";
import { SimulatedFleet } from "./scale/fleet.js";
import { fleetSize } from "./scale/sizes.js";
import { leasedAtOnce, onceOnly, parts } from "./scale/steps.js";
import { preferRedis } from "./scale.js";
import type { Report } from "./support/report.js";

const mostMs = 5;
const loggedMicros = 200;

interface Longest extends SlowScript {
  readonly step: string;
}

/** The longest run of each script in a pool that has half the browsers of a large fleet (docs/scale.md). */
export async function benchScripts(): Promise<Report> {
  setMaxListeners(0);
  const { nodes, largest } = fleetSize();
  const server = await startRedis();
  const bed = await openStoreBed(server, { project: "scripts", commandTimeoutMs: 600_000 });
  const fleet = new SimulatedFleet(bed, { ...fleetSize(), pools: 2, browsers: 3 * largest, largest: 1 });
  await bed.redis.info("server").then(preferRedis);
  const fences = await servedFences(server, bed);
  const found: Longest[] = [];
  try {
    await fleet.create();
    for (const steps of parts) found.push(...(await measure(bed, { fleet, steps, size: largest })));
  } finally {
    fleet.stop();
    await fences.close();
    await bed.close();
    await server.stop();
  }
  for (const [text, times] of fleet.faults) console.error(`failed ${times} times: ${text}`);
  return report(found, { nodes, largest });
}

async function measure(
  bed: StoreBed,
  { fleet, steps, size }: { fleet: SimulatedFleet; steps: (typeof parts)[number]; size: number },
): Promise<readonly Longest[]> {
  const partition = await fleet.addPool(size);
  await fleet.stock(partition, size, leasedAtOnce);
  const found: Longest[] = [];
  for (const [step, work] of Object.entries(steps)) {
    await fleet.beatAll();
    const { slow, tookMs } = await costOf(bed.redis, () => work({ bed, fleet, partition }), loggedMicros);
    found.push(...slow.map((one) => ({ ...one, step })));
    console.error(`${step}: ${tookMs.toFixed(0)} ms`);
  }
  await fleet.settled();
  await fleet.forget(partition);
  return found;
}

function report(found: readonly Longest[], { nodes, largest }: { nodes: number; largest: number }): Report {
  const longest = new Map<string, Longest>();
  for (const one of found) {
    const name = onceOnly.has(one.step) ? `${one.name}, ${one.step}` : one.name;
    if (one.longestMs > (longest.get(name)?.longestMs ?? 0)) longest.set(name, one);
  }
  const rows = [...longest].toSorted(([, one], [, other]) => other.longestMs - one.longestMs);
  const usual = rows.filter(([, { step, isScript }]) => isScript && !onceOnly.has(step));
  const [worst] = usual;
  return {
    title: "The longest run of each script",
    method: [
      `One pool of ${largest} browsers on ${nodes} nodes: records in a real Redis, changed by the product's own modules.`,
      `By the slow log of Redis, which has what takes longer than ${loggedMicros / 1000} ms; the row of each is that of the step in which it took longest. On a busy machine it counts what others took of the processor.`,
    ],
    head: ["script or command", "longest ms", "median ms", "times", "in"],
    rows: rows.map(([name, { longestMs, medianMs, times, step }]) => [
      name,
      longestMs.toFixed(2),
      medianMs.toFixed(2),
      String(times),
      step,
    ]),
    bars: [
      {
        what: `no script longer than ${mostMs} ms, but for ${[...onceOnly].join("; ")}`,
        is: worst ? `${worst[0]} ${worst[1].longestMs.toFixed(2)} ms` : "none was logged",
        isMet: worst === undefined || worst[1].longestMs <= mostMs,
      },
    ],
  };
}
