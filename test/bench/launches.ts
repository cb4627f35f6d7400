import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.js";
import { newScratchDirectory } from "../support/chromium-host.js";
import { type Bare, bareCommand, spawnBare } from "./bare.js";
import { type Daemon, startDaemon } from "./daemon.js";
import { median } from "./figures.js";
import type { Report } from "./report.js";
import { inRuns, times } from "./runs.js";

const perRun = 16;
const bar = 0.9;

/** How fast the daemon fills a pool, beside processes that are only spawned. */
export async function benchLaunches({ runs }: { runs: number }): Promise<Report> {
  const daemon = await startDaemon();
  const scratch = newScratchDirectory();
  try {
    return report(await inRuns(runs, async (run) => ({ bare: await fillBare(scratch), daemon: await fillPool(daemon, run) })));
  } finally {
    await daemon.stop();
    await rm(scratch, { recursive: true, force: true });
  }
}

const perMinute = (tookMs: number): number => (perRun / tookMs) * 60_000;

async function fillPool(daemon: Daemon, run: number): Promise<number> {
  const name = `bench-launches-${run}`;
  const started = systemClock.monotonic();
  await daemon.createPool({ name, size: perRun });
  const tookMs = systemClock.monotonic() - started;
  await daemon.deletePool(name);
  return perMinute(tookMs);
}

async function fillBare(scratch: string): Promise<number> {
  const profiles = await Promise.all(times(perRun).map(() => mkdtemp(join(scratch, "profile-"))));
  const commands = await Promise.all(profiles.map((profile) => bareCommand("chromium", profile)));
  const bares: Bare[] = [];
  const started = systemClock.monotonic();
  await Promise.all(times(availableParallelism()).map(async () => {
    for (let next = commands.pop(); next; next = commands.pop()) bares.push(await spawnBare(next.executable, next.switches));
  }));
  const tookMs = systemClock.monotonic() - started;
  await Promise.all(bares.map((bare) => bare.end()));
  await Promise.all(profiles.map((profile) => rm(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })));
  return perMinute(tookMs);
}

function report(found: readonly { daemon: number; bare: number }[]): Report {
  const part = median(found.map(({ daemon, bare }) => daemon / bare));
  const isMet = part >= bar;
  const percent = `${(part * 100).toFixed(0)} %`;
  return {
    title: "Launches per minute",
    method: [
      `Full Chromium, headless. The daemon: a pool of ${perRun} from its creation until the last is idle (its page open, its health proved).`,
      `Bare: as many processes with the same switches, ${availableParallelism()} at a time as in the daemon, each up to its first CDP reply.`,
    ],
    head: ["", "daemon", "bare", "of bare", "bar"],
    rows: [["launches per minute", median(found.map(({ daemon }) => daemon)).toFixed(0), median(found.map(({ bare }) => bare)).toFixed(0), percent, isMet ? "met" : "missed"]],
    bars: [{ what: `launches: at least ${bar * 100} % of bare spawns`, is: percent, isMet }],
  };
}
