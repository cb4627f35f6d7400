import { readdirSync, readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
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
): Promise<{ client: PipeClient; session: string; uid: number | null; probe(): Promise<void> }> {
  const chromium = await launch(given);
  const client = new PipeClient(chromium);
  const session = await client.attach();
  expect(await client.open(`${site.otherOrigin}/`, session)).toBeUndefined();
  await client.send("Inspector.enable", {}, session);
  return { client, session, uid: chromium.isolation.uid, probe: () => chromium.probe(5000) };
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

/** Threads of every process that has this uid. */
function tasksOf(uid: number | null): number {
  const texts = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/status`, "latin1");
      } catch {
        return "";
      }
    });
  const theirs = texts.filter((text) => /^Uid:\s+(\d+)/m.exec(text)?.[1] === `${uid}`);
  return theirs.reduce((sum, text) => sum + Number(/^Threads:\s+(\d+)/m.exec(text)?.[1]), 0);
}

test.runIf(isRoot)(
  "a page that starts threads without end gets so many and no more, and its neighbour starts its own",
  async () => {
    const [bomb, neighbour] = [await open({}), await open({})];
    bomb.client.evaluate(startWorkers, bomb.session).catch(() => {});
    await until("the page at its limit, or ended by it", async () => {
      const tasks = tasksOf(bomb.uid);
      expect(tasks).toBeLessThanOrEqual(maxTasks);
      return (
        tasks > maxTasks - 20 || bomb.client.events.some(({ method }) => method === "Inspector.targetCrashed")
      );
    });
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
);
