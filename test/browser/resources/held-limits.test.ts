import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { errnoOf } from "../../../src/base/errno.js";
import type { Chromium } from "../../../src/browser/chromium.js";
import type { BrowserHost } from "../../../src/browser/host.js";
import { usualLimits } from "../../../src/browser/resources/limits.js";
import { mountsBelow } from "../../../src/browser/resources/mounts.js";
import { PipeClient } from "../../support/browser/chromium-client.js";
import { openTestHost } from "../../support/browser/chromium-host.js";
import { kinds } from "../../support/browser/chromium-kinds.js";
import { makeLauncher } from "../../support/browser/chromium-launcher.js";
import { type Site, openSite } from "../../support/browser/chromium-site.js";
import { until } from "../../support/browser/chromium-until.js";

const isRoot = process.getuid?.() === 0;
const maxTasks = 200;
let host: BrowserHost;
let site: Site;
beforeAll(async () => {
  const limits = { ...usualLimits, maxScratchBytes: 64 * 2 ** 20, maxTasks };
  [host, site] = await Promise.all([openTestHost({ limits }), openSite()]);
});
const { launch, killAll } = makeLauncher(() => host);
afterEach(killAll);
afterAll(() => Promise.all([host.close(), site.close()]));

async function open(
  given: Parameters<typeof launch>[0],
): Promise<{ chromium: Chromium; client: PipeClient; session: string; probe(): Promise<void> }> {
  const chromium = await launch(given);
  const client = new PipeClient(chromium);
  const session = await client.attach();
  expect(await client.open(`${site.otherOrigin}/`, session)).toBeUndefined();
  await client.send("Inspector.enable", {}, session);
  return { chromium, client, session, probe: () => chromium.probe(20_000) };
}

const fill = (mebibytes: number): string => `(async () => {
  const cache = await caches.open("filled");
  let stored = 0;
  for (let at = 0; at < ${mebibytes}; at += 4) {
    const done = await cache.put("/filled/" + at, new Response(new Uint8Array(2 ** 22).fill(at + 1))).then(() => true, () => false);
    if (done) stored += 4;
  }
  return stored;
})()`;

test.runIf(isRoot).for(kinds)(
  "%s: a page that stores without end is refused, its browser lives, and its neighbour stores",
  async ([, given]) => {
    const [filler, neighbour] = [await open(given), await open({})];
    const stored = (await filler.client.evaluate(fill(160), filler.session)) as number;
    expect(stored).toBeLessThan(64);
    await filler.probe();
    expect(await neighbour.client.evaluate(fill(20), neighbour.session)).toBe(20);
  },
);

test.runIf(isRoot)("its file system goes with it", async () => {
  const chromium = await launch({});
  expect(await mountsBelow(host.scratchDirectory)).toEqual([chromium.directories.root]);
  await chromium.kill();
  expect(await mountsBelow(host.scratchDirectory)).toEqual([]);
});

const startWorkers =
  "Array.from({ length: 800 }, () => new Worker(URL.createObjectURL(new Blob(['setInterval(() => 0, 1000)'])))).length";

/** Asks the kernel for the tasks of a process's cgroup (cgroup-v2.rst, "PID"): 0 once that is removed. */
function openTaskCounts(pid: number): (file: "max" | "current" | "events") => number {
  const memberships = readFileSync(`/proc/${pid}/cgroup`, "utf8");
  const below = /^\d+:(?:[^:]*,)?pids(?:,[^:]*)?:(.*)$/m.exec(memberships)?.[1];
  const path =
    below === undefined
      ? `/sys/fs/cgroup${/^0::(.*)$/m.exec(memberships)?.[1]}`
      : `/sys/fs/cgroup/pids${below}`;
  return (file) => {
    try {
      return Number(/\d+/.exec(readFileSync(`${path}/pids.${file}`, "utf8"))?.[0]);
    } catch (error) {
      if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENODEV") return 0;
      throw error;
    }
  };
}

test.runIf(isRoot)(
  "a page that starts threads without end gets so many and no more, and its neighbour starts its own",
  async () => {
    const [bomb, neighbour] = [await open({}), await open({})];
    const countOf = openTaskCounts(bomb.chromium.pid);
    expect([countOf("max"), countOf("events")]).toEqual([maxTasks, 0]);
    bomb.client.evaluate(startWorkers, bomb.session).catch(() => {});
    await until("a task is refused", () => countOf("events") > 0, 200_000);
    // One that is refused counts for a moment.
    await until("no more than the limit", () => countOf("current") <= maxTasks);
    expect(
      await neighbour.client.evaluate(
        `new Promise((resolve) => {
    const worker = new Worker(URL.createObjectURL(new Blob(["postMessage('started')"])));
    worker.onmessage = ({ data }) => resolve(data);
  })`,
        neighbour.session,
      ),
    ).toBe("started");
  },
  300_000,
);
