import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Rates } from "../../../src/telemetry/monitor/rates.js";
import { type MonitoredBrowser, openMonitoredBrowser } from "./monitored-browser.js";
import { openMonitoredSite } from "./monitored-site.js";

export type MonitoredSite = Awaited<ReturnType<typeof openMonitoredSite>>;

interface MonitorBed {
  readonly browser: MonitoredBrowser;
  readonly site: MonitoredSite;
}

/** A monitored browser and a site for all tests of a file; each begins without a watch and without events. */
export function useMonitorBed(rates?: Rates): () => MonitorBed {
  let bed: MonitorBed;
  beforeAll(async () => {
    const site = await openMonitoredSite();
    bed = { site, browser: await openMonitoredBrowser({}, rates) };
  });
  afterAll(async () => {
    await bed.browser.close();
    await bed.site.close();
  });
  beforeEach(async () => {
    await bed.browser.monitor.stop();
    bed.browser.events.all.length = 0;
  });
  return () => bed;
}
