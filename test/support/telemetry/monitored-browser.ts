import { type Clock, systemClock } from "../../../src/base/clock.js";
import type { Chromium, LaunchSpec } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { launchChromium } from "../browser/launch-chromium.js";
import { newLeaseId } from "../../../src/base/ids.js";
import type { EventCategory } from "../../../src/telemetry/event.js";
import { Monitor } from "../../../src/telemetry/monitor/monitor.js";
import type { Rates } from "../../../src/telemetry/monitor/rates.js";
import { PipeClient } from "../browser/chromium-client.js";
import { launchSpec, openTestHost, silentLog } from "../browser/chromium-host.js";
import { SeenEvents } from "./seen-events.js";

export const pageCategories: readonly EventCategory[] = [
  "console",
  "network",
  "page",
  "interaction",
  "screenshot",
];

/** A page that a client has opened, and what was told of it. */
export interface MonitoredPage {
  readonly target: string;
  readonly session: string;
}

/** A real browser with a monitor, and a client beside it. */
export interface MonitoredBrowser {
  readonly chromium: Chromium;
  readonly monitor: Monitor;
  readonly client: PipeClient;
  readonly events: SeenEvents;
  start(categories: readonly EventCategory[]): Promise<void>;
  /** Opens a blank page, and then the address in it. */
  open(url?: string): Promise<MonitoredPage>;
  close(): Promise<void>;
}

export async function openMonitoredBrowser(
  spec: Partial<LaunchSpec>,
  rates?: Rates,
  clock: Clock = systemClock,
): Promise<MonitoredBrowser> {
  const host: BrowserHost = await openTestHost();
  const chromium = await launchChromium(launchSpec(spec), host);
  const client = new PipeClient(chromium);
  const events = new SeenEvents();
  const monitor = new Monitor({
    clock,
    log: silentLog,
    isRestarting: () => false,
    hasClients: () => false,
    ...(rates && { rates }),
  });
  return {
    chromium,
    monitor,
    client,
    events,
    start: (categories) =>
      monitor.start({
        pipe: chromium.pipe,
        lease: newLeaseId(),
        sink: events,
        categories: new Set(categories),
      }),
    async open(url) {
      const { targetId } = await client.send("Target.createTarget", { url: "about:blank" });
      const page = { target: String(targetId), session: await client.attach(String(targetId)) };
      // What the monitor has asked for is asked before, and has been answered when this is.
      await client.evaluate("1", page.session);
      if (url !== undefined) await client.send("Page.navigate", { url }, page.session);
      return page;
    },
    async close() {
      await monitor.stop();
      await chromium.close(5000);
      await host.close();
    },
  };
}
