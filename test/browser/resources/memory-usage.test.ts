import { afterEach, expect, test } from "vitest";
import { makeMeasureMemory } from "../../../src/browser/resources/memory-usage.js";
import { heldBytes } from "../../../src/browser/resources/shared-memory.js";
import {
  endPerl,
  fill,
  manyDescriptors,
  mapMany,
  memfd,
  sharedFile,
  startPerl,
} from "../../support/browser/perl-programs.js";

const mebibyte = 2 ** 20;
const taken = 96;
const limit = 64 * mebibyte;

const mount = (options: string): string =>
  `system("mount ${options} none /mnt") == 0 or die; open(my $file, ">", "/mnt/fill") or die; ${fill("$file", taken)}`;
const ownMounts = ["unshare", "--mount", ...(process.getuid?.() === 0 ? [] : ["--map-root-user"]), "--"];

afterEach(endPerl);

const measured = async (pid: number, most = limit): Promise<number> =>
  (await makeMeasureMemory()([pid], () => most)).get(pid) ?? 0;

test("what a process has allocated is counted", async () => {
  const pid = await startPerl(`my $held = $block x ${taken};`);
  expect(await measured(pid)).toBeGreaterThan(taken * mebibyte);
});

test("shared memory that nobody maps is counted, and once", async () => {
  const pid = await startPerl(`${memfd("$file")} ${fill("$file", taken)} open(my $again, "+<&", $file);`);
  const bytes = await measured(pid);
  expect(bytes).toBeGreaterThan(taken * mebibyte);
  expect(bytes).toBeLessThan(1.5 * taken * mebibyte);
});

test("a file system in memory that the process alone sees is counted", async () => {
  const pid = await startPerl(mount("-t tmpfs -o size=200m"), ownMounts);
  const bytes = await measured(pid);
  expect(bytes).toBeGreaterThan(taken * mebibyte);
  expect(bytes).toBeLessThan(1.5 * taken * mebibyte);
});

test("so is one whose place has a name that is no UTF-8", async () => {
  const place = "/mnt/\\xe9";
  const pid = await startPerl(
    `system("mount -t tmpfs -o size=1m none /mnt") == 0 or die; mkdir("${place}") or die;
    system("mount", "-t", "tmpfs", "-o", "size=200m", "none", "${place}") == 0 or die; open(my $file, ">", "${place}/fill") or die; ${fill("$file", taken)}`,
    ownMounts,
  );
  expect(await measured(pid)).toBeGreaterThan(taken * mebibyte);
});

test.each([
  ["has no bound", "-t tmpfs -o size=0"],
  ["has none that can be asked", "-t ramfs"],
])("one that %s counts as more than anybody may have", async (_, options) => {
  const pid = await startPerl(mount(options), ownMounts);
  expect(await measured(pid, 2 ** 32)).toBeGreaterThan(2 ** 32);
});

test("one that another covers counts as more than anybody may have", async () => {
  const pid = await startPerl(
    `${mount("-t tmpfs -o size=200m")} system("mount -t tmpfs -o size=1m none /mnt");`,
    [...ownMounts],
  );
  expect(await measured(pid, 2 ** 32)).toBeGreaterThan(2 ** 32);
});

const mountMany = (count: number): string => `
  system("mount -t tmpfs -o size=1m none /mnt") == 0 or die;
  for my $at (1 .. ${count}) { mkdir "/mnt/$at"; syscall(-e "/lib/ld-linux-aarch64.so.1" ? 40 : 165, my $none = "none\\0", my $point = "/mnt/$at\\0", my $type = "tmpfs\\0", 0, my $size = "size=1m\\0") == 0 or die "$!" }`;
test("more file systems in memory than a look goes through count as more than anybody may have", async () => {
  const [some, many] = await Promise.all([20, 200].map((count) => startPerl(mountMany(count), ownMounts)));
  expect(await measured(some ?? 0, 2 ** 32)).toBeLessThan(limit);
  expect(await measured(many ?? 0, 2 ** 32)).toBeGreaterThan(2 ** 32);
});

test("so do more descriptors, however many processes have them", async () => {
  const [some, many] = await Promise.all(
    [100, 3750].map((each) => startPerl(sharedFile + manyDescriptors("$file", 8, each))),
  );
  // What is above its limit is looked at closely.
  expect(await measured(some ?? 0, 8 * mebibyte)).toBeLessThan(limit);
  expect(await measured(many ?? 0, 8 * mebibyte)).toBeGreaterThan(2 ** 32);
});

test("so do more mappings", async () => {
  const pid = await startPerl(mapMany(60_000));
  expect(await measured(pid, mebibyte)).toBeGreaterThan(2 ** 32);
});

test("the event loop has its turns while many are looked through", async () => {
  const pid = await startPerl(
    `${sharedFile} my @held; open($held[@held], "<&", $file) or die for 1 .. 3000;`,
  );
  let [isOver, turns] = [false, 0];
  const count = (): void => void (isOver || ((turns += 1), setImmediate(count)));
  setImmediate(count);
  expect(await heldBytes([pid])).toBe(mebibyte);
  isOver = true;
  expect(turns).toBeGreaterThan(20);
});

test("a process is its browser's however many stand between them", async () => {
  const deep = `pipe(my $told, my $tell) or die;
    for my $depth (1 .. 30) { my $child = fork(); if ($child) { sysread($told, my $one, 1) if $depth == 1; last } syscall(-e "/lib/ld-linux-aarch64.so.1" ? 167 : 157, 1, 9, 0, 0, 0); setpgrp; next if $depth < 30;
      our $held = $block x ${taken}; syswrite($tell, "x"); sleep 60; exit 0 }
    if (getpgrp != getpgrp(getppid)) { sleep 60; exit 0 }`;
  expect(await measured(await startPerl(deep))).toBeGreaterThan(taken * mebibyte);
});

test("of many that may be the one, each is looked at within a few looks", async () => {
  const pids = await Promise.all(
    Array.from({ length: 12 }, () => startPerl(`${memfd("$file")} syswrite($file, $block) for 1 .. 8;`)),
  );
  const measure = makeMeasureMemory();
  const limitOf = (): number => 48 * mebibyte;
  const all = [await measure(pids, limitOf), await measure(pids, limitOf)];
  const most = (pid: number): number => Math.max(...all.map((found) => found.get(pid) ?? 0));
  expect(pids.filter((pid) => most(pid) < 8 * mebibyte)).toEqual([]);
});
