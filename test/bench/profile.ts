import { randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { chown, mkdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { systemClock } from "../../src/base/clock.js";
import type { KeptWorkspace } from "../../src/browser/chromium.js";
import type { FillWorkspace } from "../../src/node/browser-assets.js";
import type { BrowserHost } from "../../src/browser/host.js";
import { type FilledSpec, launchChromium } from "../support/browser/launch-chromium.js";
import { packProfile } from "../../src/browser/profile/pack-profile.js";
import { unpackProfile } from "../../src/browser/profile/unpack-profile.js";
import { launchSpec, openTestHost } from "../support/browser/chromium-host.js";
import { newScratchDirectory } from "../support/killed-runs.js";
import { median } from "./support/figures.js";
import type { Report } from "./support/report.js";
import { inRuns, inTurn, times } from "./support/runs.js";

const files = 500;
const fileBytes = 100_000;
const barMs = 300;
const limits = { maxBytes: 2 ** 30, maxFiles: 100_000 };
const modes = [
  ["headless", true],
  ["headful", false],
] as const;

interface Found {
  readonly emptyMs: number;
  readonly profileMs: number;
  readonly unpackMs: number;
}

/** A browser that starts from a profile of 50 MB, beside one that starts from none. */
export async function benchProfile({ runs }: { runs: number }): Promise<Report> {
  const host = await openTestHost();
  const archives = newScratchDirectory();
  try {
    const tar = join(archives, "profile.tar");
    await makeTar(host, tar);
    const found = await inRuns(runs, () => inTurn(modes, ([, headless]) => measure(host, headless, tar)));
    return report(
      modes.map(([name], at) => ({ name, found: found.flatMap((run) => run[at] ?? []) })),
      (await stat(tar)).size,
    );
  } finally {
    await host.close();
    await rm(archives, { recursive: true, force: true });
  }
}

/** The profile of a browser that has run, with as much as a site might keep in it. */
async function makeTar(host: BrowserHost, path: string): Promise<void> {
  const keptWorkspace = await (
    await launchChromium(launchSpec({ engine: "chromium" }), host)
  ).stopAndKeep(10_000);
  try {
    await fill(keptWorkspace);
    await pipeline(packProfile(keptWorkspace, limits), createWriteStream(path));
  } finally {
    await keptWorkspace.discard();
  }
}

async function fill({ directories, uid }: KeptWorkspace): Promise<void> {
  const owner = uid ?? process.getuid?.() ?? 0;
  const parts = ["Default", "Service Worker", "CacheStorage", "bench"];
  const places = parts.map((_, at) => join(directories.profile, ...parts.slice(0, at + 1)));
  const [deepest = ""] = places.toReversed();
  await mkdir(deepest, { recursive: true });
  const names = times(files).map((at) => join(deepest, `${at}_0`));
  await Promise.all(names.map((name) => writeFile(name, randomBytes(fileBytes))));
  await Promise.all([...places, ...names].map((name) => chown(name, owner, owner)));
}

async function measure(host: BrowserHost, headless: boolean, tar: string): Promise<Found> {
  let unpackMs = 0;
  const fillWorkspace: FillWorkspace = async (room) => {
    const started = systemClock.monotonic();
    await unpackProfile(createReadStream(tar, { highWaterMark: 2 ** 20 }), room, limits);
    unpackMs = systemClock.monotonic() - started;
    return [];
  };
  const emptyMs = await launch(host, { headless });
  return { emptyMs, profileMs: await launch(host, { headless, fillWorkspace }), unpackMs };
}

async function launch(host: BrowserHost, given: Partial<FilledSpec>): Promise<number> {
  const started = systemClock.monotonic();
  const chromium = await launchChromium(launchSpec({ engine: "chromium", ...given }), host);
  const tookMs = systemClock.monotonic() - started;
  await chromium.kill();
  return tookMs;
}

function report(
  found: readonly { readonly name: string; readonly found: readonly Found[] }[],
  bytes: number,
): Report {
  const rows = found.map(({ name, found: runs }) => ({
    name,
    empty: median(runs.map(({ emptyMs }) => emptyMs)),
    profile: median(runs.map(({ profileMs }) => profileMs)),
    unpack: median(runs.map(({ unpackMs }) => unpackMs)),
    more: median(runs.map(({ profileMs, emptyMs }) => profileMs - emptyMs)),
  }));
  return {
    title: `A launch from a profile of ${(bytes / 1e6).toFixed(0)} MB`,
    method: [
      `A tar of ${files} files of ${fileBytes / 1000} kB and what Chromium itself writes, from a file; up to the first page. Unsealing and decompressing are not in it.`,
    ],
    head: ["", "from none ms", "from it ms", "of that unpacking", "more ms"],
    rows: rows.map(({ name, empty, profile, unpack, more }) => [
      name,
      ...[empty, profile, unpack, more].map((ms) => ms.toFixed(0)),
    ]),
    bars: rows.map(({ name, more }) => ({
      what: `profile, ${name}: at most ${barMs} ms more`,
      is: `${more.toFixed(0)} ms`,
      isMet: more <= barMs,
    })),
  };
}
