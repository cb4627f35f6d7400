import { execFile } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { BoundedLook } from "../../../src/browser/resources/bounded-look.js";
import { openFiles } from "../../../src/browser/resources/open-files.js";
import { measureStorage, type StorageUse } from "../../../src/browser/resources/scratch-usage.js";
import { endPerl, fill, manyDescriptors, mapMany, startPerl } from "../../support/browser/perl-programs.js";
import { compiled } from "../../support/compiled.js";
import { newScratchDirectory } from "../../support/killed-runs.js";

const mebibyte = 2 ** 20;
const taken = 32;
const isRoot = process.getuid?.() === 0;
const user = 64_999;

let root: string;
beforeEach(() => {
  root = newScratchDirectory();
  chmodSync(root, 0o755);
  mkdirSync(join(root, "closed"));
});
afterEach(async () => {
  await endPerl();
  chmodSync(join(root, "closed"), 0o700);
  rmSync(root, { recursive: true });
});

const measured = async (pid: number): Promise<StorageUse | null | undefined> =>
  (await measureStorage([{ root, pid }])).get(root);
const open = (name: string): string => `open(my $file, "+>", "${join(root, name)}") or die "$!";`;
const unlink = (name: string): string => `unlink("${join(root, name)}") or die "$!";`;

test("a file that has lost its name and is open still is counted, and once", async () => {
  const pid = await startPerl(
    `${open("held")} ${unlink("held")} ${fill("$file", taken)} open(my $again, "<&", $file);`,
  );
  const stored = await measured(pid);
  expect(stored?.bytes).toBeGreaterThanOrEqual(taken * mebibyte);
  expect(stored?.bytes).toBeLessThan(1.5 * taken * mebibyte);
  expect(stored?.files).toBe(3);
});

test("a file that has another name still is counted by that one alone", async () => {
  const pid = await startPerl(
    `${open("first")} link("${join(root, "first")}", "${join(root, "second")}") or die; ${unlink("first")} ${fill("$file", taken)}`,
  );
  const stored = await measured(pid);
  expect(stored?.bytes).toBeGreaterThanOrEqual(taken * mebibyte);
  expect(stored?.bytes).toBeLessThan(1.5 * taken * mebibyte);
});

test("a file that has lost its name deeper than the kernel tells a path is counted", async () => {
  const name = "d".repeat(200);
  const deep = `chdir("${root}") or die; for (1 .. 25) { mkdir("${name}") or die "$!"; chdir("${name}") or die "$!" }`;
  const gone = `unlink("held") or die "$!"; for (1 .. 25) { chdir("..") or die "$!"; rmdir("${name}") or die "$!" }`;
  const pid = await startPerl(
    `${deep} open(my $file, "+>", "held") or die "$!"; ${gone} ${fill("$file", taken)}`,
  );
  expect((await measured(pid))?.bytes).toBeGreaterThanOrEqual(taken * mebibyte);
});

test("what lies in shared memory without a name is not counted as stored", async () => {
  const pid = await startPerl(`open(my $file, "+<&=", syscall($number, $name, 0)); ${fill("$file", taken)}`);
  expect((await measured(pid))?.bytes).toBeLessThan(mebibyte);
});

test.runIf(isRoot).each([
  ["is mapped alone", "held", 0],
  ["has a carriage return in the name that it had", "held\\r", 0],
  ["is mapped at an address of few digits", "held", 0x1000000],
])("a file that has lost its name and %s is counted", async (_, name, address) => {
  const flags = address === 0 ? 0x01 : 0x11;
  const map = `syscall(-e "/lib/ld-linux-aarch64.so.1" ? 222 : 9, ${address}, 4096, 1, ${flags}, fileno($file), 0) > 0 or die "$!"; close $file;`;
  const pid = await startPerl(`${open(name)} ${unlink(name)} ${fill("$file", taken)} ${map}`);
  expect((await measured(pid))?.bytes).toBeGreaterThanOrEqual(taken * mebibyte);
});

test("others have their turn of the event loop while many mappings are looked through", async () => {
  const pid = await startPerl(mapMany(30_000));
  let [all, inTurn, most] = [0, 0, 0];
  await openFiles(new BoundedLook(40_000), [pid], () => {
    all += 1;
    most = Math.max(most, (inTurn += 1));
    if (inTurn === 1) setImmediate(() => (inTurn = 0));
    return false;
  });
  expect(all).toBeGreaterThan(30_000);
  expect(most).toBeLessThan(5_000);
});

test("a browser that has more descriptors than a look goes through is not counted", async () => {
  const pid = await startPerl(open("held") + manyDescriptors("$file", 8, 3750));
  expect(await measured(pid)).toBeNull();
});

test("a tree with a directory that may not be read is not counted, one that changes is", async () => {
  writeFileSync(join(root, "closed", "file"), Buffer.alloc(mebibyte));
  if (isRoot) chownSync(join(root, "closed"), user, user);
  chmodSync(join(root, "closed"), 0);
  expect(await measuredAsUser()).toBe("null");
  chmodSync(join(root, "closed"), 0o700);
  const change = `for my $at (1 .. 1e9) { mkdir "${root}/$at"; rmdir "${root}/$at"; print "done\\n" if $at == 100 }`;
  await startPerl(change);
  for (let look = 0; look < 5; look += 1) expect(await measuredAsUser()).toMatch(/"bytes":1\d{6},/);
});

/** The same as an ordinary user, for root may read everything. */
async function measuredAsUser(): Promise<string> {
  const module = pathToFileURL(join(compiled, "src/browser/resources/scratch-usage.js")).href;
  const code = `const { measureStorage } = await import("${module}"); console.log(JSON.stringify((await measureStorage([{ root: "${root}", pid: process.pid }])).get("${root}")));`;
  const before = isRoot ? ["setpriv", `--reuid=${user}`, `--regid=${user}`, "--clear-groups", "--"] : [];
  const [program = "", ...args] = [...before, process.execPath, "--input-type=module", "-e", code];
  return (await promisify(execFile)(program, args)).stdout.trim();
}
