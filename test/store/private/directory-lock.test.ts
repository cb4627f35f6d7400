import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
