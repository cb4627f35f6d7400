import { afterAll, beforeAll, expect } from "vitest";
import { type DeliveryPorts, makeDelivery } from "../../../src/audit/export/delivery.js";
import { systemClock } from "../../../src/base/clock.js";
import type { DestinationId } from "../../../src/base/ids.js";
import { silentLog } from "../browser/chromium-host.js";
import { startRedis, type TestRedis } from "../store/redis.js";
import { openStoreBed, type StoreBed } from "../store/store-bed.js";
import { type AuditBed, openAuditBed } from "./audit-bed.js";
import { type Cloud, startCloud } from "./cloud.js";
import { type ExportBed, openExportBed } from "./export-bed.js";

interface World {
  readonly log: AuditBed;
  readonly cloud: Cloud;
  readonly exports: ExportBed;
}
interface ExportWorldOptions {
  readonly cloudOf?: Parameters<typeof startCloud>[0];
  readonly exportsOf?: Parameters<typeof openExportBed>[2];
  readonly logOf?: Parameters<typeof openAuditBed>[1];
}

/** Gives each test a log, a cloud and destinations of its own, over one Redis of its file. */
export function exportWorlds({ cluster = false } = {}): (
  work: (world: World) => Promise<void>,
  options?: ExportWorldOptions,
) => Promise<void> {
  let server: TestRedis;
  let stores: StoreBed;
  beforeAll(async () => {
    server = await startRedis({ cluster });
    stores = await openStoreBed(server, { project: "exports" });
  });
  afterAll(async () => {
    await stores.close();
    await server.stop();
  });
  return async (work, { cloudOf = {}, exportsOf = {}, logOf = {} } = {}) => {
    await stores.redis.flushall();
    const [log, cloud] = await Promise.all([openAuditBed(stores, logOf), startCloud(cloudOf)]);
    try {
      await work({ log, cloud, exports: openExportBed(stores, cloud, exportsOf) });
      expect(cloud.faults).toEqual([]);
    } finally {
      await log.close();
      await cloud.close();
    }
  };
}

export const hourMs = 3_600_000;
export const paths = (count: number, name = ""): string[] =>
  Array.from({ length: count }, (_, index) => `/${name}${index}`);

interface Over extends Partial<Omit<DeliveryPorts, "destinations">> {
  /** What is answered in the store's place. */
  readonly destinations?: Partial<DeliveryPorts["destinations"]>;
}

/** Delivers what a log has; counts what it has come to. */
export function deliveryOf({ exports, log }: Pick<World, "exports" | "log">, over: Over = {}) {
  const counted = { entries: 0, failed: [] as string[], gaps: 0 };
  const { destinations: store, buckets } = exports;
  const deliver = makeDelivery({
    entries: { store: log.audit, files: log.files },
    buckets,
    organization: "default",
    windows: { windowMs: 300_000, holdMs: 600_000 },
    bounds: { entries: 10_000, bytes: 8 * 2 ** 20 },
    clock: systemClock,
    log: silentLog,
    random: () => 1,
    meter: {
      delivered: (entries) => void (counted.entries += entries),
      failed: (stage) => void counted.failed.push(stage),
      gap: () => void (counted.gaps += 1),
    },
    ...over,
    destinations: {
      find: (id) => store.find(id),
      now: () => store.now(),
      move: (...asked) => store.move(...asked),
      fail: (...asked) => store.fail(...asked),
      ...over.destinations,
    },
  });
  return {
    counted,
    deliver: (id: DestinationId, stopping = new AbortController().signal) => deliver(id, stopping),
  };
}
