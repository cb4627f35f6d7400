import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KernelLog } from "../../../src/browser/resources/kernel-log.js";

let directory: string;
let file: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "remuda-kernel-log-"));
  file = join(directory, "kmsg");
  await writeFile(file, "");
});
afterEach(() => rm(directory, { recursive: true }));

/** What Linux 6.18 writes of one kill, as records of /dev/kmsg. */
function recordsOf({ pid = 7, cgroup = "/a/own/b-1", name = "chrome", constraint = "MEMCG" }): string {
  const chosen = `oom-kill:constraint=CONSTRAINT_${constraint},nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=${cgroup},task_memcg=${cgroup},task=${name},pid=${pid},uid=201000`;
  const killed = `Memory cgroup out of memory: Killed process ${pid} (${name}) total-vm:1518175424kB, anon-rss:1000kB, file-rss:200kB, shmem-rss:30kB, UID:201000 pgtables:3044kB oom_score_adj:300`;
  return `4,901,69533976956,-;${name} invoked oom-killer: order=0\n SUBSYSTEM=none\n6,902,69533976957,-;${chosen}\n3,903,69533976987,-;${killed}\n`;
}

const known = { pid: 7, name: "chrome", residentBytes: 1230 * 1024, constraint: "memcg" };

test("each kill is told once to whoever asks about its cgroup, with what the kernel says of it", async () => {
  await appendFile(file, recordsOf({ pid: 6 }));
  const log = KernelLog.open("own", file);
  expect(log?.take("b-1")).toEqual([]);
  await appendFile(file, recordsOf({}) + recordsOf({ pid: 8, cgroup: "/a/own/b-2" }) + recordsOf({ pid: 9 }));
  expect(log?.take("b-1")).toEqual([known, { ...known, pid: 9 }]);
  expect(log?.take("b-1")).toEqual([]);
  expect(log?.take("b-2")).toEqual([{ ...known, pid: 8 }]);
  await appendFile(file, recordsOf({ constraint: "NONE" }));
  expect(log?.take("b-1")).toEqual([{ ...known, constraint: "none" }]);
  log?.close();
  await appendFile(file, recordsOf({}));
  expect(log?.take("b-1")).toEqual([]);
});

test("what is not of the daemon's cgroups is passed over, whatever a process calls itself", async () => {
  const log = KernelLog.open("own", file);
  await appendFile(file, recordsOf({ cgroup: "/a/other/b-1" }));
  await appendFile(file, recordsOf({ cgroup: "/a/other/b-1", name: "task_memcg=/own/b-1" }));
  await appendFile(file, recordsOf({ cgroup: "/a/other/b-1", name: ",task_memcg=/own/b-1,task=x" }));
  await appendFile(file, recordsOf({ constraint: "OTHER" }));
  expect(log?.take("b-1")).toEqual([]);
  const name = ") (x, pid=1";
  await appendFile(file, recordsOf({ name }));
  expect(log?.take("b-1")).toEqual([{ ...known, name }]);
  log?.close();
});

test("where there is no log nothing is told", () => {
  expect(KernelLog.open("own", join(directory, "none"))).toBeUndefined();
});
