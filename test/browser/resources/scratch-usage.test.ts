import { chownSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { makeStubbornTree, runModule } from "../../support/browser/stubborn-trees.js";
import { compiled } from "../../support/compiled.js";
import { newScratchDirectory } from "../../support/killed-runs.js";

const user = process.getuid?.() === 0 ? 64_324 : undefined;

test("an ordinary user's daemon does not take a tree that it may not look into for a small one", () => {
  const scratch = newScratchDirectory();
  onTestFinished(() => rmSync(scratch, { recursive: true }));
  const [open, deep, closed] = ["open", "deep", "closed"].map((name) => join(scratch, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [open, deep, closed]) mkdirSync(path);
  if (user !== undefined) for (const path of [scratch, open, deep, closed]) chownSync(path, user, user);
  makeStubbornTree("directories too deep for a path", deep, user);
  makeStubbornTree("a directory closed to its owner", closed, user);
  const module = (path: string): string => pathToFileURL(join(compiled, path)).href;
  const paths = JSON.stringify([open, deep, closed]);
  const measure = `
    const { measureStorage } = await import("${module("src/browser/resources/scratch-usage.js")}");
    console.log(JSON.stringify(Object.fromEntries(await measureStorage(${paths}.map((root) => ({ root, pid: process.pid }))))));`;
  expect(JSON.parse(runModule(measure, "/", user))).toMatchObject({
    [open]: { files: 1 },
    [deep]: { files: 32 },
    [closed]: null,
  });
  const remove = `
    const { removeRoot } = await import("${module("src/browser/directories.js")}");
    for (const path of ${paths}) await removeRoot(path);`;
  runModule(remove, "/", user);
});
