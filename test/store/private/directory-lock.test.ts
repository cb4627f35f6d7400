import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { lockDirectory } from "../../../src/store/private/directory-lock.js";
import { compiled } from "../../support/compiled.js";

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-test-lock-"));
});
afterEach(() => rm(directory, { recursive: true }));

test("the first holds it, the second is told who, and may have it once released", async () => {
  const first = await lockDirectory(directory, systemClock);
  if (first.kind !== "locked") throw new Error("the first did not get it");
  expect(await lockDirectory(directory, systemClock)).toEqual({ kind: "held", pid: process.pid });
  await first.release();
  const again = await lockDirectory(directory, systemClock);
  expect(again.kind).toBe("locked");
  if (again.kind === "locked") await again.release();
});

test("of ten starts at once one wins", async () => {
  const locks = await Promise.all(Array.from({ length: 10 }, () => lockDirectory(directory, systemClock)));
  const won = locks.filter((lock) => lock.kind === "locked");
  expect(won).toHaveLength(1);
  await Promise.all(won.map((lock) => lock.release()));
});

/** How many files of this process are open there, removed ones included. */
const openFiles = (path: string): number =>
  readdirSync("/proc/self/fd").filter((fd) => {
    const at = readlink(fd);
    return at === path || at === `${path} (deleted)`;
  }).length;
const readlink = (fd: string): string => {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
};

test.runIf(process.platform === "linux")(
  "who has opened the file of a lock before its holder removes it does not get it beside one who comes later",
  async () => {
    const ask = () => lockDirectory(directory, systemClock);
    for (let round = 0; round < 20; round += 1) {
      const first = await ask();
      if (first.kind !== "locked") throw new Error("the first did not get it");
      const early = [ask(), ask()];
      // One that was quick may have closed it already.
      for (let turns = 0; turns < 1000 && openFiles(join(directory, "lock")) < 3; turns += 1) await turn();
      await rm(join(directory, "lock"));
      await first.release();
      const won = (await Promise.all([...early, ask(), ask()])).filter((lock) => lock.kind === "locked");
      expect(won.length).toBeLessThanOrEqual(1);
      await Promise.all(won.map((lock) => lock.release()));
    }
  },
);

test("a killed holder holds nothing, even when its process id has been given to another", async () => {
  const holder = fork(join(import.meta.dirname, "../../support/store/lock-holder.mjs"), [
    compiled,
    directory,
  ]);
  await once(holder, "message");
  expect(await lockDirectory(directory, systemClock)).toEqual({ kind: "held", pid: holder.pid });
  holder.kill("SIGKILL");
  await once(holder, "exit");
  await writeFile(join(directory, "lock"), "1\n");
  const lock = await lockDirectory(directory, systemClock);
  expect(lock.kind).toBe("locked");
  if (lock.kind === "locked") await lock.release();
});
