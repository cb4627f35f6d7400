import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { type Cgroup, type DaemonCgroup, findCgroups } from "../../../src/browser/resources/cgroup.js";
import { killAll } from "../../../src/browser/resources/processes.js";
import { removeCgroup } from "../../../src/browser/resources/process-tree.js";
import {
  findLowPriorityKind,
  nextUse,
  type ProcessorUse,
  usedMsAt,
  CpuPriority,
} from "../../../src/browser/resources/cpu-priority.js";
import { until } from "../../support/browser/chromium-until.js";

const isRoot = process.getuid?.() === 0;
const limitMs = 60_000;
const most = 25;
/** Also where the machine has little time for a test. */
const leastBusy = 5;
let cgroups: DaemonCgroup;
beforeAll(async () => {
  const found = isRoot ? await findCgroups(`remuda-test-cpu-priority-${process.pid}`) : undefined;
  if (found) cgroups = found;
});
afterAll(() => cgroups?.close());

async function make(name: string): Promise<Cgroup> {
  const cgroup = await cgroups.make(name, { memoryBytes: 2 ** 28, tasks: 32 });
  onTestFinished(async () => {
    await killAll(systemClock, () => cgroup.processes(), 5_000);
    await removeCgroup(cgroup, systemClock);
  });
  return cgroup;
}

async function start({ prefix }: Cgroup, script: string): Promise<ChildProcess> {
  const [program = "", ...args] = [...prefix, "/bin/sh", "-c", script];
  const child = spawn(program, args, { stdio: "ignore" });
  await once(child, "spawn");
  return child;
}

const namesBehind = (): readonly string[] =>
  (cgroups.cpuPriority?.look(systemClock.monotonic(), leastBusy) ?? []).map((path) =>
    path.slice(path.lastIndexOf("/") + 1),
  );
/** What the kernel says, of a cgroup beside the others. */
const isIdle = (pid: number): boolean => {
  const memberships = readFileSync(`/proc/${pid}/cgroup`, "utf8");
  const below = /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m.exec(memberships)?.[1];
  const path =
    below === undefined
      ? `/sys/fs/cgroup${/^0::(.*)$/m.exec(memberships)?.[1]}`
      : `/sys/fs/cgroup/cpu${below}`;
  return readFileSync(join(path, "cpu.idle"), "utf8").trim() === "1";
};

test.runIf(isRoot)(
  "who is busy stands behind those who are not, and comes back when it is calm",
  async () => {
    expect(cgroups.cpuPriority?.kind).toBe("idle");
    const busy = await start(await make("busy"), "while :; do :; done");
    const calm = await start(await make("calm"), "sleep 1000");
    // Their shells have started by then, which is work too.
    await until("busy alone behind", () => namesBehind().join() === "busy", limitMs);
    expect([busy, calm].map(({ pid = 0 }) => isIdle(pid))).toEqual([true, false]);
    expect(isIdle(process.pid)).toBe(false);
    busy.kill("SIGSTOP");
    await until("it back", () => namesBehind().length === 0, limitMs);
    expect(isIdle(busy.pid ?? 0)).toBe(false);
  },
);

test.runIf(isRoot)("a cgroup that is removed while it yields is forgotten", async () => {
  const cgroup = await cgroups.make("short", { memoryBytes: 2 ** 28, tasks: 32 });
  await start(cgroup, "while :; do :; done");
  await until("it behind", () => namesBehind().includes("short"), limitMs);
  await killAll(systemClock, () => cgroup.processes(), 5_000);
  await removeCgroup(cgroup, systemClock);
  expect(namesBehind()).toEqual([]);
});

test("the last period counts as much as all before it, and the way back is longer than the way in", () => {
  const after = (...percents: number[]): readonly boolean[] => {
    let use: ProcessorUse = { average: 0, isBehind: false };
    return percents.map((percent) => (use = nextUse(use, percent, most)).isBehind);
  };
  expect(after(40, 0, 40, 0)).toEqual([false, false, false, false]);
  expect(after(200)).toEqual([true]);
  expect(after(40, 40)).toEqual([false, true]);
  expect(after(100, 20, 20, 5, 5, 5)).toEqual([true, true, true, true, false, false]);
});

/** A directory with the files that a kernel has, where it takes whatever is written. */
function kernelWith(files: Readonly<Record<string, string>>): string {
  const path = mkdtempSync(join(tmpdir(), "remuda-test-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
  return path;
}

test("where the kernel has no idle class for cgroups, the least weight stands in for it, and without weights nothing", () => {
  expect(findLowPriorityKind(kernelWith({ "cpu.idle": "0", "cpu.weight": "100" }), 2)).toBe("idle");
  expect(findLowPriorityKind(kernelWith({ "cpu.shares": "1024" }), 1)).toBe("weight");
  expect(findLowPriorityKind(kernelWith({ "cpu.weight": "100" }), 2)).toBe("weight");
  expect(findLowPriorityKind(kernelWith({}), 2)).toBe("none");
});

test("by weight it goes behind and comes back as well", () => {
  const path = kernelWith({ "cpu.weight": "100", "cpu.stat": "usage_usec 0\nuser_usec 0\n" });
  const cpuPriority = new CpuPriority({ kind: "weight", version: 2, top: path });
  cpuPriority.add({ weighed: path, counted: path });
  const areBehind = (usedMs: number, now: number): number => {
    writeFileSync(join(path, "cpu.stat"), `usage_usec ${usedMs * 1000}\n`);
    return cpuPriority.look(now, most).length;
  };
  expect([areBehind(0, 200), areBehind(200, 400), areBehind(200, 600), areBehind(200, 800)]).toEqual([
    0, 1, 1, 0,
  ]);
  expect(usedMsAt(path, 2)).toBe(200);
});
