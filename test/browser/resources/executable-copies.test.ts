import { mkdtemp, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { errnoOf } from "../../../src/base/errno.js";
import {
  type ExecutableCopies,
  openExecutableCopies,
} from "../../../src/browser/resources/executable-copies.js";
import { mountsBelow } from "../../../src/browser/resources/mounts.js";
import { processTreeOf } from "../../../src/browser/resources/processes.js";
import { launchSpec, openTestHost, silentLog } from "../../support/browser/chromium-host.js";
import { until } from "../../support/browser/chromium-until.js";
import { launchChromium } from "../../support/browser/launch-chromium.js";

const enough = 2 ** 40;
let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp("/dev/shm/remuda-test-");
});
afterEach(() => rm(scratch, { recursive: true, force: true }));

async function withCopies(
  availableBytes: number,
  use: (copies: ExecutableCopies, program: string) => Promise<void>,
): Promise<void> {
  const copies = openExecutableCopies({ scratch, availableBytes: () => availableBytes, log: silentLog });
  if (copies === undefined) throw new Error("none are made here");
  const program = join(scratch, "program");
  await writeFile(program, "first", { mode: 0o755 });
  try {
    await use(copies, program);
  } finally {
    await copies.close();
    expect(await mountsBelow(scratch)).toEqual([]);
  }
}

const copyOf = (copies: ExecutableCopies, program: string): Promise<string> =>
  until("a copy", () => copies.find(program));

interface Running {
  readonly pid: number;
  readonly path: string;
  readonly file: string;
}

/** The processes of a browser that run its executable, by the file they were started from. */
async function chromiumsIn(leader: number): Promise<Running[]> {
  const all = await Promise.all((await processTreeOf(leader)).map(findRunning));
  return all.filter((each) => each !== undefined).filter(({ path }) => path.includes("chromium"));
}

/** Undefined for a process that has ended, as some do soon after the launch. */
async function findRunning(pid: number): Promise<Running | undefined> {
  const exe = `/proc/${pid}/exe`;
  try {
    return { pid, path: await readlink(exe), file: await fileAt(exe) };
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ESRCH") return undefined;
    throw error;
  }
}

async function fileAt(path: string): Promise<string> {
  const { dev, ino } = await stat(path);
  return `${dev} ${ino}`;
}

describe.runIf(process.getuid?.() === 0)("copies of executables", () => {
  test("one that was asked for eight times is copied, and at the end nothing of it is left", () =>
    withCopies(enough, async (copies, program) => {
      for (let asked = 0; asked < 8; asked += 1) expect(await copies.find(program)).toBeUndefined();
      expect(await mountsBelow(scratch)).toEqual([]);
      const copy = await copyOf(copies, program);
      expect(await readFile(copy, "utf8")).toBe("first");
      const { mode, uid } = await stat(copy);
      expect([mode & 0o777, uid]).toEqual([0o755, 0]);
      expect(await mountsBelow(scratch)).toEqual([join(scratch, "executables")]);
    }));

  test("one that has been replaced is started from its own place until it is copied anew", () =>
    withCopies(enough, async (copies, program) => {
      const earlier = await copyOf(copies, program);
      await writeFile(program, "second");
      expect(await copies.find(program)).toBeUndefined();
      await expect(stat(earlier)).rejects.toMatchObject({ code: "ENOENT" });
      expect(await readFile(await copyOf(copies, program), "utf8")).toBe("second");
    }));

  test("where memory is short there is none", () =>
    withCopies("first".length * 16 - 1, async (copies, program) => {
      for (let asked = 0; asked < 20; asked += 1) expect(await copies.find(program)).toBeUndefined();
    }));

  test("all processes of a browser run the copy, at the path of the original, and cannot write to it", async () => {
    const host = await openTestHost({ scratchDirectory: scratch, copiesExecutables: true });
    try {
      const executable = host.executables["headless-shell"] ?? "";
      const copies = host.executableCopies;
      if (copies === undefined) throw new Error("none are made here");
      const copy = await fileAt(await copyOf(copies, executable));
      const chromium = await launchChromium(launchSpec(), host);
      try {
        const processes = await chromiumsIn(chromium.pid);
        expect(processes.length).toBeGreaterThan(2);
        expect(new Set(processes.map(({ path, file }) => `${path} ${file}`))).toEqual(
          new Set([`${executable} ${copy}`]),
        );
        const mountInfo = (await readFile(`/proc/${processes[0]?.pid}/mountinfo`, "utf8")).split("\n");
        const shown = mountInfo.filter((line) => line.includes(` ${executable} `));
        expect(shown).toEqual([expect.stringContaining(` ${executable} ro,`)]);
      } finally {
        await chromium.kill();
      }
    } finally {
      await host.close();
    }
  });
});
