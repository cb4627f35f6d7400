import type { Chromium } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { type FilledSpec, launchChromium } from "./launch-chromium.js";
import { launchSpec } from "./chromium-host.js";

/** Launches browsers and, for `afterEach`, kills those that a failing test has left. */
export function makeLauncher(host: () => BrowserHost): {
  launch(given: Partial<FilledSpec>): Promise<Chromium>;
  killAll(): Promise<void>;
} {
  const launched: Chromium[] = [];
  return {
    async launch(given) {
      const chromium = await launchChromium(launchSpec(given), host());
      launched.push(chromium);
      return chromium;
    },
    async killAll() {
      await Promise.all(launched.splice(0).map((chromium) => chromium.kill()));
    },
  };
}
