import { afterEach, beforeAll, beforeEach, describe } from "vitest";
import type { StoreLimits } from "../../../src/store/limits.js";
import { startRedis, type TestRedis } from "./redis.js";
import { openStoreBed, type StoreBed } from "./store-bed.js";

/**
 * A server of each kind for all files of a worker, with which it ends: a cluster is none until 2 s after its
 * start (CLUSTER_WRITABLE_DELAY in cluster.c of Redis 7.0).
 */
const servers = new Map<boolean, Promise<TestRedis>>();

function serverOf(cluster: boolean): Promise<TestRedis> {
  const server = servers.get(cluster) ?? startRedis({ cluster });
  servers.set(cluster, server);
  return server;
}

/**
 * Runs the tests of `body` on a plain Redis and on a cluster, where a key in a wrong slot is an error. Each
 * finds the server empty and leaves its settings as they were; none stops it.
 */
export function onBoth(
  name: string,
  body: (use: { bed(): StoreBed; server(): TestRedis }) => void,
  limits: Partial<StoreLimits> = {},
): void {
  describe.each([
    { kind: "plain", cluster: false },
    { kind: "cluster", cluster: true },
  ])(`${name} ($kind Redis)`, ({ cluster }) => {
    let server: TestRedis | undefined;
    let bed: StoreBed | undefined;
    let count = 0;
    beforeAll(async () => {
      server = await serverOf(cluster);
    });
    beforeEach(async () => {
      bed = await openStoreBed(running(server), { project: `project${(count += 1)}`, limits });
      await bed.redis.flushall();
    });
    afterEach(async () => {
      await bed?.close();
      bed = undefined;
    });
    body({ bed: () => running(bed), server: () => running(server) });
  });
}

function running<Thing>(thing: Thing | undefined): Thing {
  if (thing === undefined) throw new Error("it does not run");
  return thing;
}
