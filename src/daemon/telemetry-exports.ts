import { isOnDemand, partitionOf, projectOf } from "../base/ids.js";
import { patternsOf } from "../base/net/hosts.js";
import type { Stops } from "../base/stops.js";
import { nodeId } from "../config/data-directory.js";
import { closedCollectorCode, type CollectorParts, makeCollectorAgent } from "../egress/collectors.js";
import { makeReservedEndpoints } from "../egress/reserved-endpoints.js";
import { openDestination } from "../registry/destinations/operations.js";
import type { Collectors } from "../telemetry/export/collectors.js";
import type { ExportedSession } from "../telemetry/export/exported.js";
import { Exporters } from "../telemetry/export/exporters.js";
import type { Exports, StreamRef } from "../telemetry/ports.js";
import type { DaemonParts } from "./parts.js";

type ExportsParts = Pick<
  DaemonParts,
  "clock" | "config" | "endpoints" | "keys" | "log" | "metrics" | "resolve" | "stores"
>;

/** What collectors of telemetry are judged by: nothing private but what the operator opens. */
export const collectorParts = ({
  config,
  resolve,
  endpoints,
}: Pick<ExportsParts, "config" | "resolve" | "endpoints">): CollectorParts => ({
  resolve,
  reserved: makeReservedEndpoints(endpoints.places),
  privates: patternsOf(config.telemetry.export.privateHosts),
});

/** The way of events to the collectors of their sessions, from this daemon. */
export function openTelemetryExports(parts: ExportsParts, stops: Stops): Exports {
  const { clock, config, log, metrics } = parts;
  const { delayMs, limitMs, batchEvents, batchBytes, queueBytes, totalQueueBytes, compression } =
    config.telemetry.export;
  const exporters = new Exporters({
    clock,
    log,
    meter: metrics.telemetry,
    collectors: collectorsOf(parts),
    compression,
    limits: { delayMs, limitMs, batchEvents, batchBytes, queueBytes, totalQueueBytes },
  });
  stops.add("telemetry exports", () => exporters.close());
  return { open: (stream, destination) => exporters.open(destination, aboutOf(parts, stream)) };
}

function collectorsOf(parts: ExportsParts): Collectors {
  const { clock, config, keys, stores } = parts;
  const connecting = { ...collectorParts(parts), clock, connectMs: config.egress.connectLimitMs };
  const storeOf = (id: Parameters<Collectors["open"]>[0]) => stores.projects.of(projectOf(id)).destinations;
  return {
    open: (id) => openDestination({ store: storeOf(id), seal: keys.seal }, id),
    noteDelivery: (id, error) => storeOf(id).noteDelivery(id, error),
    agentFor: (protocol) => makeCollectorAgent(connecting, protocol),
    isClosed: (error) =>
      typeof error === "object" && error !== null && "code" in error && error.code === closedCollectorCode,
  };
}

/** Never rejects: what Redis cannot tell now is left out. */
async function aboutOf(
  { config, stores }: ExportsParts,
  { browser, lease }: StreamRef,
): Promise<ExportedSession> {
  const partition = partitionOf(browser);
  const pool = isOnDemand(partition)
    ? undefined
    : await stores.poolStore.findTerms(partition).catch(() => undefined);
  const node = config.role === "control" ? undefined : await nodeId(config).catch(() => undefined);
  return {
    session: browser,
    lease,
    project: stores.projects.ofPartition(partition).projects.project,
    region: config.region,
    ...(pool && { pool: { id: pool.id, name: pool.name } }),
    ...(node !== undefined && { node }),
  };
}
