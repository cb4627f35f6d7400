import { CannotStart } from "../base/cannot-start.js";
import type { Stops } from "../base/stops.js";
import type { Engine } from "../browser/chromium.js";
import { findExecutable } from "../browser/executable.js";
import { type BrowserHost, openHost } from "../browser/host.js";
import { guardReadable } from "../browser/readable-paths.js";
import {
  findScratchDirectory,
  keepScratchDirectory,
  scratchDirectoriesOf,
} from "../browser/resources/scratch.js";
import { sweepEarlier, sweepLeftovers } from "../browser/sweep.js";
import type { Config } from "../config/config.js";
import type { EgressPart } from "./egress.js";
import type { DaemonParts } from "./shared.js";

/** What this machine has for browsers, cleared of what earlier starts have left. */
export async function openBrowserHost(
  { config, clock, log }: DaemonParts,
  stops: Stops,
): Promise<BrowserHost> {
  const settings = await hostSettings(config, { clock, log });
  await checkNamed(settings.named);
  const host = await openHost(settings, { clock, log });
  stops.add("browser host", () => host.close());
  await sweepLeftovers(host);
  return host;
}

/** One that is named and not there would only show by pools that stay empty. */
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

/**
 * Clears the scratch directories of earlier starts first, so that what they left does not decide where this
 * one's is.
 */
async function scratchOf(
  { node, dataDir }: Config,
  around: Pick<BrowserHost, "clock" | "log">,
): Promise<string> {
  const earlier = await scratchDirectoriesOf(dataDir);
  await sweepEarlier(
    earlier.filter((path) => path !== node.scratchDir),
    around,
  );
  const path = node.scratchDir ?? (await findScratchDirectory(dataDir));
  await keepScratchDirectory(dataDir, path);
  return path;
}

async function hostSettings(
  config: Config,
  around: Pick<BrowserHost, "clock" | "log">,
): Promise<Parameters<typeof openHost>[0]> {
  const scratchDirectory = await scratchOf(config, around);
  await guardReadable(config.browser.readablePaths, [
    config.dataDir,
    config.archives.directory,
    scratchDirectory,
  ]);
  return settingsOf(config, scratchDirectory);
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
