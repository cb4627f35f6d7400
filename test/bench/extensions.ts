import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.js";
import type { Chromium, ExtensionDirectory } from "../../src/browser/chromium.js";
import type { BrowserHost } from "../../src/browser/host.js";
import { type FilledSpec, launchChromium } from "../support/browser/launch-chromium.js";
import { launchSpec, openTestHost } from "../support/browser/chromium-host.js";
import { writeExtension } from "../support/archive/extension-files.js";
import { median } from "./support/figures.js";
import type { Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";

const perRun = 5;
const liveBarMs = 60;
const timesBar = 10;
const limitMs = 30_000;
/** The size of its content script, about that of real extensions. */
const scriptBytes = 100_000;

interface Found {
  /** The time from the call to the answer, one extension each. */
  readonly liveMs: readonly number[];
  /** The time from the request to exit until the browser has its page and its extensions again. */
  readonly restartMs: number;
}

const modes = [
  ["headless", true],
  ["headful", false],
] as const;

/** Giving a running browser an extension, beside starting the same browser again with it. */
export async function benchExtensions({ runs }: { runs: number }): Promise<Report> {
  const host = await openTestHost();
  try {
    const found = await inRuns(runs, () => inTurn(modes, ([, headless]) => measure(host, headless)));
    return report(modes.map(([name], at) => ({ name, found: found.flatMap((run) => run[at] ?? []) })));
  } finally {
    await host.close();
  }
}

async function measure(host: BrowserHost, headless: boolean): Promise<Found> {
  const spec = launchSpec({ engine: "chromium", headless });
  const chromium = await launchChromium(spec, host);
  try {
    const liveMs = await inTurn(
      times(perRun),
      async (at) =>
        await timed(async () => {
          const loading = await chromium.load([await extensionOf(chromium, `live-${at}`)], limitMs);
          if (loading.kind !== "loaded") throw new Error(`not loaded: ${JSON.stringify(loading)}`);
        }),
    );
    return { liveMs, restartMs: await restart(chromium, spec, host) };
  } finally {
    await chromium.kill();
  }
}

async function extensionOf({ directories }: Chromium, name: string): Promise<ExtensionDirectory> {
  const extension = await writeExtension(directories.extensions, name);
  await appendFile(join(extension.path, "content.js"), `\n//${"x".repeat(scriptBytes)}`);
  return extension;
}

/** Starts with as many extensions as the live ones, of which the last is new. */
async function restart(chromium: Chromium, spec: FilledSpec, host: BrowserHost): Promise<number> {
  const started = systemClock.monotonic();
  const keptWorkspace = await chromium.stopAndKeep(limitMs);
  try {
    const fillWorkspace = async (): Promise<readonly ExtensionDirectory[]> => keptWorkspace.extensions;
    const again = await launchChromium({ ...spec, fillWorkspace }, host, { adopt: keptWorkspace });
    const tookMs = systemClock.monotonic() - started;
    await again.kill();
    return tookMs;
  } finally {
    await keptWorkspace.discard();
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const started = systemClock.monotonic();
  await work();
  return systemClock.monotonic() - started;
}

function report(found: readonly { readonly name: string; readonly found: readonly Found[] }[]): Report {
  const rows = found.map(({ name, found: runs }) => {
    const live = median(runs.flatMap(({ liveMs }) => liveMs));
    const faster = median(runs.map(({ liveMs, restartMs }) => restartMs / median(liveMs)));
    return { name, live, restart: median(runs.map(({ restartMs }) => restartMs)), faster };
  });
  return {
    title: "An extension for a running browser",
    method: [
      `Live: its files are written, it is loaded and seen to be enabled; ${perRun} a run, one after the other. Restart: the same browser exits and starts on its directories with them, until its page is open.`,
      "Both without HTTP and without unpacking an archive.",
    ],
    head: ["", "live p50 ms", "restart ms", "times faster"],
    rows: rows.map(({ name, live, restart: again, faster }) => [
      name,
      live.toFixed(1),
      again.toFixed(0),
      faster.toFixed(1),
    ]),
    bars: rows.flatMap(({ name, live, faster }) => [
      {
        what: `live, ${name}: p50 at most ${liveBarMs} ms`,
        is: `${live.toFixed(1)} ms`,
        isMet: live <= liveBarMs,
      },
      {
        what: `live, ${name}: at least ${timesBar} times faster than a restart`,
        is: `${faster.toFixed(1)} times`,
        isMet: faster >= timesBar,
      },
    ]),
  };
}
