import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { pause, systemClock } from "../../src/base/clock.js";
import { TimeLimitReached, within } from "../../src/base/deadline.js";
import type { Directories } from "../../src/browser/chromium.js";
import {
  directoriesOf,
  emptyDirectory,
  endRemovals,
  makeDirectories,
  newWorkspaceName,
  removeRoot,
  removeTree,
} from "../../src/browser/directories.js";
import { putForeignFile, removeForeignFile } from "../../src/browser/foreign-file.js";
import { until } from "../support/browser/chromium-until.js";
import { makeStubbornTree, runModule, stubbornTreeNames } from "../support/browser/stubborn-trees.js";
import { compiled } from "../support/compiled.js";
import { newScratchDirectory } from "../support/killed-runs.js";

const isRoot = process.getuid?.() === 0;
const uid = 901_234;
let scratch: string;
let directories: Directories;
beforeEach(async () => {
  scratch = newScratchDirectory();
  chmodSync(scratch, 0o711);
  directories = directoriesOf(scratch, newWorkspaceName());
  await makeDirectories(directories, isRoot ? uid : null);
});
afterEach(() => execFileSync("rm", ["-rf", scratch]));

function mayDo(as: number, ...command: readonly string[]): boolean {
  try {
    execFileSync("setpriv", ["--reuid", `${as}`, "--regid", `${as}`, "--clear-groups", "--", ...command], {
      stdio: "ignore",
    });
    return true;
  } catch {
    return false;
  }
}

test.runIf(isRoot)(
  "a browser writes into its root, and moves nothing there that is ours; another one does not even look",
  () => {
    const { root, extensions, profile } = directories;
    expect(mayDo(uid, "mkdir", join(root, "own"))).toBe(true);
    expect(mayDo(uid, "touch", join(profile, "Local State"))).toBe(true);
    expect(mayDo(uid, "ls", extensions)).toBe(true);
    expect(mayDo(uid, "mv", extensions, join(root, "aside"))).toBe(false);
    expect(mayDo(uid, "rmdir", extensions)).toBe(false);
    expect(mayDo(uid + 1, "ls", root)).toBe(false);
  },
);

test("emptying follows no link, be it in the directory's own place", async () => {
  const { root, downloads } = directories;
  const target = join(scratch, "target");
  mkdirSync(join(target, "inner"), { recursive: true });
  writeFileSync(join(target, "inner", "held"), "");
  mkdirSync(join(downloads, "a", "b"), { recursive: true });
  writeFileSync(join(downloads, "a", "b", "file"), "");
  symlinkSync(target, join(downloads, "a", "link"));
  await emptyDirectory(downloads);
  expect(readdirSync(downloads)).toEqual([]);
  symlinkSync(target, join(root, "swapped"));
  await emptyDirectory(join(root, "swapped"));
  expect(readdirSync(target, { recursive: true })).toContain(join("inner", "held"));
});

test("a file is put and removed beyond no link, whatever stands in its place or in its directory's", async () => {
  const { root, profile } = directories;
  const target = join(scratch, "elsewhere");
  mkdirSync(target);
  writeFileSync(join(target, "kept"), "");
  mkdirSync(join(profile, "kept", "a"), { recursive: true });
  symlinkSync(target, join(profile, "kept", "a", "link"));
  await putForeignFile(join(profile, "kept"), "text", null);
  expect(readFileSync(join(profile, "kept"), "utf8")).toBe("text");
  renameSync(profile, join(root, "aside"));
  symlinkSync(target, profile);
  await expect(putForeignFile(join(profile, "kept"), "text", null)).rejects.toThrow(/ENOTDIR|ELOOP/);
  await expect(removeForeignFile(join(profile, "kept"))).rejects.toThrow(/ENOTDIR|ELOOP/);
  expect(readdirSync(target)).toEqual(["kept"]);
  expect(readFileSync(join(target, "kept"), "utf8")).toBe("");
});

test("a tree is removed whole, and one that is not there is fine", async () => {
  const { uploads } = directories;
  mkdirSync(join(uploads, "a", "b"), { recursive: true });
  await removeTree(uploads);
  await removeTree(uploads);
  expect(existsSync(uploads)).toBe(false);
});

describe.each(["its own", "an ordinary user's"])("in %s daemon", (whose) => {
  const daemon = whose === "its own" || !isRoot ? undefined : 64_322;
  test.each(stubbornTreeNames)(
    "%s: the root that holds it is removed, and nothing that a link leads to is touched",
    (tree) => {
      if (daemon !== undefined) chownSync(scratch, daemon, daemon);
      const [root, target] = [join(scratch, "root"), join(scratch, "linked")];
      const prepare = `
        mkdirSync("root"); mkdirSync("linked"); writeFileSync("linked/kept", ""); chmodSync("linked", 0o500);
        symlinkSync("../linked", "root/link");`;
      runModule(`import { symlinkSync } from "node:fs"; ${prepare}`, scratch, daemon);
      makeStubbornTree(tree, root, daemon);
      const module = pathToFileURL(join(compiled, "src/browser/directories.js")).href;
      const remove = `await (await import("${module}")).removeRoot("${root}");`;
      runModule(remove, "/", daemon);
      expect(existsSync(root)).toBe(false);
      expect(readdirSync(target)).toEqual(["kept"]);
      expect(statSync(target).mode & 0o777).toBe(0o500);
      chmodSync(target, 0o700);
    },
  );
});

/** Directories in each other, so many that their removal takes a while. */
function makeChain(path: string): void {
  mkdirSync(path);
  execFileSync("perl", ["-e", 'for (1 .. 10000) { mkdir "d"; chdir "d" }'], { cwd: path });
}

/** The programs that have the path on their command line. */
const programsAt = (path: string): string[] =>
  readdirSync("/proc").filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").includes(path);
    } catch {
      return false;
    }
  });

/** The programs that are seen at a path until the work is over, by name. */
async function programsOf(work: Promise<void>, path: string): Promise<string[]> {
  const seen = new Set<string>();
  const over = work.then(() => "over");
  // Long enough to leave them the processor, and short beside what each of them takes.
  while ((await Promise.race([over, pause(systemClock, 5)])) !== "over")
    for (const pid of programsAt(path)) seen.add(nameOf(pid));
  return ["chmod", "rm"].filter((name) => seen.has(name));
}

function nameOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}

test.runIf(process.platform === "linux")(
  "a root whose removal takes longer than anyone waits is removed: who asks again joins the one removal",
  async () => {
    const root = join(scratch, "root");
    makeChain(root);
    const running = new Set<string>();
    let most = 0;
    let waits = 0;
    for (let isThere = true; isThere && waits < 1000; waits += 1) {
      isThere = await within(systemClock, { what: "a removal", limitMs: 50 }, removeRoot(root)).then(
        () => false,
        (error: unknown) => {
          expect(error).toBeInstanceOf(TimeLimitReached);
          return true;
        },
      );
      const programs = programsAt(root);
      most = Math.max(most, programs.length);
      for (const pid of programs) running.add(pid);
    }
    expect(existsSync(root)).toBe(false);
    expect(waits).toBeGreaterThan(1);
    // chmod(1) and rm(1), one after the other.
    expect([most, running.size <= 2]).toEqual([1, true]);
  },
);

test.runIf(process.platform === "linux")(
  "a removal that is ended leaves no program, and the next one removes what is left",
  async () => {
    const root = join(scratch, "root");
    makeChain(root);
    const removal = removeRoot(root).catch((error: Error) => error.message);
    await expect.poll(() => programsAt(root).length, { interval: 1 }).toBe(1);
    // Nobody else gets in meanwhile.
    expect(statSync(root).mode & 0o777).toBe(0o700);
    await endRemovals();
    expect(programsAt(root)).toEqual([]);
    expect(await removal).toContain("could not be removed");
    await removeRoot(root);
    expect(existsSync(root)).toBe(false);
  },
);

/** Files in one directory, so many that Node.js would hold up the daemon for a second to remove them. */
const makeWide = (path: string): void => {
  mkdirSync(path);
  execFileSync("perl", ["-e", 'for (1 .. 50000) { open my $file, ">", "f$_" }'], { cwd: path });
};

test.runIf(process.platform === "linux")(
  "very many files are removed by programs, also below others, and a few are not",
  async () => {
    const root = join(scratch, "root");
    mkdirSync(join(root, "inner"), { recursive: true });
    for (let at = 0; at < 100; at += 1) writeFileSync(join(root, "inner", `${at}`), "");
    expect(await programsOf(removeRoot(root), root)).toEqual([]);
    mkdirSync(root);
    makeWide(join(root, "inner"));
    expect(await programsOf(removeRoot(root), root)).toEqual(["chmod", "rm"]);
    expect(existsSync(root)).toBe(false);
  },
);

test("a removal of very many files is ended at once, and the next one removes what is left", async () => {
  const root = join(scratch, "root");
  makeWide(root);
  let came: string | undefined;
  void removeRoot(root).then(
    () => (came = "removed"),
    (error: Error) => (came = error.message),
  );
  const end = await until("the end of the removal", async () => {
    await endRemovals();
    return came;
  });
  expect(end).toContain("could not be removed");
  expect(existsSync(root)).toBe(true);
  await removeRoot(root);
  expect(existsSync(root)).toBe(false);
});

test("where a link that may not be removed stands in the place of a directory, what it leads to keeps its mode", () => {
  const daemon = isRoot ? 64_322 : undefined;
  if (daemon !== undefined) chownSync(scratch, daemon, daemon);
  const closed = `
    import { symlinkSync } from "node:fs";
    mkdirSync("linked"); mkdirSync("parent"); symlinkSync("../linked", "parent/link");
    chmodSync("linked", 0o500); chmodSync("parent", 0o500);`;
  runModule(closed, scratch, daemon);
  const module = pathToFileURL(join(compiled, "src/browser/directories.js")).href;
  const link = join(scratch, "parent", "link");
  const code = `await (await import("${module}")).removeDirectory("${link}").then(() => process.exit(1), () => {});`;
  runModule(code, "/", daemon);
  expect(statSync(join(scratch, "linked")).mode & 0o777).toBe(0o500);
  for (const name of ["linked", "parent"]) chmodSync(join(scratch, name), 0o700);
});

test("directories without an end are refused, with few of them open", async () => {
  const { uploads } = directories;
  mkdirSync(join(uploads, ...Array.from({ length: 80 }, () => "d")), { recursive: true });
  await expect(emptyDirectory(uploads)).rejects.toThrow("too deep");
});
