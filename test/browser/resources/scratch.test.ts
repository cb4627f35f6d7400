import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { newWorkspaceName } from "../../../src/browser/directories.js";
import {
  keepScratchDirectory,
  makeScratchDirectory,
  scratchDirectoriesOf,
} from "../../../src/browser/resources/scratch.js";
import { sweepEarlier } from "../../../src/browser/sweep.js";
import { silentLog } from "../../support/browser/chromium-host.js";
import { newScratchDirectory } from "../../support/killed-runs.js";

test("a scratch directory that a setting named is known to the next start without it; files of others in it stay", async () => {
  const dataDirectory = mkdtempSync(join(tmpdir(), "remuda-test-data-"));
  const [named, other] = [newScratchDirectory(), newScratchDirectory()];
  await keepScratchDirectory(dataDirectory, named);
  await keepScratchDirectory(dataDirectory, other);
  await keepScratchDirectory(dataDirectory, named);
  for (const path of [named, other])
    mkdirSync(join(path, newWorkspaceName(), "profile"), { recursive: true });
  const paths = await scratchDirectoriesOf(dataDirectory);
  expect([paths.includes(named), paths.includes(other)]).toEqual([true, false]);
  writeFileSync(join(named, "of-others"), "kept");
  await sweepEarlier(paths, { clock: systemClock, log: silentLog });
  expect(readdirSync(named)).toEqual(["of-others"]);
  for (const path of [named, other, dataDirectory]) rmSync(path, { recursive: true });
});

test("a scratch directory in a file system of the kernel is refused, by whatever name", async () => {
  const link = join(tmpdir(), `remuda-${process.pid}`);
  symlinkSync("/proc/self", link);
  for (const path of ["/proc/x", "/sys/x", "/dev", "/dev/shm", `${link}/x/y`])
    await expect(makeScratchDirectory(path)).rejects.toThrow("browsers can keep no files");
  rmSync(link);
});
