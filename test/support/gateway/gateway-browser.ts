import { expect, onTestFinished } from "vitest";
import type { Chromium, LaunchSpec } from "../../../src/browser/chromium.js";
import { launchChromium } from "../browser/launch-chromium.js";
import { nothing, takeCensus } from "../browser/chromium-census.js";
import { launchSpec, openTestHost } from "../browser/chromium-host.js";
import { openSite, type Site } from "../browser/chromium-site.js";
import { type BedOptions, type GatewayBed, openGatewayBed } from "./gateway-bed.js";

/** A real browser behind a gateway. */
export interface GatewayBrowser {
  readonly chromium: Chromium;
  readonly bed: GatewayBed;
  /** `ws://…/cdp` with the present lease's token. */
  url(rest?: string): string;
  http(rest?: string): string;
  /** `ws://…/webdriver/session` with the present lease's token. */
  bidi(): string;
  /** Stops gateway and browser, and fails when something is left. */
  close(): Promise<void>;
}

export async function openGatewayBrowser(
  spec: Partial<LaunchSpec> = {},
  options: BedOptions = {},
): Promise<GatewayBrowser> {
  const host = await openTestHost();
  const chromium = await launchChromium(launchSpec(spec), host);
  const bed = await openGatewayBed([chromium], options);
  return {
    chromium,
    bed,
    url: (rest) => bed.url(chromium.id, rest),
    http: (rest) => bed.http(chromium.id, rest),
    bidi: () => bed.bidi(chromium.id),
    async close() {
      await bed.close();
      await chromium.close(5000);
      expect(await takeCensus(host.scratchDirectory, new Set([chromium.isolation.uid ?? -1]))).toEqual(
        nothing,
      );
      await host.close();
    },
  };
}

/** The same beside a site, for one test: both are closed with it. */
export async function openBrowserBesideSite(
  spec: Partial<LaunchSpec>,
): Promise<{ readonly browser: GatewayBrowser; readonly site: Site }> {
  const [browser, site] = await Promise.all([openGatewayBrowser(spec), openSite()]);
  onTestFinished(async () => {
    await browser.close();
    await site.close();
  });
  return { browser, site };
}
