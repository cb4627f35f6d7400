import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { faultOfPlace, files, linksOf, pages, textOf } from "./documents.js";
import { root } from "./sources.js";

/** What has changed is told by the names of its day. */
const current = [...pages.keys()].filter((page) => page !== "CHANGELOG.md");
const all = (page: string, pattern: RegExp): readonly string[] =>
  [...textOf(page).matchAll(pattern)].map(([, found]) => found ?? "");

test.each([...pages.keys()])("every link of %s leads to a page, and to a section of it", (page) => {
  const faults = linksOf(page).map(([path, section]) =>
    path.endsWith(".md")
      ? faultOfPlace(path, section)
      : existsSync(join(root, path))
        ? undefined
        : `there is no ${path}`,
  );
  expect(faults.filter((fault) => fault !== undefined)).toEqual([]);
});

test.each(current)("every path that %s names is there", (page) => {
  const paths = all(page, /(?<![\w./:-])((?:src|test|scripts|docs|k8s|config)\/(?:[\w.-]+\/)*[\w.-]*\w)/g);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
});

test("every file that the page on the architecture names is in the sources", () => {
  const named = all("docs/architecture.md", /`([\w/-]+\.(?:ts|lua))`/g);
  expect(named.length).toBeGreaterThan(50);
  const absent = named.filter((name) => !files.some((path) => `/${path}`.endsWith(`/${name}`)));
  expect(absent).toEqual([]);
});

test.each(current)("every command that %s names is there", (page) => {
  const { scripts } = JSON.parse(textOf("package.json")) as { scripts: Record<string, string> };
  expect(all(page, /npm run ([\w:]+)/g).filter((name) => scripts[name] === undefined)).toEqual([]);
  const benches = all(page, /npm run\s+bench\s+--\s+([a-z ]+)`/g).flatMap((names) => names.split(" "));
  const parts = textOf("test/bench/main.ts");
  expect(benches.filter((name) => !parts.includes(`\n  ${name}: `))).toEqual([]);
});

test("the README is read in a few minutes", () => {
  expect(Buffer.byteLength(textOf("README.md"))).toBeLessThanOrEqual(8192);
});

test("each decision has a number of its own, and none is missing", () => {
  const numbers = all("DECISIONS.md", /^(?:<a id="\d+"><\/a>\*\*)?(\d+)\. /gm).map(Number);
  expect(numbers.toSorted((one, other) => one - other)).toEqual(
    Array.from({ length: numbers.length }, (_, index) => index + 1),
  );
  expect(numbers.length).toBeGreaterThan(100);
});
