import { isAbsolute } from "node:path";
import { CannotStart } from "../../base/cannot-start.js";
import { overlap, settledPath } from "../../base/files/paths.js";
import type { Stops } from "../../base/stops.js";
import type { Engine } from "../../browser/chromium.js";
import { endRemovals } from "../../browser/directories.js";
import { findExecutable } from "../../browser/executable.js";
import { type BrowserHost, openHost } from "../../browser/host.js";
import { sweepLeftovers } from "../../browser/sweep.js";
import type { Config } from "../../config/config.js";
import type { EgressPart } from "./egress.js";
import { findScratch, holdScratch } from "./scratch.js";
import type { DaemonParts } from "../parts.js";

/** What this machine has for browsers, cleared of what earlier starts have left. */
export async function openBrowserHost(
  { config, clock, log }: DaemonParts,
  stops: Stops,
): Promise<BrowserHost> {
  // Begun already where what an earlier start has left is swept.
  stops.add("removals", endRemovals);
  const settings = await hostSettings(config, { clock, log });
  await checkNamed(settings.named);
  const host = await openHost(settings, { clock, log, hold: holdScratch(config, clock) });
  let isSwept = false;
  stops.add("browser host", () => (isSwept ? host.close() : host.leave()));
  await sweepLeftovers(host);
  isSwept = true;
  return host;
}

/** An executable that is named and missing would only show by pools that stay empty. */
async function checkNamed(named: Partial<Record<Engine, string>> = {}): Promise<void> {
  const settings = {
    chromium: "browser.executable (REMUDA_CHROMIUM)",
    "headless-shell": "browser.headless_shell",
  };
  for (const engine of ["chromium", "headless-shell"] as const) {
    const path = named[engine];
    if (path !== undefined && (await findExecutable(engine, path)) === undefined)
      throw new CannotStart(`${settings[engine]}: ${path} is not there, or this user may not execute it`);
  }
}

async function hostSettings(
  config: Config,
  around: Pick<BrowserHost, "clock" | "log">,
): Promise<Parameters<typeof openHost>[0]> {
  const scratchDirectory = await findScratch(config, around);
  await guardReadable(config.browser.readablePaths, [
    config.dataDir,
    config.archives.directory,
    scratchDirectory,
  ]);
  return settingsOf(config, scratchDirectory);
}

/** Directories that hold secrets of the machine or of its users, and more than any engine needs. */
const tooWide: readonly string[] = ["/", "/proc", "/sys", "/dev", "/etc", "/root", "/home"];

/**
 * Throws where browsers would be shown a path of `guarded`, what holds one or what lies in one, under
 * whatever name.
 */
export async function guardReadable(paths: readonly string[], guarded: readonly string[]): Promise<void> {
  const secrets = await Promise.all(guarded.map(settledPath));
  for (const path of paths) {
    const why = isAbsolute(path) ? objectionTo(await settledPath(path), secrets) : "is not absolute";
    if (why !== undefined) throw new CannotStart(`browser.readable_paths: ${path} ${why}`);
  }
}

function objectionTo(path: string, secrets: readonly string[]): string | undefined {
  if (tooWide.includes(path)) return "would show browsers files of the whole machine";
  const secret = secrets.find((each) => overlap(path, each));
  return secret === undefined ? undefined : `would show browsers files of the daemon, which are in ${secret}`;
}

const settingsOf = (
  { node, browser, gateway }: Config,
  scratchDirectory: string,
): Parameters<typeof openHost>[0] => ({
  scratchDirectory,
  uidBase: node.uidBase,
  launchLimitMs: node.launchLimitMs,
  requireIsolation: node.requireIsolation,
  readablePaths: browser.readablePaths,
  limits: browser,
  usesCgroups: node.cgroups,
  usesMounts: node.scratchMounts,
  copiesExecutables: node.copiedExecutables,
  maxReceivedBytes: gateway.maxTotalReceivedBytes,
  named: {
    ...(browser.executable === null ? {} : { chromium: browser.executable }),
    ...(browser.headlessShell === null ? {} : { "headless-shell": browser.headlessShell }),
  },
});

const refusalOf = ({ refusal = "" }: BrowserHost, { node }: Config): string =>
  `no isolation that node.require_isolation (${node.requireIsolation}) allows holds here: ${refusal}`;

/** Why this node launches nothing. */
export function whyNot(host: BrowserHost, config: Config, egress: EgressPart): string | undefined {
  if (Object.keys(host.executables).length === 0) return "no Chromium is installed";
  return host.walls === undefined ? refusalOf(host, config) : egress.unready;
}
