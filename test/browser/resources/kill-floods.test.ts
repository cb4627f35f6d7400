import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { type Cgroup, findCgroups } from "../../../src/browser/resources/cgroup.js";
import { KernelLog } from "../../../src/browser/resources/kernel-log.js";
import { removeCgroup } from "../../../src/browser/resources/process-tree.js";

const isRoot = process.getuid?.() === 0;
const log = KernelLog.open("none");
log?.close();

/** Nobody's but of this run: the log is that of the whole machine. */
const uids = { loud: 1_000_000_000 + 2 * process.pid, quiet: 1_000_000_001 + 2 * process.pid };

/** Has the kernel end a process for want of memory; gives the process's id. */
async function overrun(cgroup: Cgroup, uid: number): Promise<number | undefined> {
  const [program = "", ...args] = [...cgroup.prefix, "setpriv", `--reuid=${uid}`, "tail", "/dev/zero"];
  const child = spawn(program, args, { stdio: "ignore" });
  const [, signal] = await once(child, "exit");
  expect(signal).toBe("SIGKILL");
  return child.pid;
}

// The kernel names cgroups of ten kills in five seconds, of all its machine's.
test.runIf(isRoot && log)("whoever has many processes killed hides nobody else's from the log", async () => {
  const cgroups = await findCgroups(`remuda-kills-${process.pid}`);
  if (cgroups?.holds.memory === "none") return;
  const limits = { memoryBytes: 2 ** 24, tasks: 8 };
  const loud = await cgroups?.make("loud", { ...limits, uid: uids.loud });
  const quiet = await cgroups?.make("quiet", { ...limits, uid: uids.quiet });
  if (!loud || !quiet) throw new Error("there are no cgroups");
  const all: (number | undefined)[] = [];
  for (let count = 0; count < 15; count += 1) all.push(await overrun(loud, uids.loud));
  const pid = await overrun(quiet, uids.quiet);
  const killed = { name: "tail", constraint: "memcg", residentBytes: expect.any(Number) };
  const memory = await quiet.memory();
  expect(memory).toMatchObject({ outOfMemoryKills: 1, killed: [{ ...killed, pid }] });
  expect((await loud.memory())?.killed).toEqual(all.map((each) => ({ ...killed, pid: each })));
  for (const cgroup of [loud, quiet]) await removeCgroup(cgroup, systemClock);
  await cgroups?.close();
});
