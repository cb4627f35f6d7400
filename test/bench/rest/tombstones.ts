import type { Redis } from "ioredis";
import { defaultProject, newBrowserId, newLeaseId, onDemandPartition } from "../../../src/base/ids.js";
import { projectKey, type ProjectPart } from "../../../src/store/redis/keys.js";
import { ScriptStore } from "../../../src/store/redis/redis.js";
import { times } from "../support/runs.js";

const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log };
const atOnce = 1000;

const tombstone = (deletedAt: number): string =>
  JSON.stringify({
    id: newBrowserId(onDemandPartition),
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
  });

/** Writes the tombstones of so many sessions, of which one ended each ms. */
export async function writeTombstones(redis: Redis, count: number): Promise<void> {
  const store = new ScriptStore(redis, log);
  const now = Date.now();
  for (let from = 0; from < count; from += atOnce) {
    const tombstones = times(atOnce).map((place) => tombstone(now - count + from + place));
    await store.run("store-tombstones", (part) => projectKey(defaultProject, part as ProjectPart), {
      tombstones: JSON.stringify(tombstones),
      most: count,
      keepMs: 86_400_000,
    });
  }
}
