import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { plainWords } from "./plain-words.js";
import { root, sources } from "./sources.js";

const exported = /^export (?:abstract |async )?(?:const|function\*?|class|interface|type) (\w+)/gm;
const namesOf = (code: string): ReadonlySet<string> =>
  new Set([...code.matchAll(exported)].map(([, name]) => name ?? ""));

test("no exported name stands for two things", () => {
  const places = new Map<string, string[]>();
  for (const { path, code } of sources) {
    for (const name of namesOf(code)) places.set(name, [...(places.get(name) ?? []), path]);
  }
  expect([...places].filter(([, paths]) => paths.length > 1)).toEqual([]);
});

const namedType = /^export (?:abstract )?(?:class|interface|type) (\w+)/gm;
const anyType = /^(?:export )?(?:abstract )?(?:class|interface|type) (\w+)/gm;
const declaredType = /^(?:abstract )?(?:class|interface|type) (\w+)/gm;

test("no file calls a type of its own as another file's exported one", () => {
  const exporters = new Map(
    sources.flatMap(({ path, code }) =>
      [...code.matchAll(namedType)].map(([, name = ""]) => [name, path] as const),
    ),
  );
  const borrowed = sources.flatMap(({ path, code }) =>
    [...code.matchAll(declaredType)]
      .map(([, name = ""]) => ({ name, exporter: exporters.get(name) }))
      .filter(({ exporter }) => exporter !== undefined && exporter !== path)
      .map(({ name, exporter }) => `${path}: ${name} is exported by ${exporter}`),
  );
  expect(borrowed).toEqual([]);
});

/** Each file of routes has one, as docs/glossary.md says of deps. */
const sharedTypes: ReadonlySet<string> = new Set(["Deps"]);

test("no type of one file is called as another file's", () => {
  const places = new Map<string, readonly string[]>();
  for (const { path, code } of sources) {
    const names = new Set([...code.matchAll(anyType)].map(([, name = ""]) => name));
    for (const name of names) places.set(name, [...(places.get(name) ?? []), path]);
  }
  const shared = [...places].filter(([, paths]) => paths.length > 1);
  expect(shared.filter(([name]) => !sharedTypes.has(name))).toEqual([]);
  expect(shared.map(([name]) => name)).toEqual([...sharedTypes]);
});

const exportedValue = /^export (?:abstract |async )?(?:const|function\*?|class) (\w+)/gm;
const wordsOf = (code: string): readonly string[] => code.match(/\w+/g) ?? [];
const wordsIn = (folder: string): ReadonlySet<string> =>
  new Set(
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => /\.(ts|mjs)$/.test(path) && path !== "architecture/names.test.ts")
      .flatMap((path) => wordsOf(readFileSync(join(root, folder, path), "utf8"))),
  );

test("each exported value is used: by another file, or by its own and a test", () => {
  const inTests = wordsIn("test");
  const inScripts = wordsIn("scripts");
  const files = sources.map(({ path, code }) => ({ path, code, words: new Set(wordsOf(code)) }));
  const unused = files.flatMap(({ path, code }) =>
    [...new Set([...code.matchAll(exportedValue)].map(([, name = ""]) => name))]
      .filter((name) => {
        if (inScripts.has(name)) return false;
        if (files.some((other) => other.path !== path && other.words.has(name))) return false;
        const declared = [...code.matchAll(exported)].filter(([, other]) => other === name).length;
        const usesItself = wordsOf(code).filter((word) => word === name).length > declared;
        return !(usesItself && inTests.has(name));
      })
      .map((name) => `${path}: ${name}`),
  );
  expect(unused).toEqual([]);
});

const exportedType = /^export (?:interface|type) (\w+)/gm;

test("each exported type is named by another file, or a word of the glossary", () => {
  const inTests = wordsIn("test");
  const files = sources.map(({ path, code }) => ({ path, code, words: new Set(wordsOf(code)) }));
  const inGlossary = new Set(glossaryRows().flatMap(({ word }) => wordsOf(word)));
  const ofOneFile = files.flatMap(({ path, code }) =>
    [...code.matchAll(exportedType)]
      .map(([, name = ""]) => name)
      .filter((name) => !inGlossary.has(name) && !inTests.has(name))
      .filter((name) => !files.some((other) => other.path !== path && other.words.has(name)))
      .map((name) => `${path}: ${name}`),
  );
  expect(ofOneFile).toEqual([]);
});

interface GlossaryRow {
  readonly word: string;
  readonly path: string;
}

const glossaryRows = (): readonly GlossaryRow[] =>
  [
    ...readFileSync(join(root, "docs/glossary.md"), "utf8").matchAll(
      /^\| (.+?) \| .+ \| \[`(.+?)`\]\(\.\.\/(.+?)\) \|$/gm,
    ),
  ].map(([, word = "", , path = ""]) => ({ word, path }));

/** The text of a file, or of all files of a folder, with its path. */
const textAt = (path: string): string =>
  [
    path,
    ...(statSync(join(root, path)).isDirectory()
      ? readdirSync(join(root, path), { recursive: true, encoding: "utf8" })
          .filter((name) => name.endsWith(".ts"))
          .map((name) => readFileSync(join(root, path, name), "utf8"))
      : [readFileSync(join(root, path), "utf8")]),
  ].join("\n");

/** `node report` stands in `NodeReports` and in `node-reports.ts` too. */
const says = (text: string, word: string): boolean =>
  new RegExp(`\\b${(word.match(/\w+/g) ?? []).join("s? ")}`, "i").test(
    text.replaceAll(/([a-z])([A-Z])/g, "$1 $2").replaceAll(/[^A-Za-z0-9]+/g, " "),
  );

function isWhereItSays({ word, path }: GlossaryRow): boolean {
  if (!existsSync(join(root, path))) return false;
  const name = /^`(\w+)`/.exec(word)?.[1];
  return name === undefined
    ? says(textAt(path), word)
    : namesOf(readFileSync(join(root, path), "utf8")).has(name);
}

test("each word of the glossary is where it says", () => {
  const rows = glossaryRows();
  expect(rows.length).toBeGreaterThan(50);
  expect(rows.filter((row) => !isWhereItSays(row)).map(({ word, path }) => `${word}: ${path}`)).toEqual([]);
});

test("no word has two rows in the glossary, not even in other case", () => {
  const keys = glossaryRows().map(({ word }) => word.replaceAll("`", "").toLowerCase());
  expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([]);
});

const partsOf = (name: string): readonly string[] =>
  (name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []).map((word) => word.toLowerCase());

/** `sealed` may come of `seal`, `stopping` of `stop`, `entries` of `entry`. */
function rootsOf(word: string): readonly string[] {
  const stem = word.replace(/(?:e?s|e?d|ing)$/, "");
  const single = stem.replace(/([a-z])\1$/, "$1");
  const ofY = word.replace(/ie[sd]$/, "y");
  return [word, word.replace(/[sd]$/, ""), stem, `${stem}e`, single, ofY];
}

const glossaryWords = (): ReadonlySet<string> =>
  new Set(
    [...readFileSync(join(root, "docs/glossary.md"), "utf8").matchAll(/^\| (.+?) \|.+\]\(\.\.\//gm)].flatMap(
      ([, word = ""]) => partsOf(word).flatMap(rootsOf),
    ),
  );

const words: readonly (readonly [word: string, place: string])[] = sources.flatMap(({ path, code }) => [
  ...[...code.matchAll(namedType)].flatMap(([, name = ""]) =>
    partsOf(name).map((word) => [word, `${path}: ${name}`] as const),
  ),
  ...partsOf(path.replace(/\.ts$/, "")).map((word) => [word, path] as const),
]);

test("types and files are named with the glossary's words and with plain ones", () => {
  const known = new Set([...plainWords, ...glossaryWords()]);
  const coined = words.filter(([word]) => !rootsOf(word).some((found) => known.has(found)));
  expect(
    coined.map(([word, place]) => `${word} (${place}) is neither in docs/glossary.md nor plain`),
  ).toEqual([]);
});

test("each plain word is used, and is none of the glossary's", () => {
  const used = new Set(words.flatMap(([word]) => rootsOf(word)));
  const ofGlossary = glossaryWords();
  expect([...plainWords].filter((word) => !used.has(word) || ofGlossary.has(word))).toEqual([]);
});
