import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { findScratch } from "../../../src/daemon/node/scratch.js";
import { silentLog } from "../../support/browser/chromium-host.js";
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
