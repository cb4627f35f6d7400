import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import type { StoreLimits } from "../../../src/store/limits.js";
import { startRedis, type TestRedis } from "./redis.js";
import { openStoreBed, type StoreBed } from "./store-bed.js";

/** Runs the tests of `body` on a plain Redis and on a cluster, where a key in a wrong slot is an error. */
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
      server = await startRedis({ cluster });
    });
    afterAll(async () => {
      await server?.stop();
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
