import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Directories } from "../../src/browser/chromium.js";
import {
  directoriesOf,
  emptyDirectory,
  makeDirectories,
  newWorkspaceName,
  removeTree,
} from "../../src/browser/directories.js";
import { putForeignFile, removeForeignFile } from "../../src/browser/foreign-file.js";
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
afterEach(() => rmSync(scratch, { recursive: true }));

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
