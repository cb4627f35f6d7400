import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../base/clock.js";
import { Seal } from "../base/crypto/seal.js";
import { openWhole, Stops } from "../base/stops.js";
import { StreamSeal } from "../archive/stream-seal.js";
import type { Config } from "../config/config.js";
import { apiKey, clusterSecret, encryptionKey } from "../config/data-directory.js";
import { makeResolve } from "../egress/resolve.js";
import { PoolLabels } from "../pool/pool-labels.js";
import type { Exports } from "../telemetry/ports.js";
import { Recorder } from "../telemetry/recorder.js";
import { openArchives } from "./archives.js";
import type { DaemonContext, Role } from "./boot.js";
import { openTelemetryExports } from "./telemetry-exports.js";
import { openMetrics } from "./metrics.js";
import { type DaemonParts, type DaemonKeys, PublicUrl } from "./parts.js";
import { EndpointWatch, redisEndpoints } from "./reserved-endpoints.js";
import { openStores, type Stores } from "./stores.js";
import { openVaultKeyring } from "./vault-keys.js";

/** A part that has its own stops, taken over whole. */
export const take = <Part extends { readonly stops: Stops }>(
  stops: Stops,
  name: string,
  part: Part,
): Part => {
  stops.add(name, () => part.stops.run());
  return part;
};

/** A role that opens its parts in order; where one cannot be opened the others are stopped again. */
export const makeRole =
  (open: (shared: DaemonParts, stops: Stops) => Promise<void>): Role =>
  async (config, context) => {
    const stops = new Stops(context.clock, config.drain.limitMs + config.stop.limitMs);
    await openWhole(stops, async () => open(await openShared(config, context, stops), stops));
    return stops;
  };

async function openShared(config: Config, context: DaemonContext, stops: Stops): Promise<DaemonParts> {
  const { clock } = context;
  const { stores } = take(stops, "stores", openStores(config, context));
  const keys = await openKeys(config, clock);
  const labels = new PoolLabels(stores.poolStore);
  const { connectLimitMs, resolvers } = config.egress;
  const metrics = openMetrics(config, context, { stores, labels, stops });
  const resolve = makeResolve({ clock, limitMs: connectLimitMs, ...(resolvers && { servers: resolvers }) });
  const endpoints = await openEndpoints(context, stores);
  const exports = openTelemetryExports(
    { ...context, config, stores, keys, metrics, resolve, endpoints },
    stops,
  );
  return {
    ...context,
    config,
    stores,
    keys,
    labels,
    url: new PublicUrl(config.server, clock),
    metrics,
    recorder: openRecorder(config, context, { stores, metrics, stops, exports }),
    archives: take(stops, "archives", await openArchives(config, context)),
    resolve,
    endpoints,
  };
}

/** A client's end is held as 450 bytes or less, and other clients come and go while Redis is away. */
const lossCountBytesOfClient = 2048;

function openRecorder(
  { telemetry, gateway }: Config,
  { clock, log }: DaemonContext,
  {
    stores,
    metrics,
    stops,
    exports,
  }: Pick<DaemonParts, "stores" | "metrics"> & { stops: Stops; exports: Exports },
): Recorder {
  const recorder = new Recorder({
    store: stores.events,
    clock,
    log,
    meter: metrics.telemetry,
    exports,
    limits: {
      eventBytes: telemetry.maxEventBytes,
      screenshotBytes: telemetry.maxScreenshotBytes,
      queueBytes: telemetry.maxQueuedBytes,
      daemonBytes: telemetry.maxTotalQueuedBytes,
      lossCountBytes: gateway.maxClients * lossCountBytesOfClient,
    },
  });
  stops.add("events", () => recorder.close());
  return recorder;
}

async function openKeys(config: Config, clock: Clock): Promise<DaemonKeys> {
  const [api, cluster, encryption] = await Promise.all([
    apiKey(config),
    clusterSecret(config),
    encryptionKey(config),
  ]);
  const seal = new Seal(encryption);
  const vaults = openVaultKeyring(config, seal, clock);
  return { api, cluster, seal, vaults, streamSeal: new StreamSeal(encryption) };
}

async function openEndpoints(
  { clock, log, redisUrl }: DaemonContext,
  { redisMembers, nodes }: Stores,
): Promise<EndpointWatch> {
  const endpoints = new EndpointWatch({ clock, log, sources: [redisMembers, () => nodes.living()] });
  await Promise.all(redisEndpoints(redisUrl.reveal()).map((endpoint) => endpoints.add(endpoint)));
  return endpoints;
}

/** The nearest directory above with a package.json: the sources run from dist/src, and from src in tests. */
function packageRootOf(directory: string): string {
  if (existsSync(join(directory, "package.json"))) return directory;
  const above = dirname(directory);
  if (above === directory) throw new Error("no package.json was found above the sources");
  return packageRootOf(above);
}

/** The directory of package.json. */
export const packageRoot = packageRootOf(import.meta.dirname);
