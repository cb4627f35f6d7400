import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { type BrowserHost, openHost } from "../../../src/browser/host.js";
import { filterPath } from "../../../src/browser/isolation/syscall-filter.js";
import { holdNothing } from "../../../src/browser/resources/open-scratch.js";
import { cgroupTopsOf, lockName } from "../../../src/browser/resources/scratch.js";
import { holdScratch } from "../../../src/daemon/node/scratch.js";
import { launchSpec, silentLog } from "../../support/browser/chromium-host.js";
import { launchChromium } from "../../support/browser/launch-chromium.js";
import { newDirectory, newScratchDirectory } from "../../support/killed-runs.js";

/** A lock as daemons take it, for a data directory of its own. */
function newHold(): ReturnType<typeof holdScratch> {
  const dataDir = newDirectory("removed-scratch");
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  return holdScratch({ dataDir }, systemClock);
}

const openHeld = (scratchDirectory: string, hold = newHold()): Promise<BrowserHost> =>
  openHost(
    { launchLimitMs: 60_000, scratchDirectory, usesMounts: false, usesCgroups: false },
    { clock: systemClock, log: silentLog, hold },
  );

/** Puts a filter that lets every call pass where a daemon has its own. */
function putFilter(scratchDirectory: string): string {
  const path = filterPath(scratchDirectory);
  mkdirSync(join(scratchDirectory, "etc"), { recursive: true });
  writeFileSync(path, Buffer.from("060000000000ff7f", "hex"));
  return path;
}

test("a scratch directory that somebody removes under a daemon is made anew by the next launch", async () => {
  const [scratchDirectory, hold] = [newScratchDirectory(), newHold()];
  const settings = { launchLimitMs: 60_000, scratchDirectory, usesMounts: false };
  const host = await openHost(settings, { clock: systemClock, log: silentLog, hold });
  const first = await launchChromium(launchSpec(), host);
  const tops = await cgroupTopsOf(scratchDirectory);
  rmSync(scratchDirectory, { recursive: true });
  const launches = [launchChromium(launchSpec(), host), launchChromium(launchSpec(), host)];
  const launched = await Promise.all(launches);
  expect((statSync(scratchDirectory).mode & 0o777).toString(8)).toBe("711");
  expect(existsSync(join(scratchDirectory, lockName))).toBe(true);
  expect(await cgroupTopsOf(scratchDirectory)).toEqual(tops);
  await expect(hold(scratchDirectory)).rejects.toThrow(`is in use by process ${process.pid}`);
  await Promise.all([first, ...launched].map((chromium) => chromium.kill()));
  expect(readdirSync(scratchDirectory).filter((name) => name.startsWith("b-"))).toEqual([]);
  await host.close();
  expect(existsSync(scratchDirectory)).toBe(false);
});

const isRoot = process.getuid?.() === 0;

test.runIf(isRoot)(
  "one that another user makes anew is refused, with whatever lies in it, until it is gone",
  async () => {
    const scratchDirectory = newScratchDirectory();
    const host = await openHeld(scratchDirectory);
    rmSync(scratchDirectory, { recursive: true });
    const filter = putFilter(scratchDirectory);
    const [stranger, etc] = [65_534, join(scratchDirectory, "etc")];
    for (const path of [scratchDirectory, etc, filter]) {
      chmodSync(path, 0o777);
      chownSync(path, stranger, stranger);
    }
    const why = `node.scratch_dir: ${scratchDirectory} belongs to somebody else`;
    await expect(launchChromium(launchSpec(), host)).rejects.toThrow(why);
    await expect(host.mendScratch()).rejects.toThrow(why);
    expect(readdirSync(scratchDirectory, { recursive: true }).toSorted()).toEqual(["etc", "etc/calls.bpf"]);
    rmSync(scratchDirectory, { recursive: true });
    await host.mendScratch();
    expect(statSync(scratchDirectory).uid).toBe(process.getuid?.());
    await host.close();
    expect(existsSync(scratchDirectory)).toBe(false);
  },
);

test("one that another daemon of ours has taken meanwhile stays that one's, when this one stops too", async () => {
  const scratchDirectory = newScratchDirectory();
  const [host, hold] = [await openHeld(scratchDirectory), newHold()];
  rmSync(scratchDirectory, { recursive: true });
  mkdirSync(scratchDirectory);
  const release = await hold(scratchDirectory);
  const taken = `${scratchDirectory} is in use by process ${process.pid}`;
  await expect(host.mendScratch()).rejects.toThrow(taken);
  putFilter(scratchDirectory);
  await expect(host.mendScratch()).rejects.toThrow(taken);
  await host.close();
  expect(readdirSync(scratchDirectory).toSorted()).toEqual(["etc", lockName]);
  await release();
  rmSync(scratchDirectory, { recursive: true });
});

test("one that is swapped, or whose lock alone is removed, is this daemon's still, and one whose filter alone is gets it back", async () => {
  const scratchDirectory = newScratchDirectory();
  const hold = newHold();
  const host = await openHeld(scratchDirectory, hold);
  const [lock, filter] = [join(scratchDirectory, lockName), filterPath(scratchDirectory)];
  const before = readFileSync(filter);
  const swap = (): void => {
    renameSync(scratchDirectory, `${scratchDirectory}.old`);
    mkdirSync(scratchDirectory);
    for (const name of readdirSync(`${scratchDirectory}.old`))
      renameSync(join(`${scratchDirectory}.old`, name), join(scratchDirectory, name));
    rmdirSync(`${scratchDirectory}.old`);
  };
  swap();
  await host.mendScratch();
  await expect(hold(scratchDirectory)).rejects.toThrow("is in use by");
  writeFileSync(join(scratchDirectory, ".nfs0000"), "");
  for (const path of [lock, filter, lock]) {
    rmSync(path);
    await host.mendScratch();
    expect(readFileSync(filter).equals(before)).toBe(true);
    await expect(hold(scratchDirectory)).rejects.toThrow("is in use by");
  }
  rmSync(join(scratchDirectory, ".nfs0000"));
  await host.close();
  expect(existsSync(scratchDirectory)).toBe(false);
});

test.runIf(isRoot)("a mend that fails on a full disk is repeated until it is whole", async () => {
  const disk = newScratchDirectory();
  onTestFinished(() => rmSync(disk, { recursive: true }));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "remuda", disk]);
  onTestFinished(() => void execFileSync("umount", ["--lazy", disk]));
  const scratchDirectory = join(disk, "s");
  // A lock would give its room back in the middle of the mend.
  const host = await openHeld(scratchDirectory, holdNothing);
  const before = readFileSync(filterPath(scratchDirectory));
  rmSync(scratchDirectory, { recursive: true });
  const fill = (): void => {
    for (;;) appendFileSync(join(disk, "full"), Buffer.alloc(4096));
  };
  expect(fill).toThrow("ENOSPC");
  for (let nth = 0; nth < 2; nth += 1) await expect(host.mendScratch()).rejects.toThrow("ENOSPC");
  expect(existsSync(filterPath(scratchDirectory))).toBe(false);
  rmSync(join(disk, "full"));
  await host.mendScratch();
  expect(readFileSync(filterPath(scratchDirectory)).equals(before)).toBe(true);
  await host.close();
});
