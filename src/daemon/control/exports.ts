import { organization } from "../../access/policy.js";
import { AwsBuckets, type AwsSettings } from "../../audit/export/aws-buckets.js";
import { makeDestinationOperations } from "../../audit/export/destination-operations.js";
import type { DestinationOperations } from "../../audit/export/destination.js";
import { type DeliveryPorts, makeDelivery } from "../../audit/export/delivery.js";
import { makeTrial } from "../../audit/export/trial.js";
import { isDue } from "../../audit/export/windows.js";
import { findDestinationId } from "../../base/ids.js";
import type { Stops } from "../../base/stops.js";
import { startTasks } from "../../schedule/tasks.js";
import type { Tick } from "../../schedule/ticks.js";
import type { DaemonParts } from "../parts.js";

interface ExportsPart {
  readonly operations: DestinationOperations;
  /** Begins to deliver; the tick says to whom. */
  start(stops: Stops): Promise<Tick>;
}

/** Whom the audit log is delivered to, and its delivery. */
export function openExports(shared: DaemonParts, entries: DeliveryPorts["entries"]): ExportsPart {
  const { assumeRole: assumesRoles, serviceRoleArn } = shared.config.audit.export;
  const buckets = new AwsBuckets(settingsOf(shared));
  const operations = makeDestinationOperations({
    store: shared.stores.destinations,
    assumesRoles,
    serviceRoleArn,
    attempt: makeTrial({ buckets, assumesRoles }),
  });
  return { operations, start: (stops) => startDelivery(shared, { entries, buckets }, stops) };
}

/** The bytes count the lines as text; what is made of them takes about as much again. */
const chunkBounds = { entries: 10_000, bytes: 8 * 2 ** 20 } as const;
const deliveriesAtOnce = 2;

async function startDelivery(
  shared: DaemonParts,
  parts: Pick<DeliveryPorts, "entries" | "buckets">,
  stops: Stops,
): Promise<Tick> {
  const { config, clock, log, metrics, stores } = shared;
  const { holdMs, windowMs, periodMs } = config.audit.export;
  const { destinations, queueOptions } = stores;
  const windows = { holdMs, windowMs };
  const deliver = makeDelivery({
    ...parts,
    destinations,
    organization,
    windows,
    bounds: chunkBounds,
    clock,
    meter: metrics.exports,
    log,
    random: Math.random,
  });
  const tasks = await startTasks(queueOptions, {
    name: "audit-export",
    atOnce: deliveriesAtOnce,
    async run(key, stopping) {
      const id = findDestinationId(key);
      if (id) await deliver(id, stopping);
    },
  });
  stops.add("audit export", () => tasks.close());
  const run = async (): Promise<void> => {
    const [all, now] = await Promise.all([destinations.all(), destinations.now()]);
    await tasks.add(all.filter((one) => isDue(one, now, windows)).map(({ id }) => id));
  };
  return { name: "audit-export", periodMs, run };
}

function settingsOf({ config, clock }: DaemonParts): AwsSettings {
  const { assumeRole, s3Endpoint, stsEndpoint, limitMs } = config.audit.export;
  const { s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey, ...archives } = config.archives;
  const isOwn = !assumeRole && s3Endpoint === null;
  const credentials = accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey } : undefined;
  return {
    assumesRoles: assumeRole,
    // Who assumes roles is Amazon's to know, and the archives may be elsewhere.
    credentials: assumeRole ? undefined : credentials,
    s3Endpoint: (isOwn ? archives.s3Endpoint : s3Endpoint) ?? undefined,
    stsEndpoint: stsEndpoint ?? undefined,
    isPathStyle: isOwn ? archives.s3PathStyle : s3Endpoint !== null,
    limitMs,
    clock,
  };
}
