import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root, sources } from "./sources.js";

const exported = /^export (?:abstract |async )?(?:const|function|class|interface|type) (\w+)/gm;
const namesOf = (code: string): ReadonlySet<string> =>
  new Set([...code.matchAll(exported)].map(([, name]) => name ?? ""));

test("no exported name stands for two things", () => {
  const places = new Map<string, string[]>();
  for (const { path, code } of sources) {
    for (const name of namesOf(code)) places.set(name, [...(places.get(name) ?? []), path]);
  }
  expect([...places].filter(([, paths]) => paths.length > 1)).toEqual([]);
});

test("each word of the glossary is where it says", () => {
  const glossary = readFileSync(join(root, "docs/glossary.md"), "utf8");
  const rows = [...glossary.matchAll(/^\| (.+?) \| .+ \| \[`(.+?)`\]\(\.\.\/(.+?)\) \|$/gm)];
  expect(rows.length).toBeGreaterThan(50);
  const lost = rows.filter(([, word = "", , path = ""]) => {
    if (!existsSync(join(root, path))) return true;
    const name = /^`(\w+)`/.exec(word)?.[1];
    return name !== undefined && !namesOf(readFileSync(join(root, path), "utf8")).has(name);
  });
  expect(lost.map(([, word, , path]) => `${word}: ${path}`)).toEqual([]);
});
