import { systemClock } from "../../../src/base/clock.js";
import { newBrowserId, onDemandPartition } from "../../../src/base/ids.js";
import type { Log } from "../../../src/base/log.js";
import type { FilledSpec } from "./launch-chromium.js";
import { type BrowserHost, type HostSettings, openHost } from "../../../src/browser/host.js";
import { newScratchDirectory } from "../killed-runs.js";

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLog };

export function openTestHost(settings: Partial<HostSettings> = {}): Promise<BrowserHost> {
  const scratchDirectory = settings.scratchDirectory ?? newScratchDirectory();
  return openHost(
    { launchLimitMs: 60_000, ...settings, scratchDirectory },
    { clock: systemClock, log: silentLog },
  );
}

/** A small headless browser, but for what is said. */
export const launchSpec = (given: Partial<FilledSpec> = {}): FilledSpec => ({
  browser: newBrowserId(onDemandPartition),
  engine: "headless-shell",
  headless: true,
  stealth: false,
  kioskMode: false,
  viewport: { width: 1280, height: 720 },
  memoryBytes: 2 ** 30,
  ...given,
});
