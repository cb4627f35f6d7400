import type { Chromium, LaunchSpec } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { openLaunch } from "../../../src/browser/launch.js";
import type { LaunchOptions } from "../../../src/browser/launch-attempt.js";
import type { FillWorkspace } from "../../../src/node/browser-assets.js";

export interface FilledSpec extends LaunchSpec {
  readonly fillWorkspace?: FillWorkspace;
}

/** Makes a browser's directories, has them filled and starts it, as a node does. */
export async function launchChromium(
  { fillWorkspace, ...spec }: FilledSpec,
  host: BrowserHost,
  options?: LaunchOptions,
): Promise<Chromium> {
  const launch = await openLaunch(spec, host, options);
  return await launch.start(fillWorkspace?.(launch.room));
}
