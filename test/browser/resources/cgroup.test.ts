import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import type { Cgroup, DaemonCgroup } from "../../../src/browser/resources/cgroup.js";
import { findCgroups } from "../../../src/browser/resources/cgroup.js";
import { parseMounts } from "../../../src/browser/resources/cgroup-hierarchy.js";
import { killAll } from "../../../src/browser/resources/processes.js";
import { removeCgroup } from "../../../src/browser/resources/process-tree.js";
import { cgroupNameOf } from "../../../src/browser/resources/scratch.js";
import { until } from "../../support/browser/chromium-until.js";

const isRoot = process.getuid?.() === 0;
const limits = { memoryBytes: 2 ** 28, tasks: 32 };
let cgroups: DaemonCgroup;
beforeAll(async () => {
  const found = isRoot ? await findCgroups(`remuda-test-${process.pid}`) : undefined;
  if (found) cgroups = found;
});
afterAll(() => cgroups?.close());

async function within(use: (cgroup: Cgroup) => Promise<void>, given = limits): Promise<void> {
  const cgroup = await cgroups.make("browser", given);
  try {
    await use(cgroup);
  } finally {
    await killAll(systemClock, () => cgroup.processes(), 5_000);
    await removeCgroup(cgroup, systemClock);
  }
}

const start = (cgroup: Cgroup, command: readonly string[]): ChildProcess => {
  const [program = "", ...args] = [...cgroup.prefix, ...command];
  return spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
};

async function outputOf(child: ChildProcess): Promise<string> {
  const ended = once(child, "close");
  let text = "";
  child.stdout?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await ended;
  return text;
}

test.runIf(isRoot)("this machine bounds memory and processes, and shares processors out", () => {
  expect(cgroups.holds).toMatchObject({
    memory: expect.stringMatching(/^cgroup-v/),
    pids: expect.stringMatching(/^cgroup-v/),
    cpu: expect.stringMatching(/^cgroup-v/),
  });
});

test.runIf(isRoot)(
  "what is started behind the prefix is inside from its first instruction, and so are its children",
  () =>
    within(async (cgroup) => {
      const seen = await outputOf(start(cgroup, ["/bin/sh", "-c", "/bin/cat /proc/self/cgroup; exit 0"]));
      for (const controller of ["memory", "pids", "cpu"])
        expect(seen).toMatch(new RegExp(`^\\d+:${controller}:.*/remuda-test-${process.pid}/browser$`, "m"));
    }),
);

test.runIf(isRoot)("what the kernel kills in it for want of memory is counted", () =>
  within(
    async (cgroup) => {
      expect((await cgroup.memory())?.outOfMemoryKills).toBe(0);
      const hog = "const kept = []; for (;;) kept.push(Buffer.alloc(2 ** 20, 1))";
      const child = start(cgroup, [process.execPath, "-e", hog]);
      const [, signal] = (await once(child, "exit")) as [number | null, string | null];
      expect([signal, (await cgroup.memory())?.outOfMemoryKills]).toEqual(["SIGKILL", 1]);
    },
    { memoryBytes: 2 ** 26, tasks: 32 },
  ),
);

test.runIf(isRoot)(
  "the prefix becomes the command by exec: its pid, its arguments and its open descriptors",
  () =>
    within(async (cgroup) => {
      const child = start(cgroup, ["/bin/sleep", "1000"]);
      await until(
        "the command",
        () => readFileSync(`/proc/${child.pid}/cmdline`, "latin1") === "/bin/sleep\x001000\0",
      );
      expect(await cgroup.processes()).toEqual([child.pid]);
    }),
);

test.runIf(isRoot)("arguments pass as they are, quotes and two dashes too", () =>
  within(async (cgroup) => {
    expect(await outputOf(start(cgroup, ["/usr/bin/printf", "%s|", "--", "a b", "$HOME", "it's", ""]))).toBe(
      "--|a b|$HOME|it's||",
    );
  }),
);

test.runIf(isRoot)("nothing runs outside of a cgroup that is gone", async () => {
  const cgroup = await cgroups.make("gone", limits);
  await cgroup.remove();
  const child = start(cgroup, ["/bin/echo", "outside"]);
  expect(await outputOf(child)).not.toContain("outside");
  expect(child.exitCode).toBe(125);
});

const bomb = `
  const { spawn } = require("node:child_process");
  let [started, refused] = [0, 0];
  const tell = () => started + refused === 200 && console.log(JSON.stringify({ started, refused }));
  for (let at = 0; at < 200; at += 1) {
    spawn("/bin/sleep", ["1000"], { stdio: "ignore" }).on("spawn", () => (started += 1, tell())).on("error", () => (refused += 1, tell()));
  }
`;

test.runIf(isRoot)("a process that forks without end gets no more tasks than it may have", () =>
  within(async (cgroup) => {
    const child = start(cgroup, [process.execPath, "-e", bomb]);
    const [told] = (await once(child.stdout as Readable, "data")) as [Buffer];
    const { started, refused } = JSON.parse(told.toString()) as { started: number; refused: number };
    expect(started + refused).toBe(200);
    expect(started).toBeGreaterThan(0);
    expect((await cgroup.processes()).length).toBeLessThan(limits.tasks);
  }),
);

test.runIf(isRoot)("a throttled one gets the share of a core that it may have", () =>
  within(async (cgroup) => {
    await cgroup.throttle(20);
    const child = start(cgroup, ["/bin/sh", "-c", "while :; do :; done"]);
    await once(child, "spawn");
    const ticksOf = (): number => {
      const fields = readFileSync(`/proc/${child.pid}/stat`, "latin1").split(") ")[1]?.split(" ") ?? [];
      return Number(fields[11]) + Number(fields[12]);
    };
    const begun = performance.now();
    await until("a second of it", () => performance.now() - begun > 1000);
    // A tick is 10 ms; an unthrottled process would have the whole time, or half of it beside another on a
    // machine of one core.
    const usedMs = ticksOf() * 10;
    expect(usedMs / (performance.now() - begun)).toBeLessThan(0.35);
  }),
);

const cpuPlaceOf = (memberships: string): string => {
  const below = /^\d+:(?:[^:]*,)?cpu(?:,[^:]*)?:(.*)$/m.exec(memberships)?.[1];
  return below === undefined
    ? `/sys/fs/cgroup${/^0::(.*)$/m.exec(memberships)?.[1]}`
    : `/sys/fs/cgroup/cpu${below}`;
};
const weightAt = (path: string): number => {
  const file = ["cpu.shares", "cpu.weight"].map((name) => join(path, name)).find(existsSync);
  return Number(readFileSync(file ?? "", "utf8")) / (file?.endsWith("shares") ? 1024 : 100);
};
const weighedTop = (): string =>
  cgroups.tops.find((path) => ["cpu.shares", "cpu.weight"].some((file) => existsSync(join(path, file)))) ??
  "";

test.runIf(isRoot)(
  "the daemon weighs as much as several browsers, and all together as any other program, however many there are",
  async () => {
    const top = weighedTop();
    expect(weightAt(cpuPlaceOf(readFileSync("/proc/self/cgroup", "utf8")))).toBe(8);
    const made = await Promise.all(["one", "two", "three"].map((name) => cgroups.make(name, limits)));
    expect(weightAt(top)).toBe(1);
    expect(weightAt(join(top, "one"))).toBe(1);
    await Promise.all(made.map((cgroup) => cgroup.remove()));
  },
);

test.runIf(isRoot)(
  "a second host of one process, and what it ends, leave the first one's cgroups usable",
  async () => {
    const name = `remuda-test-${process.pid}-second`;
    const second = await findCgroups(name);
    expect(second?.tops.map((top) => dirname(top))).toEqual(cgroups.tops.map((top) => dirname(top)));
    await second?.close();
    await within(async (cgroup) =>
      expect(await outputOf(start(cgroup, ["/bin/echo", "inside"]))).toBe("inside\n"),
    );
  },
);

const memberships = "4:memory:/kube/pod\n2:cpu,cpuacct:/kube\n0::/user.slice\n";
test.each([
  [
    "version 1, one controller",
    "30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
    { version: 1, controllers: ["memory"], point: "/sys/fs/cgroup/memory", below: "/kube/pod" },
  ],
  [
    "version 1, two mounted together",
    "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct",
    { version: 1, controllers: ["cpu", "cpuacct"], point: "/sys/fs/cgroup/cpu", below: "/kube" },
  ],
  [
    "version 1, a part of the tree as containers see it",
    "30 24 0:26 /kube /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
    { version: 1, controllers: ["memory"], point: "/sys/fs/cgroup/memory", below: "/pod" },
  ],
  [
    "version 2",
    "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw",
    { version: 2, controllers: [], point: "/sys/fs/cgroup", below: "/user.slice" },
  ],
])("mounts: %s", (_name, line, place) => expect(parseMounts(line, memberships)).toEqual([place]));

test("mounts: other file systems and other controllers are not looked at", () => {
  expect(
    parseMounts(
      "30 24 0:26 / /sys rw - sysfs sysfs rw\n31 24 0:27 / /c rw - cgroup cgroup rw,freezer",
      memberships,
    ),
  ).toEqual([]);
});

test.runIf(isRoot)("a trial that a killed daemon has left keeps none after it from its cgroups", async () => {
  const name = `remuda-test-left-${process.pid}`;
  const first = await findCgroups(name);
  const tops = first?.tops ?? [];
  await first?.close();
  for (const top of tops) mkdirSync(join(top, "trial"), { recursive: true });
  const second = await findCgroups(name);
  expect(tops.length).toBeGreaterThan(0);
  expect(second?.tops).toEqual(tops);
  expect(tops.filter((top) => existsSync(join(top, "trial")))).toEqual([]);
  await second?.close();
});

test("two scratch directories of one last part have cgroups of their own", () => {
  expect(cgroupNameOf("/a/browsers")).not.toBe(cgroupNameOf("/b/browsers"));
  expect(cgroupNameOf("/a/browsers")).toBe(cgroupNameOf("/a/browsers"));
});
