import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KernelLog } from "../../../src/browser/resources/kernel-log.js";
import { recordsOf } from "../../support/browser/kernel-records.js";

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-kernel-log-"));
  file = join(directory, "kmsg");
  await writeFile(file, "");
});
afterEach(() => rm(directory, { recursive: true }));

/** What is left of them where the kernel has written too much already. */
const shortRecordsOf = (kill: Parameters<typeof recordsOf>[0]): string =>
  recordsOf(kill).replace(/^.*;oom-kill:.*\n/m, "");

const inFirst = { cgroup: "b-1", uid: null };
const inSecond = { cgroup: "b-2", uid: null };
const known = { pid: 7, name: "chrome", residentBytes: 1230 * 1024, constraint: "memcg" };

test("each kill is told once to whoever asks about its cgroup, with what the kernel says of it", async () => {
  await appendFile(file, recordsOf({ pid: 6 }));
  const log = KernelLog.open("own", file);
  expect(log?.take(inFirst)).toEqual([]);
  await appendFile(file, recordsOf({}) + recordsOf({ pid: 8, cgroup: "/a/own/b-2" }) + recordsOf({ pid: 9 }));
  expect(log?.take(inFirst)).toEqual([known, { ...known, pid: 9 }]);
  expect(log?.take(inFirst)).toEqual([]);
  expect(log?.take(inSecond)).toEqual([{ ...known, pid: 8 }]);
  await appendFile(file, recordsOf({ constraint: "NONE" }));
  expect(log?.take(inFirst)).toEqual([{ ...known, constraint: "none" }]);
  log?.close();
  await appendFile(file, recordsOf({}));
  expect(log?.take(inFirst)).toEqual([]);
});

test("what is not of the daemon's cgroups is passed over, whatever a process calls itself", async () => {
  const log = KernelLog.open("own", file);
  await appendFile(file, recordsOf({ cgroup: "/a/other/b-1" }));
  await appendFile(file, recordsOf({ cgroup: "/a/other/b-1", name: "task_memcg=/own/b-1" }));
  await appendFile(file, recordsOf({ cgroup: "/a/other/b-1", name: ",task_memcg=/own/b-1,task=x" }));
  await appendFile(file, recordsOf({ constraint: "OTHER" }));
  expect(log?.take(inFirst)).toEqual([]);
  const name = ") (x, pid=1";
  await appendFile(file, recordsOf({ name }));
  expect(log?.take(inFirst)).toEqual([{ ...known, name }]);
  log?.close();
});

test("a kill of which the log names no cgroup is known by the uid that one browser has", async () => {
  const log = KernelLog.open("own", file);
  const [first, second] = [
    { cgroup: "b-1", uid: 201000 },
    { cgroup: "b-2", uid: 201001 },
  ];
  log?.begin(first);
  log?.begin(second);
  await appendFile(file, shortRecordsOf({}) + shortRecordsOf({ pid: 8, constraint: "NONE" }));
  expect(log?.take(second)).toEqual([]);
  const { constraint, ...unknown } = known;
  expect(log?.take(first)).toEqual([known, { ...unknown, pid: 8 }]);
  expect(constraint).toBe("memcg");
  // A line that names another's cgroup goes before the uid, which that one may have too.
  await appendFile(file, recordsOf({ cgroup: "/a/other/b-1" }) + recordsOf({ pid: 9 }));
  expect(log?.take(first)).toEqual([{ ...known, pid: 9 }]);
  log?.close();
});

test("what was killed under a uid is nothing of the browser that has it next", async () => {
  const log = KernelLog.open("own", file);
  const [former, next] = [
    { cgroup: "b-1", uid: 201000 },
    { cgroup: "b-2", uid: 201000 },
  ];
  log?.begin(former);
  await appendFile(file, shortRecordsOf({}));
  log?.end(former);
  log?.begin(next);
  expect(log?.take(next)).toEqual([]);
  log?.end(next);
  await appendFile(file, shortRecordsOf({ pid: 8 }));
  expect(log?.take(inFirst)).toEqual([]);
  expect(log?.take(next)).toEqual([]);
  log?.close();
});

test("where there is no log nothing is told", () => {
  expect(KernelLog.open("own", join(directory, "none"))).toBeUndefined();
});
