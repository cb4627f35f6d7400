import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.js";
import { Cdp } from "../../src/browser/cdp/cdp.js";
import { targetInfoOf } from "../../src/browser/cdp/target-event.js";
import { within } from "../../src/base/deadline.js";
import { openTestHost } from "../support/browser/chromium-host.js";
import { newScratchDirectory } from "../support/killed-runs.js";
import { type Bare, bareCommand, spawnBare } from "./support/bare.js";
import { type Daemon, startDaemon } from "./support/daemon.js";
import { median } from "./support/figures.js";
import { processorsAtRest } from "./support/machine.js";
import type { Report } from "./support/report.js";
import { inRuns, times } from "./support/runs.js";
import { type Walled, walledCommand } from "./support/walled.js";

const perRun = 16;
const bar = 0.95;

/** How fast the daemon fills a pool, beside processes that are only spawned. */
export async function benchLaunches({ runs }: { runs: number }): Promise<Report> {
  const daemon = await startDaemon();
  const scratch = newScratchDirectory();
  const host = await openTestHost({ usesCgroups: false });
  try {
    const walled = (): Promise<Walled> => walledCommand("chromium", host);
    const ways: Ways = {
      unwalled: () => spawnAll(() => unwalledCommand(scratch)),
      walled: () => spawnAll(walled),
      withPage: () => spawnAll(walled, seeFirstPage),
      daemon: (run) => fillPool(daemon, run),
    };
    return report(await inRuns(runs, (run) => measureInTurn(ways, run)));
  } finally {
    await daemon.stop();
    await host.close();
    await rm(scratch, { recursive: true, force: true });
  }
}

type Ways = Readonly<Record<keyof Found, (run: number) => Promise<number>>>;

/** Each run begins with another one, and each begins when what was before has ended. */
async function measureInTurn(ways: Ways, run: number): Promise<Found> {
  const names = ["unwalled", "walled", "withPage", "daemon"] as const;
  const at = run % names.length;
  const found = { unwalled: 0, walled: 0, withPage: 0, daemon: 0 };
  for (const name of [...names.slice(at), ...names.slice(0, at)]) {
    await processorsAtRest();
    found[name] = await ways[name](run);
  }
  return found;
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

async function unwalledCommand(scratch: string): Promise<Walled> {
  const profile = await mkdtemp(join(scratch, "profile-"));
  const discard = (): Promise<void> =>
    rm(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  return { ...(await bareCommand("chromium", profile)), discard };
}

async function spawnAll(
  prepare: () => Promise<Walled>,
  isUp: (bare: Bare) => Promise<void> = async () => {},
): Promise<number> {
  const commands = await Promise.all(times(perRun).map(prepare));
  const left = [...commands];
  const bares: Bare[] = [];
  const started = systemClock.monotonic();
  await Promise.all(
    times(availableParallelism()).map(async () => {
      for (let next = left.pop(); next; next = left.pop()) {
        const bare = await spawnBare(next.executable, next.switches, next.walls);
        bares.push(bare);
        await isUp(bare);
      }
    }),
  );
  const tookMs = systemClock.monotonic() - started;
  await Promise.all(bares.map((bare) => bare.end()));
  await Promise.all(commands.map((command) => command.discard()));
  return perMinute(tookMs);
}

/** The page that Chromium starts with, without which nobody can use it. */
async function seeFirstPage({ pipe }: Bare): Promise<void> {
  const cdp = new Cdp(pipe, systemClock);
  const page = new Promise<void>((resolve) => {
    cdp.on("Target.targetCreated", ({ targetInfo }) => {
      if (targetInfoOf(targetInfo)?.type === "page") resolve();
    });
  });
  await cdp.send("Target.setDiscoverTargets", { discover: true });
  await within(systemClock, { what: "the first page", limitMs: 30_000 }, page);
}

interface Found {
  readonly daemon: number;
  readonly walled: number;
  readonly withPage: number;
  readonly unwalled: number;
}

function report(found: readonly Found[]): Report {
  const part = (beside: "walled" | "withPage" | "unwalled"): number =>
    median(found.map((each) => each.daemon / each[beside]));
  const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;
  const row = (what: string, key: keyof Found, share: number): string[] => [
    what,
    median(found.map((each) => each[key])).toFixed(0),
    percent(share),
  ];
  return {
    title: "Launches per minute",
    method: [
      `Full Chromium, headless. The daemon: a pool of ${perRun} from its creation until the last is idle (its page open, its health proved).`,
      `Spawned: as many processes, ${availableParallelism()} at a time as in the daemon, each up to its first CDP reply: with the command`,
      "line of the daemon's browsers (private root, uid, limits, Chromium's sandbox), and with Chromium's switches alone, as root without its sandbox.",
      "Each begins when what was measured before has ended, and each run with another one.",
    ],
    head: ["", "per minute", "the daemon beside it"],
    rows: [
      row("the daemon", "daemon", 1),
      row("spawned, the same command line", "walled", part("walled")),
      row("spawned, the same, until its first page is open", "withPage", part("withPage")),
      row("spawned, the switches alone", "unwalled", part("unwalled")),
    ],
    bars: [
      {
        what: `launches: at least ${bar * 100} % of spawns with the same command line`,
        is: percent(part("walled")),
        isMet: part("walled") >= bar,
      },
    ],
  };
}
