import { existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { newWorkspaceName } from "../../../src/browser/directories.js";
import { keepScratchDirectory, scratchDirectoriesOf } from "../../../src/browser/resources/scratch.js";
import { findScratch, holdScratch } from "../../../src/daemon/node/scratch.js";
import { mountSmallDisk } from "../../support/faults/small-disk.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { fillDisk } from "../../support/browser/full-disk.js";
import { newDirectory } from "../../support/killed-runs.js";

test("a directory of browsers that a link leads into that of data or archives is refused", async () => {
  const base = newDirectory("scratch");
  onTestFinished(() => rmSync(base, { recursive: true }));
  const [dataDir, directory] = [join(base, "data"), join(base, "archives")];
  for (const path of [dataDir, directory]) mkdirSync(path);
  symlinkSync(dataDir, join(base, "to-data"));
  symlinkSync(base, join(base, "to-all"));
  const find = (scratchDir: string) =>
    findScratch(
      { dataDir, archives: { directory }, node: { scratchDir } },
      { clock: systemClock, log: silentLog },
    );
  for (const name of ["to-data", "to-data/not-there", "to-all", "to-all/archives/b"])
    await expect(find(join(base, name))).rejects.toThrow("have to be two directories, neither in the other");
  expect(await find(join(base, "to-all", "browsers"))).toBe(join(base, "to-all", "browsers"));
});

describe.runIf(process.getuid?.() === 0)("a disk that a killed daemon's browsers have filled", () => {
  test.each(["another", "the same"])("is swept by a start on %s", async (which) => {
    const base = newDirectory("scratch");
    onTestFinished(() => rmSync(base, { recursive: true }));
    const [dataDir, disk, other] = [join(base, "data"), join(base, "disk"), join(base, "other")];
    mkdirSync(disk);
    mountSmallDisk(disk, 1);
    const workspace = join(disk, newWorkspaceName());
    mkdirSync(workspace);
    await fillDisk(workspace);
    await keepScratchDirectory(dataDir, disk);
    const node = { scratchDir: which === "another" ? other : disk };
    const config = { dataDir, archives: { directory: join(base, "archives") }, node };
    expect(await findScratch(config, { clock: systemClock, log: silentLog })).toBe(node.scratchDir);
    expect(existsSync(workspace)).toBe(false);
  });
});

test.runIf(process.getuid?.() === 0)(
  "a full disk keeps no start from the scratch directory that the one before has had",
  async () => {
    const base = newDirectory("scratch");
    onTestFinished(() => rmSync(base, { recursive: true }));
    const [dataDir, scratch] = [join(base, "data"), join(base, "browsers")];
    for (const path of [dataDir, scratch]) mkdirSync(path);
    mountSmallDisk(dataDir, 1);
    const hold = holdScratch({ dataDir }, systemClock);
    await (
      await hold(scratch)
    )();
    await fillDisk(dataDir);
    await (
      await hold(scratch)
    )();
    expect(await scratchDirectoriesOf(dataDir)).toContain(scratch);
  },
);
