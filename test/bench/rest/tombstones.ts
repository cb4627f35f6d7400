import type { Redis } from "ioredis";
import { defaultProject, newBrowserId, newLeaseId, onDemandPartition } from "../../../src/base/ids.js";
import { ProjectScripts } from "../../../src/store/project/project-scripts.js";
import { RedisTombstones } from "../../../src/store/project/tombstones.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { times } from "../support/runs.js";

const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const atOnce = 1000;

/** Its id and its text. */
function tombstone(deletedAt: number): readonly [string, string] {
  const id = newBrowserId(onDemandPartition);
  const record = {
    id,
    lease: newLeaseId(),
    deletedAt,
    createdAt: deletedAt - 60_000,
    reason: "released",
    headless: true,
    stealth: false,
    kiosk_mode: false,
    memory: "1GiB",
    timeoutSeconds: 60,
    name: `session-${deletedAt}`,
    usage: { requests: 12, denied: 0, bytesSent: 5000, bytesReceived: 500_000 },
  };
  return [id, JSON.stringify(record)];
}

/** Writes the tombstones of so many sessions, of which one ended each ms. */
export async function writeTombstones(redis: Redis, count: number): Promise<void> {
  const scripts = new ProjectScripts(new ScriptStore(redis, log), defaultProject);
  const limits = { maxTombstones: count, tombstoneMs: 86_400_000, maxRecordings: 0 };
  const stored = new RedisTombstones(scripts, limits);
  const pending = scripts.partitionKey(onDemandPartition, "pendingTombstones");
  const now = Date.now();
  for (let from = 0; from < count; from += atOnce) {
    const tombstones = times(atOnce).flatMap((place) => tombstone(now - count + from + place));
    await redis.hset(pending, ...tombstones);
    await stored.move(onDemandPartition);
  }
}
