import { rm } from "node:fs/promises";
import { pause, systemClock } from "../../src/base/clock.js";
import type { Chromium, Engine } from "../../src/browser/chromium.js";
import type { BrowserHost } from "../../src/browser/host.js";
import { etcDirectory } from "../../src/browser/isolation/ladder.js";
import { rungs } from "../../src/browser/isolation/rungs.js";
import { makeWalls } from "../../src/browser/isolation/walls.js";
import { launchChromium } from "../support/browser/launch-chromium.js";
import { launchSpec, openTestHost } from "../support/browser/chromium-host.js";
import { newScratchDirectory } from "../support/killed-runs.js";
import { viewport } from "./support/bare.js";
import { median } from "./support/figures.js";
import type { Bar, Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";
import { treeKiB } from "./tiers/memory.js";

const launchesPerRun = 6;
const settleMs = 1500;
const roundTrips = 200;
/** Browsers at once. */
const together = 10;
const bars = { launchMs: 10, memoryMiB: 1, killMs: 50 } as const;

interface Figures {
  readonly launchMs: number;
  /** p50 of a CDP round trip on its pipe. */
  readonly roundTripMs: number;
  /** The time from the kill until nothing of the browser is left. */
  readonly killMs: number;
}
type Pair<Figure> = Readonly<Record<"with" | "without", Figure>>;

/** What the private root costs: to launch a browser in it, to keep it, to end it. */
export async function benchWalls({ runs }: { runs: number }): Promise<Report> {
  const scratchDirectory = newScratchDirectory();
  const host = await openTestHost({ scratchDirectory });
  try {
    const sides = { with: host, without: withoutRoot(host) };
    const found: Measured[] = [];
    for (const engine of Object.keys(host.executables) as Engine[]) {
      const pairs = (
        await inRuns(runs, () =>
          inTurn(times(launchesPerRun), () => pair(sides, (side) => measure(engine, side))),
        )
      ).flat();
      const memory = await inRuns(2 * runs, (run) => memoryOf(engine, sides, run % 2 === 0));
      const density = await inRuns(runs, () => pair(sides, (side) => densityOf(engine, side)));
      found.push({ engine, pairs, memory, density });
    }
    return report(found);
  } finally {
    await host.close();
    await rm(scratchDirectory, { recursive: true, force: true });
  }
}

/** The same host on the lowest rung, with the same sandbox of Chromium's. */
function withoutRoot(host: BrowserHost): BrowserHost {
  const { tools, walls, scratchDirectory } = host;
  const rung = rungs.find(({ name }) => name === "none");
  if (!rung || !walls) throw new Error("there is no private root here");
  const etcOf = (uid: number): string => etcDirectory(scratchDirectory, uid);
  return {
    ...host,
    walls: makeWalls({
      rung,
      sandbox: walls.sandbox,
      tools,
      system: [],
      desktop: [],
      libraries: [],
      programs: [],
      policies: "",
      configuration: [],
      etcOf,
    }),
  };
}

async function pair<Figure>(
  sides: Pair<BrowserHost>,
  measureOne: (host: BrowserHost) => Promise<Figure>,
): Promise<Pair<Figure>> {
  return { with: await measureOne(sides.with), without: await measureOne(sides.without) };
}

const launch = (engine: Engine, host: BrowserHost): Promise<Chromium> =>
  launchChromium(launchSpec({ engine, viewport }), host);

async function measure(engine: Engine, host: BrowserHost): Promise<Figures> {
  const started = systemClock.monotonic();
  const chromium = await launch(engine, host);
  const launchMs = systemClock.monotonic() - started;
  const roundTripMs = await roundTripOf(chromium);
  const killedAt = systemClock.monotonic();
  await chromium.kill();
  return { launchMs, roundTripMs, killMs: systemClock.monotonic() - killedAt };
}

async function roundTripOf(chromium: Chromium): Promise<number> {
  const tookMs: number[] = [];
  for (const _ of times(roundTrips)) {
    const asked = systemClock.monotonic();
    await chromium.probe(10_000);
    tookMs.push(systemClock.monotonic() - asked);
  }
  return median(tookMs);
}

/** What one of so many takes that run at once, in MiB. */
async function densityOf(engine: Engine, host: BrowserHost): Promise<number> {
  const all = await inTurn(times(together), () => launch(engine, host));
  await pause(systemClock, settleMs);
  const sizes = await Promise.all(all.map(treeKiB));
  await Promise.all(all.map((chromium) => chromium.kill()));
  return sizes.reduce((sum, size) => sum + size, 0) / together / 1024;
}

/**
 * One beside the other, so that they share the same pages; which of them has settled longer changes from run
 * to run.
 */
async function memoryOf(engine: Engine, sides: Pair<BrowserHost>, isTurned: boolean): Promise<Pair<number>> {
  const first = await launch(engine, isTurned ? sides.without : sides.with);
  const second = await launch(engine, isTurned ? sides.with : sides.without);
  const both = isTurned ? { with: second, without: first } : { with: first, without: second };
  await pause(systemClock, settleMs);
  const sizes = { with: (await treeKiB(both.with)) / 1024, without: (await treeKiB(both.without)) / 1024 };
  await Promise.all([both.with.kill(), both.without.kill()]);
  return sizes;
}

interface Measured {
  readonly engine: Engine;
  readonly pairs: readonly Pair<Figures>[];
  readonly memory: readonly Pair<number>[];
  readonly density: readonly Pair<number>[];
}

const numbers = (pairs: readonly Pair<Figures>[], key: keyof Figures): Pair<number>[] =>
  pairs.map((each) => ({ with: each.with[key], without: each.without[key] }));
const more = (pairs: readonly Pair<number>[]): number =>
  median(pairs.map((each) => each.with - each.without));
const medianOf = (pairs: readonly Pair<number>[], side: keyof Pair<number>): number =>
  median(pairs.map((each) => each[side]));

function report(found: readonly Measured[]): Report {
  const row = (name: string, pairs: readonly Pair<number>[], digits = 1): string[] => [
    name,
    medianOf(pairs, "with").toFixed(digits),
    medianOf(pairs, "without").toFixed(digits),
    more(pairs).toFixed(digits),
  ];
  return {
    title: "The private root",
    method: [
      `Headless, one at a time, ${launchesPerRun} of each a run, in turns with the same browser on the rung "none"; no egress.`,
      `Memory: PSS of all processes ${settleMs / 1000} s after the launch, one beside the other. Round trip: p50 of ${roundTrips} on the browser's pipe, right after its launch. Killed: until nothing of it is left, directories included.`,
    ],
    head: ["", "with", "without", "more"],
    rows: found.flatMap(({ engine, pairs, memory, density }) => [
      row(`${engine}: launch, ms`, numbers(pairs, "launchMs")),
      row(`${engine}: CDP round trip, ms`, numbers(pairs, "roundTripMs"), 3),
      row(`${engine}: memory, MiB`, memory),
      row(`${engine}: memory of each of ${together}, MiB`, density),
      row(`${engine}: killed and gone, ms`, numbers(pairs, "killMs")),
    ]),
    bars: found.flatMap(barsOf),
  };
}

function barsOf({ engine, pairs, memory }: Measured): Bar[] {
  const launchMs = more(numbers(pairs, "launchMs"));
  const memoryMiB = more(memory);
  const killMs = medianOf(numbers(pairs, "killMs"), "with");
  return [
    {
      what: `${engine}: at most ${bars.launchMs} ms more per launch`,
      is: `${launchMs.toFixed(1)} ms`,
      isMet: launchMs <= bars.launchMs,
    },
    {
      what: `${engine}: at most ${bars.memoryMiB} MiB more`,
      is: `${memoryMiB.toFixed(1)} MiB`,
      isMet: memoryMiB <= bars.memoryMiB,
    },
    {
      what: `${engine}: gone within ${bars.killMs} ms`,
      is: `${killMs.toFixed(1)} ms`,
      isMet: killMs <= bars.killMs,
    },
  ];
}
