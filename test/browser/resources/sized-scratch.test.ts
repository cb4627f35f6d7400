import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { usualLimits } from "../../../src/browser/resources/limits.js";
import { mountsBelow } from "../../../src/browser/resources/mounts.js";
import { findSizedScratch, type SizedScratch } from "../../../src/browser/resources/sized-scratch.js";

const isRoot = process.getuid?.() === 0;
const limits = { ...usualLimits, maxScratchBytes: 2 ** 20, maxScratchFiles: 20 };
let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp("/dev/shm/remuda-test-");
});
afterEach(() => rm(scratch, { recursive: true, force: true }));

async function within(use: (path: string, sized: SizedScratch) => Promise<void>): Promise<void> {
  const sized = await findSizedScratch(scratch, limits);
  if (!sized) throw new Error("none was granted");
  const path = join(scratch, "browser");
  await mkdir(path);
  await sized.mount(path);
  try {
    await use(path, sized);
  } finally {
    for (const point of await mountsBelow(scratch)) await sized.unmount(point);
  }
}

test.runIf(isRoot)("what is stored in it ends at its size, and its neighbour has all of its own", () =>
  within(async (path, sized) => {
    const neighbour = join(scratch, "neighbour");
    await mkdir(neighbour);
    await sized.mount(neighbour);
    await expect(writeFile(join(path, "large"), Buffer.alloc(2 ** 21))).rejects.toMatchObject({
      code: "ENOSPC",
    });
    await writeFile(join(neighbour, "small"), Buffer.alloc(2 ** 19));
  }),
);

test.runIf(isRoot)("it has so many files and no more", () =>
  within(async (path) => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 40 }, (_, at) => writeFile(join(path, `${at}`), "")),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled").length).toBeLessThan(
      limits.maxScratchFiles,
    );
  }),
);

test.runIf(isRoot)("it goes with all that is in it, a second time without a fault", () =>
  within(async (path, sized) => {
    await writeFile(join(path, "file"), "held");
    await sized.unmount(path);
    await sized.unmount(path);
    expect(await readdir(path)).toEqual([]);
    expect(await mountsBelow(scratch)).toEqual([]);
  }),
);

test.runIf(isRoot)("what a killed daemon has left is found, and nothing beside it", () =>
  within(async (path) => {
    expect(await mountsBelow(scratch)).toEqual([path]);
    expect(await mountsBelow(path)).toEqual([path]);
    expect(await mountsBelow(path.slice(0, -1))).toEqual([]);
  }),
);

test("a scratch directory on a disk is left as it is: it would take memory instead", async () => {
  expect(await findSizedScratch("/var/tmp", limits)).toBeUndefined();
});

test.runIf(isRoot)("the trial leaves nothing", async () => {
  expect(await findSizedScratch(scratch, limits)).toBeDefined();
  expect(await readdir(scratch)).toEqual([]);
  expect(await mountsBelow(scratch)).toEqual([]);
});
