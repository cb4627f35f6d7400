import { type NodeId, partitionOf } from "../../base/ids.js";
import type { Stops } from "../../base/stops.js";
import type { BrowserHost } from "../../browser/host.js";
import { openLaunch } from "../../browser/launch.js";
import { makeReadMemory } from "../../browser/resources/available-memory.js";
import { makeMeasureMemory } from "../../browser/resources/memory-usage.js";
import { fullness, measureMount, measureStorage } from "../../browser/resources/scratch-usage.js";
import type { Config } from "../../config/config.js";
import { Bridge } from "../../gateway/cdp/bridge.js";
import { LaunchHealth } from "../../node/launch-health.js";
import { MemoryShortage } from "../../node/usage/memory-shortage.js";
import { startResourceWatch } from "../../node/usage/resource-watch.js";
import type { TelemetryParts } from "../../node/slot.js";
import { Slots } from "../../node/slots.js";
import { BrowserTelemetry } from "../../telemetry/browser-telemetry.js";
import { scriptHostOf } from "../../telemetry/flight/flight-recorder.js";
import { Monitor } from "../../telemetry/monitor/monitor.js";
import { NavigationSpans } from "../../telemetry/traces/navigation-spans.js";
import type { AssetsPart } from "./browser-assets.js";
import type { EgressPart } from "./egress.js";
import { gatewayLimitsOf } from "../gateway.js";
import { slotMeter } from "../metrics.js";
import type { DaemonParts } from "../parts.js";
import { launchClaimMs } from "../stores.js";

interface BrowserParts {
  readonly node: NodeId;
  readonly host: BrowserHost;
  readonly egress: EgressPart;
  readonly assets: AssetsPart;
  /** Called when the next beat would tell something else of this node. */
  changed(): void;
}

/** The browsers of this node, and the watch over what they use. */
export async function openBrowsers(
  shared: DaemonParts,
  { node, host, egress, assets, changed }: BrowserParts,
  stops: Stops,
): Promise<{ slots: Slots; health: LaunchHealth; shortage: MemoryShortage }> {
  const { config, clock, log, stores } = shared;
  const health = openHealth(shared, node, changed);
  const slots = new Slots({
    poolStore: stores.poolStore,
    reports: stores.reports,
    clock,
    log,
    health,
    profileSaver: assets.profileSaver,
    openBrowserEgress: egress.open,
    maxBrowsers: mostBrowsers(config),
    maxBytes: config.node.memoryBytes * config.node.overcommit,
    parallelLaunches: config.node.parallelLaunches,
    launchLimitMs: launchClaimMs(config.node),
    fillWorkspaceOf: (launch) => assets.assets.of(launch),
    openLaunch: (spec, options) => openLaunch(spec, host, options),
    makeTelemetry: (parts) => makeTelemetry(shared, parts),
    makeBridge: ({ pipe }, recorder) =>
      new Bridge(pipe, clock, { sessions: gatewayLimitsOf(config).sessions, recorder }),
    keepRecording: (browser, text) => stores.projects.at(partitionOf(browser)).keepRecording(browser, text),
    meter: slotMeter(shared),
  });
  const watch = watchResources(shared, host, slots);
  stops.add("watch", () => watch.stop());
  const shortage = await openShortage(shared, slots, changed);
  stops.add("memory watch", shortage.start());
  return { slots, health, shortage };
}

const openShortage = async (
  { config: { node }, clock, log, stores: { standby }, metrics }: DaemonParts,
  slots: Slots,
  changed: () => void,
): Promise<MemoryShortage> =>
  new MemoryShortage({
    standing: () =>
      slots
        .all()
        .filter(({ standsBy, isEnding }) => standsBy && !isEnding)
        .map(({ id }) => id),
    readMemory: await makeReadMemory(),
    retire: (browsers) => standby.retire(browsers, "unwanted"),
    part: node.minFreeMemoryPercent / 100,
    periodMs: node.memoryWatchPeriodMs,
    changed,
    meter: metrics.node,
    clock,
    log,
  });

export const mostBrowsers = ({ node }: Config): number => node.maxBrowsers ?? Number.MAX_SAFE_INTEGER;

const openHealth = (
  { config: { fill }, clock, log, stores: { nodes } }: DaemonParts,
  node: NodeId,
  changed: () => void,
): LaunchHealth =>
  new LaunchHealth({
    clock,
    log,
    changed,
    backoff: { initialMs: fill.backoffInitialMs, maxMs: fill.backoffMaxMs },
    rest: (ms) => nodes.rest(node, ms),
    wake: () => nodes.wake(node),
  });

const watchResources = (
  { config, clock, log, metrics }: DaemonParts,
  host: BrowserHost,
  slots: Slots,
): ReturnType<typeof startResourceWatch> =>
  startResourceWatch({
    slots,
    clock,
    log,
    meter: metrics.node,
    limits: config.browser,
    maxFullness: config.node.maxScratchPercent / 100,
    memoryPeriodMs: config.node.memoryWatchPeriodMs,
    storagePeriodMs: config.node.storageWatchPeriodMs,
    usage: {
      memory: makeMeasureMemory(),
      stored: measureStorage,
      storedInMount: measureMount,
      fullness: (inMounts) => fullness(host.scratchDirectory, inMounts),
    },
  });

function makeTelemetry(
  { clock, log, recorder }: DaemonParts,
  { browser, template, running, isRestarting, hasClients, flight }: TelemetryParts,
): BrowserTelemetry {
  const monitor = new Monitor({
    clock,
    log: log.child({ browser }),
    isRestarting,
    hasClients,
    consoleError: (event) => flight.consoleError(scriptHostOf(event)),
  });
  return new BrowserTelemetry({
    browser,
    launched: template.telemetry,
    recorder,
    startMonitor({ lease, sink: leaseSink, settings: { categories } }) {
      const sink = new NavigationSpans(leaseSink, clock);
      return {
        started: monitor.start({ pipe: running().chromium.pipe, lease, sink, categories }),
        apply: (changed) => monitor.apply(changed),
        stop() {
          sink.close();
          return monitor.stop();
        },
      };
    },
  });
}
