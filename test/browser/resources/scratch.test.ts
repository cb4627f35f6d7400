import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { newWorkspaceName } from "../../../src/browser/directories.js";
import { mountsBelow } from "../../../src/browser/resources/mounts.js";
import { openScratch } from "../../../src/browser/resources/open-scratch.js";
import {
  cgroupTopsOf,
  foreignIn,
  keepScratchDirectory,
  scratchDirectoriesOf,
} from "../../../src/browser/resources/scratch.js";
import { sweepEarlier, sweepLeftovers } from "../../../src/browser/sweep.js";
import { openTestHost, silentLog } from "../../support/browser/chromium-host.js";
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
  mkdirSync(join(named, "etc"));
  writeFileSync(join(named, "of-others"), "kept");
  await sweepEarlier(paths, { clock: systemClock, log: silentLog });
  expect(readdirSync(named).toSorted()).toEqual(["etc", "of-others"]);
  for (const path of [named, other, dataDirectory]) rmSync(path, { recursive: true });
});

/** Goes with the test, whatever lies in it. */
function scratchOfTest(): string {
  const path = newScratchDirectory();
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("a daemon that stops removes what daemons have put there, and leaves what others have put beside it", async () => {
  const path = scratchOfTest();
  const host = await openTestHost({ scratchDirectory: path });
  mkdirSync(join(path, newWorkspaceName(), "profile"), { recursive: true });
  mkdirSync(join(path, "of-others"));
  writeFileSync(join(path, "of-others", "file"), "kept");
  await host.close();
  expect(readdirSync(path, { recursive: true }).toSorted()).toEqual(["of-others", "of-others/file"]);
});

test("one that stops removes the directory where nothing else is in it", async () => {
  const path = scratchOfTest();
  const host = await openTestHost({ scratchDirectory: path });
  mkdirSync(join(path, newWorkspaceName(), "profile"), { recursive: true });
  await host.close();
  expect(existsSync(path)).toBe(false);
});

test.runIf(process.getuid?.() === 0)(
  "one whose stop fails leaves what the next start finds its cgroups by",
  async () => {
    const path = scratchOfTest();
    const host = await openTestHost({ scratchDirectory: path });
    const [top = ""] = host.cgroups?.tops ?? [];
    expect(top).not.toBe("");
    const living = join(top, "living");
    mkdirSync(living);
    await expect(host.close()).rejects.toThrow();
    expect(await cgroupTopsOf(path)).toContain(top);
    rmdirSync(living);
    const next = await openTestHost({ scratchDirectory: path });
    await next.close();
    expect([existsSync(path), existsSync(top)]).toEqual([false, false]);
  },
);

test.runIf(process.getuid?.() === 0)(
  "a sweep detaches what a daemon has mounted, and no disk of others",
  async () => {
    const path = scratchOfTest();
    const host = await openTestHost({ scratchDirectory: path });
    const [own, disk] = [join(path, newWorkspaceName()), join(path, "disk")];
    for (const point of [own, disk]) {
      mkdirSync(point);
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "remuda", point]);
    }
    try {
      await sweepLeftovers(host);
      expect(await mountsBelow(path)).toEqual([disk]);
      await host.close();
      expect(await mountsBelow(path)).toEqual([disk]);
    } finally {
      execFileSync("umount", [disk]);
    }
  },
);

test.each(["of-others", "etc/passwd"])(
  "a directory with files of others is refused, and nothing of it changes: %s",
  async (name) => {
    const path = scratchOfTest();
    mkdirSync(join(path, "etc"));
    writeFileSync(join(path, name), "kept");
    const looks = () => [statSync(path).mode, readdirSync(path, { recursive: true }).toSorted()];
    const before = looks();
    await expect(openTestHost({ scratchDirectory: path })).rejects.toThrow(
      `node.scratch_dir: ${path} holds what is no browser's (${name})`,
    );
    expect(looks()).toEqual(before);
  },
);

test("what a daemon has put there while it ran is none of it", async () => {
  const path = scratchOfTest();
  const host = await openTestHost({ scratchDirectory: path });
  expect(readdirSync(join(path, "etc")).length).toBeGreaterThan(0);
  expect(await foreignIn(path)).toEqual([]);
  await host.close();
});

test("what a killed daemon has left, and what mkfs makes, is no file of others", async () => {
  const path = scratchOfTest();
  const names = [newWorkspaceName(), "etc", "mount-trial", "executables", "lost+found"];
  for (const name of names) mkdirSync(join(path, name));
  for (const name of ["cgroup-tops", "remuda.lock", "etc/calls.bpf.new"]) writeFileSync(join(path, name), "");
  const scratch = await openScratch(path);
  expect(statSync(path).mode & 0o777).toBe(0o711);
  await scratch.remove();
  expect(readdirSync(path)).toEqual(["lost+found"]);
});

test("where all programs keep files is no place for browsers", async () => {
  for (const path of ["/tmp", "/var/tmp", "/var/tmp/../tmp", tmpdir()])
    await expect(openScratch(path)).rejects.toThrow("is for files of all programs");
});

test("a scratch directory in a file system of the kernel is refused, by whatever name", async () => {
  const link = join(tmpdir(), `remuda-${process.pid}`);
  symlinkSync("/proc/self", link);
  for (const path of ["/proc/x", "/sys/x", "/dev", "/dev/shm", `${link}/x/y`])
    await expect(openScratch(path)).rejects.toThrow("browsers can keep no files");
  rmSync(link);
});
