import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { makeMeasureMemory } from "../../../src/browser/resources/memory-usage.js";
import { bound } from "../../support/bound.js";

const mebibyte = 2 ** 20;
const taken = 96;
const limit = 64 * mebibyte;

const running: ChildProcess[] = [];
afterEach(async () => {
  for (const child of running.splice(0)) {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
});

/** Takes memory in that way, says so, and waits; memfd_create(2) has another number on arm64. */
async function take(way: string, before: readonly string[] = []): Promise<number> {
  const script = `$| = 1; my $number = -e "/lib/ld-linux-aarch64.so.1" ? 279 : 319; my $block = "x" x 1048576; my $name = "held\\0";
    ${way} print "taken\\n"; sleep 60;`;
  const [program = "", ...args] = [...before, ...bound("perl", "-e", script)];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
  running.push(child);
  await Promise.race([
    once(child.stdout, "data"),
    once(child, "exit").then(() => Promise.reject(new Error("the program ended"))),
  ]);
  return child.pid ?? 0;
}
const fill = (file: string): string => `syswrite(${file}, $block) or die "$!" for 1 .. ${taken};`;
const memfd = (file: string): string => `open(my ${file}, "+<&=", syscall($number, $name, 0)) or die "$!";`;
const mount = (options: string): string =>
  `system("mount ${options} none /mnt") == 0 or die; open(my $file, ">", "/mnt/fill") or die; ${fill("$file")}`;
const ownMounts = ["unshare", "--mount", ...(process.getuid?.() === 0 ? [] : ["--map-root-user"]), "--"];

const measured = async (pid: number, most = limit): Promise<number> =>
  (await makeMeasureMemory()([pid], () => most)).get(pid) ?? 0;

test("what a process has allocated is counted", async () => {
  const pid = await take(`my $held = $block x ${taken};`);
  expect(await measured(pid)).toBeGreaterThan(taken * mebibyte);
});

test("shared memory that nobody maps is counted, and once", async () => {
  const pid = await take(`${memfd("$file")} ${fill("$file")} open(my $again, "+<&", $file);`);
  const bytes = await measured(pid);
  expect(bytes).toBeGreaterThan(taken * mebibyte);
  expect(bytes).toBeLessThan(1.5 * taken * mebibyte);
});

test("a file system in memory that the process alone sees is counted", async () => {
  const pid = await take(mount("-t tmpfs -o size=200m"), ownMounts);
  const bytes = await measured(pid);
  expect(bytes).toBeGreaterThan(taken * mebibyte);
  expect(bytes).toBeLessThan(1.5 * taken * mebibyte);
});

test.each([
  ["has no bound", "-t tmpfs -o size=0"],
  ["has none that can be asked", "-t ramfs"],
])("one that %s counts as more than anybody may have", async (_, options) => {
  const pid = await take(mount(options), ownMounts);
  expect(await measured(pid, 2 ** 32)).toBeGreaterThan(2 ** 32);
});

test("one that another covers counts as more than anybody may have", async () => {
  const pid = await take(`${mount("-t tmpfs -o size=200m")} system("mount -t tmpfs -o size=1m none /mnt");`, [
    ...ownMounts,
  ]);
  expect(await measured(pid, 2 ** 32)).toBeGreaterThan(2 ** 32);
});

test("of many that may be the one, each is looked at within a few looks", async () => {
  const pids = await Promise.all(
    Array.from({ length: 12 }, () => take(`${memfd("$file")} syswrite($file, $block) for 1 .. 8;`)),
  );
  const measure = makeMeasureMemory();
  const limitOf = (): number => 48 * mebibyte;
  const all = [await measure(pids, limitOf), await measure(pids, limitOf)];
  const most = (pid: number): number => Math.max(...all.map((found) => found.get(pid) ?? 0));
  expect(pids.filter((pid) => most(pid) < 8 * mebibyte)).toEqual([]);
});
