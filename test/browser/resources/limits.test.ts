import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import type { DaemonCgroup } from "../../../src/browser/resources/cgroup.js";
import {
  findPrlimit,
  limitsInForce,
  limitsInside,
  parseHardLimits,
  type Prlimit,
  usualLimits,
} from "../../../src/browser/resources/limits.js";

const cgroups = (holds: Partial<DaemonCgroup["holds"]>): DaemonCgroup => ({
  holds: { memory: "none", pids: "none", cpu: "none", io: "none", cpuacct: "none", ...holds },
  tops: [],
  make: () => Promise.reject(new Error("none is made here")),
  close: async () => {},
});
const prlimit: Prlimit = {
  path: "/usr/bin/prlimit",
  hard: { files: 1_000_000, tasks: 1_000_000, dataBytes: Number.MAX_SAFE_INTEGER },
};
const mounted = { mount: async () => {}, unmount: async () => {} };
const given = { limits: usualLimits, memoryBytes: 2 ** 30, countsAlone: true };

test("limits that cgroups hold are shown with their version, and the resource watch has the rest", () => {
  const held = cgroups({ memory: "cgroup-v1", pids: "cgroup-v2", cpu: "cgroup-v2" });
  expect(limitsInForce({ cgroups: held, prlimit, sizedScratch: mounted, countsAlone: true })).toEqual({
    memory: "cgroup-v1",
    tasks: "cgroup-v2",
    cpu: "cgroup-v2",
    busy: "none",
    scratch: "mount",
  });
});

test("without cgroups tasks are bounded by a limit of the process, memory and disk by the watch, and nothing shares out processors", () => {
  expect(limitsInForce({ prlimit, countsAlone: true })).toEqual({
    memory: "watch",
    tasks: "rlimit",
    cpu: "none",
    busy: "none",
    scratch: "watch",
  });
});

test("where others have the same uid in the same namespace nothing bounds tasks, and the limits show that", () => {
  expect(limitsInForce({ prlimit, countsAlone: false }).tasks).toBe("none");
  expect(limitsInside({ prlimit, ...given, countsAlone: false }).join(" ")).not.toContain("nproc");
});

test("memory is bounded by process only where no cgroup bounds it", () => {
  expect(limitsInside({ prlimit, ...given }).join(" ")).toContain("--data=1610612736:1610612736");
  expect(
    limitsInside({ prlimit, cgroups: cgroups({ memory: "cgroup-v2" }), ...given }).join(" "),
  ).not.toContain("data");
});

test("sizes of files are never bounded: Chromium would end at the first larger one", () => {
  expect(limitsInside({ prlimit, ...given }).join(" ")).not.toContain("fsize");
});

test("no limit is asked for that lies above the daemon's own", () => {
  const text =
    "Limit                     Soft Limit           Hard Limit           Units\n" +
    "Max data size             unlimited            unlimited            bytes\n" +
    "Max processes             96000                777                  processes\n" +
    "Max open files            1024                 2048                 files\n";
  const hard = parseHardLimits(text);
  expect(hard).toEqual({ files: 2048, tasks: 777, dataBytes: Number.MAX_SAFE_INTEGER });
  const line = limitsInside({ prlimit: { ...prlimit, hard }, ...given }).join(" ");
  expect(line).toContain("--nofile=2048:2048");
  expect(line).toContain("--nproc=777:777");
});

test("without the program there is no head", () => {
  expect(limitsInside(given)).toEqual([]);
});

test.runIf(process.platform === "linux")("the head becomes the command, with the limits on it", async () => {
  const found = await findPrlimit();
  const [program = "", ...args] = [
    ...limitsInside({ ...(found && { prlimit: found }), ...given }),
    "/bin/cat",
    "/proc/self/limits",
  ];
  const limits = execFileSync(program, args, { encoding: "utf8" });
  expect(limits).toMatch(/^Max core file size +0 +0 /m);
  expect(limits).toMatch(/^Max processes +\d+ +1024 /m);
  expect(limits).toMatch(/^Max data size +1610612736 +1610612736 /m);
});
